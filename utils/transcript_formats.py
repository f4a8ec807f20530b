"""A recognised recording in, a transcript file's text out: plain, JSON, SubRip subtitles, Praat TextGrid."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from utils.recognition import Recognition

# A subtitle ends at a pause, or when it would be more than two lines of reading at usual speed.
CUE_PAUSE_SECONDS = 0.5
CUE_SYLLABLES = 24


@dataclass(frozen=True)
class TranscriptFormat:
    """A file ending, and the function that writes such a file's text."""

    suffix: str
    write: Callable[[Recognition], str]


def as_text(recognition: Recognition) -> str:
    """One line: hanzi, or syllables where there is no second stage."""
    return _text(recognition, 0, len(recognition.pinyin)) + "\n"


def as_dict(recognition: Recognition) -> dict[str, object]:
    """Everything that is known, as plain values; times in seconds, rounded to milliseconds."""
    hanzi = recognition.hanzi or [""] * len(recognition.pinyin)
    return {
        "id": recognition.id,
        "seconds": round(recognition.seconds, 3),
        "hanzi": recognition.hanzi,
        "pinyin": " ".join(recognition.pinyin),
        "score": round(recognition.score, 4),
        "syllables": [
            {"pinyin": syllable, "hanzi": character, "start": round(time[0], 3), "end": round(time[1], 3)}
            for syllable, character, time in zip(recognition.pinyin, hanzi, recognition.times, strict=True)
        ],
        "n_best": [
            {"hanzi": one.hanzi, "pinyin": " ".join(one.pinyin), "score": round(one.score, 4)}
            for one in recognition.n_best
        ],
    }


def as_json(recognition: Recognition) -> str:
    """:func:`as_dict` as an indented JSON document."""
    return json.dumps(as_dict(recognition), ensure_ascii=False, indent=2) + "\n"


def as_srt(recognition: Recognition) -> str:
    """SubRip subtitles, one for each stretch of speech between pauses; empty for silence."""
    cues = []
    for number, (first, end) in enumerate(_cues(recognition), start=1):
        begins, ends = recognition.times[first][0], recognition.times[end - 1][1]
        text = _text(recognition, first, end)
        cues.append(f"{number}\n{_srt_time(begins)} --> {_srt_time(ends)}\n{text}\n")
    return "\n".join(cues)


def as_textgrid(recognition: Recognition) -> str:
    """A Praat TextGrid (long text format) with a tier of syllables and, if there are hanzi, one of those."""
    tiers = [("pinyin", list(recognition.pinyin))]
    if recognition.hanzi:
        tiers.insert(0, ("hanzi", list(recognition.hanzi)))
    lines = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        "xmin = 0",
        f"xmax = {recognition.seconds:.4f}",
        "tiers? <exists>",
        f"size = {len(tiers)}",
        "item []:",
    ]
    for number, (name, labels) in enumerate(tiers, start=1):
        lines += _tier(number, name, labels, recognition)
    return "\n".join(lines) + "\n"


FORMATS = {
    "text": TranscriptFormat(".txt", as_text),
    "json": TranscriptFormat(".json", as_json),
    "srt": TranscriptFormat(".srt", as_srt),
    "textgrid": TranscriptFormat(".TextGrid", as_textgrid),
}


def _text(recognition: Recognition, first: int, end: int) -> str:
    return recognition.hanzi[first:end] or " ".join(recognition.pinyin[first:end])


def _cues(recognition: Recognition) -> list[tuple[int, int]]:
    """(first, end) syllable of each subtitle."""
    cues, first = [], 0
    for i in range(1, len(recognition.times) + 1):
        at_end = i == len(recognition.times)
        pause = not at_end and recognition.times[i][0] - recognition.times[i - 1][1] > CUE_PAUSE_SECONDS
        if at_end or pause or i - first == CUE_SYLLABLES:
            cues.append((first, i))
            first = i
    return cues


def _srt_time(seconds: float) -> str:
    """``01:02:03,004``."""
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02},{rest % 1000:03}"


def _tier(number: int, name: str, labels: list[str], recognition: Recognition) -> list[str]:
    intervals = _intervals(labels, recognition)
    lines = [
        f"    item [{number}]:",
        '        class = "IntervalTier"',
        f'        name = "{name}"',
        "        xmin = 0",
        f"        xmax = {recognition.seconds:.4f}",
        f"        intervals: size = {len(intervals)}",
    ]
    for place, (start, end, label) in enumerate(intervals, start=1):
        lines += [
            f"        intervals [{place}]:",
            f"            xmin = {start:.4f}",
            f"            xmax = {end:.4f}",
            f'            text = "{label}"',
        ]
    return lines


def _intervals(labels: list[str], recognition: Recognition) -> list[tuple[float, float, str]]:
    """(start, end, label) without a gap from 0 to the end, as Praat wants it; silence has an empty label."""
    intervals, reached = [], 0.0
    for label, time in zip(labels, recognition.times, strict=True):
        start, end = (round(seconds, 4) for seconds in time)
        if start > reached:
            intervals.append((reached, start, ""))
        intervals.append((start, end, label))
        reached = end
    if round(recognition.seconds, 4) > reached:
        intervals.append((reached, recognition.seconds, ""))
    return intervals
