"""Writes the segments of a recording as a transcript: text, JSON, SRT, WebVTT, Praat TextGrid or NIST CTM.

Each format is a generator that yields text while segments arrive, so that recordings of any length can be
written. JSON keeps only the text in memory; a TextGrid, which begins with counts, keeps text and times.
"""

import html
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from utils.hypotheses.phrases import PhraseResult
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.mandarin.punctuation import without_marks

# A subtitle ends at a pause between words. Longer speech is cut, away from its ends: behind a punctuation
# mark, at its longest gap, or in equal parts.
CUE_PAUSE_SECONDS = 0.5
CUE_SYLLABLES = 24  # at most: two lines
CUE_LEAST = 8  # syllables on each side of a cut
_LATIN_OR_DIGITS = re.compile("[A-Za-z0-9]\n[A-Za-z0-9]")  # before and after a cut
CHANNEL = "{}: "  # before a text
Events = Iterable[Recognition | Ending]


@dataclass(frozen=True)
class TranscriptFormat:
    """A file suffix, and a function: name of a recording and its events in, text of the file out."""

    suffix: str
    write: Callable[[str, Events], Iterator[str]]


def as_text(name: str, events: Events) -> Iterator[str]:
    """One line per segment: hanzi, or syllables without a second stage; an empty line for silence.

    Speech that is none of the phrases of a list gives its syllables in brackets.
    """
    silent = True
    for event in events:
        if isinstance(event, Recognition) and event.times:
            silent = False
            yield f"{_speaker(event)}{event.text}\n"
    if silent:
        yield "\n"


def as_json(name: str, events: Events) -> Iterator[str]:
    """All results as JSON, one line per segment; times in seconds, rounded to milliseconds."""
    yield f'{{"id": {json.dumps(name, ensure_ascii=False)}, "segments": ['
    hanzi: list[str] = []
    texts: list[str] = []
    pinyin: list[str] = []
    score, seconds, before = 0.0, 0.0, "\n"
    for event in events:
        if isinstance(event, Ending):
            seconds = event.seconds
            continue
        yield before + json.dumps(segment_values(event), ensure_ascii=False)
        before = ",\n"
        hanzi.append(event.best.hanzi)
        texts.append("".join(event.labels) or event.best.hanzi)
        pinyin.append(" ".join(event.best.pinyin))
        score += event.best.score
    whole = {
        "seconds": round(seconds, 3),
        "hanzi": "".join(hanzi),
        "text": "".join(texts),
        "pinyin": " ".join(filter(None, pinyin)),
        "score": round(score, 4),
    }
    yield "\n], " + json.dumps(whole, ensure_ascii=False)[1:] + "\n"


def as_json_line(name: str, events: Events) -> Iterator[str]:
    """The same in one line, for several recordings."""
    yield from (text.replace("\n", "") for text in as_json(name, events))
    yield "\n"


def as_srt(name: str, events: Events) -> Iterator[str]:
    """SubRip subtitles, one per stretch of speech between pauses; empty for silence."""
    for number, (start, end, text) in enumerate(_subtitles(events), start=1):
        gap = "\n" if number > 1 else ""
        yield f"{gap}{number}\n{_clock(start, ',')} --> {_clock(end, ',')}\n{text}\n"


def as_vtt(name: str, events: Events) -> Iterator[str]:
    """WebVTT subtitles, with the texts and times of :func:`as_srt`."""
    yield "WEBVTT\n"
    for start, end, text in _subtitles(events, voice="<v {}>"):
        yield f"\n{_clock(start, '.')} --> {_clock(end, '.')}\n{text}\n"


def as_ctm(name: str, events: Events) -> Iterator[str]:
    """NIST CTM: recording, channel, start, length, syllable or hanzi and its confidence, one a line.

    A number in digits has the confidence of its least certain syllable. Spaces in a phrase become ``_``.
    """
    recording = "_".join(name.split())
    for event in events:
        if isinstance(event, Ending):
            continue
        channel = "_".join(event.channel.split()) or "1"
        for word in event.words:
            # Rounded before the difference, so that no word begins before the end of the one before it.
            start, end = round(word.start, 3), round(word.end, 3)
            sure = 1.0 if word.confidence is None else word.confidence
            text = "_".join(word.text.split())
            yield f"{recording} {channel} {start:.3f} {end - start:.3f} {text} {sure:.3f}\n"


def as_textgrid(name: str, events: Events) -> Iterator[str]:
    """A Praat TextGrid (long text format) with a tier of syllables and, if known, a tier of hanzi.

    Channels that are recognised separately have tiers of their own.
    """
    pinyin: dict[str, list[str]] = defaultdict(list)  # by channel
    hanzi: dict[str, list[str]] = defaultdict(list)
    edges: dict[str, array] = defaultdict(lambda: array("d"))  # start and end of each syllable
    seconds = 0.0
    for event in events:
        if isinstance(event, Ending):
            seconds = event.seconds
            continue
        pinyin[event.channel].extend(event.best.pinyin)
        hanzi[event.channel].extend(without_marks(text).strip() for text in event.syllable_texts())
        for time in event.times:
            edges[event.channel].extend(time)
    tiers = []
    for channel in list(pinyin) or [""]:
        before = CHANNEL.format(channel) if channel else ""
        if any(hanzi[channel]):
            tiers.append((f"{before}hanzi", hanzi[channel], edges[channel]))
        tiers.append((f"{before}pinyin", pinyin[channel], edges[channel]))
    yield f'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = {seconds:.4f}\n'
    yield f"tiers? <exists>\nsize = {len(tiers)}\nitem []:\n"
    for number, tier in enumerate(tiers, start=1):
        yield from _tier(number, *tier, seconds)


FORMATS = {
    "text": TranscriptFormat(".txt", as_text),
    "json": TranscriptFormat(".json", as_json),
    "srt": TranscriptFormat(".srt", as_srt),
    "vtt": TranscriptFormat(".vtt", as_vtt),
    "ctm": TranscriptFormat(".ctm", as_ctm),
    "textgrid": TranscriptFormat(".TextGrid", as_textgrid),
}


def print_transcript(form: str, name: str, events: Events, several: bool) -> None:
    """Print a transcript while the recording is recognised; nothing of one that can't be read at all.

    Args:
        form: one of :data:`FORMATS`.
        name: of the recording.
        events: of the recording.
        several: it is one of several: JSON is one line, of whole objects only, and lines of text begin with
            the name and a tab.
    """
    events = iter(events)
    events = chain([next(events)], events)  # an error is raised before anything is printed
    texts = FORMATS[form].write(name, events)
    if several and form == "json":
        texts = ["".join(as_json_line(name, events))]
    elif several and form == "text":
        texts = (f"{name}\t{line}" for line in texts)
    for text in texts:
        print(text, end="", flush=True)


def readable(events: Events) -> Iterator[Recognition | Ending]:
    """The same events; raises the AudioError of a recording that can't be read."""
    for event in events:
        if isinstance(event, Ending) and event.error:
            raise event.error
        yield event


def segment_values(segment: Recognition) -> dict[str, object]:
    """The JSON output for a segment; times in seconds."""
    best = segment.best
    confidence = segment.confidence or [None] * len(best.pinyin)
    return {
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        **({"channel": segment.channel} if segment.channel else {}),
        "hanzi": best.hanzi,
        **({"text": "".join(segment.labels)} if segment.labels else {}),
        "pinyin": " ".join(best.pinyin),
        "score": round(best.score, 4),
        "syllables": [
            {
                "pinyin": syllable,
                "hanzi": without_marks(text).strip(),
                "start": round(time[0], 3),
                "end": round(time[1], 3),
            }
            | ({} if sure is None else {"confidence": round(sure, 3)})
            for syllable, text, time, sure in zip(
                best.pinyin, segment.syllable_texts(), segment.times, confidence, strict=True
            )
        ],
        "n_best": n_best_values(segment.n_best),
        **(_phrases(segment.phrase) if segment.phrase else {}),
    }


def n_best_values(hypotheses: Iterable[Alternative]) -> list[dict[str, object]]:
    """The JSON output for an n-best list, the best hypothesis first."""
    return [
        {
            "hanzi": hypothesis.hanzi,
            "pinyin": " ".join(hypothesis.pinyin),
            "score": round(hypothesis.score, 4),
        }
        | ({"confidence": [round(p, 4) for p in hypothesis.confidence]} if hypothesis.confidence else {})
        for hypothesis in hypotheses
    ]


def _phrases(result: PhraseResult) -> dict[str, object]:
    return {
        "accepted": result.accepted,
        "phrases": [
            {
                "text": match.text,
                "slots": dict(match.slots),
                "line": match.line,
                "pinyin": " ".join(match.pinyin),
                "score": round(match.score, 4),
                "confidence": round(match.confidence, 4),
            }
            for match in result.matches
        ],
    }


def _subtitles(events: Events, voice: str = CHANNEL) -> Iterator[tuple[float, float, str]]:
    """(start, end, text) of each subtitle in the order of starts; the name of a channel stands before it."""
    of_channels: list[tuple[float, float, str]] = []  # segments of several channels overlap
    for event in events:
        if isinstance(event, Recognition):
            for first, end in cues(event):
                text = _speaker(event, voice) + event.text_of(first, end)
                subtitle = event.times[first][0], event.times[end - 1][1], text
                if event.channel:
                    of_channels.append(subtitle)
                else:
                    yield subtitle
    yield from sorted(of_channels, key=itemgetter(0))


def _speaker(segment: Recognition, voice: str = CHANNEL) -> str:
    name = segment.channel if voice == CHANNEL else html.escape(segment.channel)  # WebVTT has markup
    return voice.format(name) if name else ""


def cues(segment: Recognition) -> Iterator[tuple[int, int]]:
    """(first, end) syllable of each subtitle, never inside a word, or a number or Latin word."""
    words: list[tuple[int, int]] = []
    before = ""
    for text, first, end in segment.written():
        inside = segment.word_starts and first not in segment.word_starts
        if words and segment.hanzi and (inside or _LATIN_OR_DIGITS.search(f"{before}\n{text.lstrip()}")):
            words[-1] = words[-1][0], end
        else:
            words.append((first, end))
        before = text
    begin = 0
    for i in range(1, len(words) + 1):
        if i == len(words) or _gap(segment, words[i][0]) > CUE_PAUSE_SECONDS:
            yield from _short_enough(segment, words[begin:i])
            begin = i


def _short_enough(segment: Recognition, words: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(first, end) syllable of each part of speech without pauses; the same as ``save.js`` of the service."""
    first, end = words[0][0], words[-1][1]
    parts = -(-(end - first) // CUE_SYLLABLES)
    cuts = [i for i, (at, _) in enumerate(words) if min(at - first, end - at) >= CUE_LEAST]
    if parts == 1 or not cuts:
        yield first, end
        return
    equal = first + (end - first) * (parts // 2) / parts

    def suitable(i: int) -> tuple[bool, int, float]:
        before = segment.text_of(*words[i - 1])
        gap = int(10 * _gap(segment, words[i][0]) + 0.5)
        return without_marks(before) != before, gap, -abs(words[i][0] - equal)

    cut = max(cuts, key=suitable)
    yield from _short_enough(segment, words[:cut])
    yield from _short_enough(segment, words[cut:])


def _gap(segment: Recognition, syllable: int) -> float:
    """Seconds of silence before a syllable."""
    return segment.times[syllable][0] - segment.times[syllable - 1][1]


def _clock(seconds: float, point: str) -> str:
    """``01:02:03,004`` with the decimal point of the format."""
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{point}{rest % 1000:03}"


def _tier(number: int, title: str, labels: list[str], edges: array, seconds: float) -> Iterator[str]:
    count = sum(1 for _ in _intervals(labels, edges, seconds))
    yield f'    item [{number}]:\n        class = "IntervalTier"\n        name = "{title}"\n'
    yield f"        xmin = 0\n        xmax = {seconds:.4f}\n        intervals: size = {count}\n"
    for index, (start, end, label) in enumerate(_intervals(labels, edges, seconds), start=1):
        quoted = label.replace('"', '""')
        yield (
            f"        intervals [{index}]:\n            xmin = {start:.4f}\n            xmax = {end:.4f}\n"
            f'            text = "{quoted}"\n'
        )


def _intervals(labels: list[str], edges: array, seconds: float) -> Iterator[tuple[float, float, str]]:
    """(start, end, label) from 0 to the end without gaps, as Praat requires; silence has an empty label."""
    last_end = 0.0
    for index, label in enumerate(labels):
        start, end = round(edges[2 * index], 4), round(edges[2 * index + 1], 4)
        if start > last_end:
            yield last_end, start, ""
        yield start, end, label
        last_end = end
    if round(seconds, 4) > last_end:
        yield last_end, seconds, ""
