"""Reads transcripts in CTM, TRN, SubRip, WebVTT or JSON: their texts by id, and what was left out of them.

CTM and TRN are the formats of NIST's scoring toolkit SCTK (``infmts`` in its documentation). A CTM, SubRip or
WebVTT file has one text for each whole recording; TRN and JSON files contain ids.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from utils.errors import CorpusError

CTM, TRN, SUBTITLES, JSON = "CTM", "TRN", "SubRip or WebVTT", "JSON"
ALTERNATIVES = "alternatives beside the first"

_NULL = "@"  # stands for no word in NIST's alternations
_COMMENT = ";;"
_NUMBER = r"\d*\.?\d+"
_CTM_LINE = re.compile(rf"\S+\s+\S+\s+(?:{_NUMBER}|\*)\s+(?:{_NUMBER}|\*)\s+\S+(?:\s+\S+){{0,3}}")
_STM_LINE = re.compile(rf"\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}(?:\s.*)?")
_TRN_LINE = re.compile(r"(.*?)\s*\(([^()\s]+)\)\s*")
_ALTERNATION = re.compile(r"\{([^{}]*)\}")
_CUE_TIME = re.compile(r"\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->\s+(?:\d+:)?\d\d:\d\d[.,]\d{3}.*")
_MARKUP = re.compile(r"</?[a-z][^>]*>|<(?:\d+:)?\d\d:\d\d\.\d{3}>")  # of WebVTT also the times of words
_NO_CUE = re.compile(r"(NOTE|STYLE|REGION)(\s.*)?")  # blocks of WebVTT without text
_LINES_BEFORE_A_CUE = 20  # title and notes of WebVTT
_TEXTGRID = 'File type = "ooTextFile"'
# The keys of id and text in the JSON of transcribe.py, FunASR and Whisper.
_IDS, _TEXTS = ("id", "key"), ("hanzi", "text")


@dataclass(frozen=True, slots=True)
class Transcript:
    """The text of one utterance or recording: hanzi or pinyin; both if ``pinyin`` is given too."""

    id: str
    text: str
    pinyin: str = ""


@dataclass(frozen=True)
class TranscriptFile:
    """The contents of a transcript file.

    Attributes:
        format: one of ``CTM``, ``TRN``, ``SUBTITLES`` and ``JSON``.
        transcripts: texts in the order of the file.
        left_out: description of what was left out → ids of the transcripts concerned.
    """

    format: str
    transcripts: tuple[Transcript, ...]
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_transcript_file(
    path: Path, lines: Sequence[str], after_blank: Collection[int] = ()
) -> TranscriptFile | None:
    """Read a file in one of these formats, which is recognised from its content.

    Args:
        path: path of the file; its name is the id of subtitles.
        lines: lines of the file, without empty lines.
        after_blank: indices of the lines that follow an empty line.

    Returns:
        None for a file in another format.

    Raises:
        CorpusError: the format is known but has no transcripts that can be scored; the message names it.
    """
    if lines[0].startswith(_TEXTGRID):
        raise _unreadable(path, "a Praat TextGrid", "give the transcripts as JSON or SubRip")
    if lines[0].lstrip()[:1] in ("{", "[") and (objects := _json_objects(path, lines)) is not None:
        return _from_json(path, objects)
    if any(map(_CUE_TIME.fullmatch, lines[:_LINES_BEFORE_A_CUE])):
        return TranscriptFile(SUBTITLES, (Transcript(path.stem, " ".join(_cue_texts(lines, after_blank))),))
    records = [line.strip() for line in lines if line.strip() and not line.startswith(_COMMENT)]
    if _all_match(_CTM_LINE, records) and _has_times(records, 2):
        return _from_ctm(records)
    if _all_match(_STM_LINE, records) and _has_times(records, 3):
        raise _unreadable(path, "an STM file (segments with times)", "give its texts as TRN, or as 'id text'")
    return _from_trn(records) if _all_match(_TRN_LINE, records) else None


def _unreadable(path: Path, content: str, hint: str) -> CorpusError:
    return CorpusError(f"this is {content}, which cannot be scored", where=path, hint=hint)


def _all_match(pattern: re.Pattern[str], records: Sequence[str]) -> bool:
    return bool(records) and all(map(pattern.fullmatch, records))


def _has_times(records: Sequence[str], first: int) -> bool:
    """Whether column ``first`` or the next has decimals; whole numbers alone may be spoken digits."""
    return any("." in column for record in records for column in record.split()[first : first + 2])


def _from_ctm(records: Sequence[str]) -> TranscriptFile:
    """Words by recording, sorted by time; of alternatives, the first."""
    words: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    alternative: dict[tuple[str, str], int] = {}  # the number of the alternative, from 1
    left_out: dict[tuple[str, str], None] = {}
    for record in records:
        file, channel, begin, _, word, *_ = record.split()
        side = (file, channel)
        timed_words = words[side]
        if word == "<ALT_BEGIN>":
            alternative[side] = 1
        elif word == "<ALT>":
            alternative[side] = alternative.get(side, 1) + 1
        elif word == "<ALT_END>":
            alternative.pop(side, None)
        elif alternative.get(side, 1) > 1:
            left_out[side] = None
        elif word != _NULL:
            timed_words.append((float(begin), word))
    files = [file for file, _ in words]
    ids = {side: "_".join(side) if files.count(side[0]) > 1 else side[0] for side in words}
    transcripts = [
        Transcript(ids[side], " ".join(word for _, word in sorted(timed_words, key=itemgetter(0))))
        for side, timed_words in words.items()
    ]
    return TranscriptFile(CTM, tuple(transcripts), {ALTERNATIVES: [ids[side] for side in left_out]})


def _from_trn(records: Sequence[str]) -> TranscriptFile:
    transcripts, left_out = [], []
    for record in records:
        text, name = _TRN_LINE.fullmatch(record).groups()
        if _ALTERNATION.search(text):
            left_out.append(name)
        while _ALTERNATION.search(text):  # alternations may be nested
            text = _ALTERNATION.sub(lambda found: found[1].split("/")[0], text)
        transcripts.append(Transcript(name, " ".join(word for word in text.split() if word != _NULL)))
    return TranscriptFile(TRN, tuple(transcripts), {ALTERNATIVES: left_out})


def _cue_texts(lines: Sequence[str], after_blank: Collection[int]) -> Iterator[str]:
    """The lines of all cues without numbers, other names of cues, notes, times and markup."""
    inside = False
    for index, (line, following) in enumerate(pairwise([*lines, ""])):
        begins = index in after_blank
        if _CUE_TIME.fullmatch(line):
            inside = True
        elif begins and _NO_CUE.fullmatch(line):
            inside = False
        elif _CUE_TIME.fullmatch(following) and (begins or line.strip().isdecimal()):
            continue  # the name of the cue: a number, in WebVTT any text
        elif inside:
            yield _MARKUP.sub("", line).strip()


def _json_objects(path: Path, lines: Sequence[str]) -> list[Any] | None:
    """The object of a file, or the objects of its array or of its lines; None if it is not JSON."""
    try:
        whole = json.loads("\n".join(lines))
        return whole if isinstance(whole, list) else [whole]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        if path.suffix.startswith(".json"):
            raise CorpusError(
                f"this is not JSON ({error})", where=path, hint="write the file again"
            ) from error
        return None


def _from_json(path: Path, objects: Sequence[Any]) -> TranscriptFile:
    if len(objects) == 1 and isinstance(objects[0], dict):
        _reject_figures(path, objects[0])
    transcripts = []
    for number, item in enumerate(objects, start=1):
        found = item if isinstance(item, dict) else {}
        name = _first(found, _IDS) or (path.stem if len(objects) == 1 else "")
        if not name or not any(key in found for key in (*_TEXTS, "pinyin")):
            raise CorpusError(
                f"object {number} of this JSON has no {'text' if name else 'id'}",
                where=path,
                hint="each object needs an 'id', and 'hanzi', 'text' or 'pinyin', "
                "as transcribe.py writes them",
            )
        transcripts.append(Transcript(name, _first(found, _TEXTS), _first(found, ("pinyin",))))
    return TranscriptFile(JSON, tuple(transcripts))


def _first(found: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The text under the first of these keys that has one."""
    return next((str(found[key]) for key in keys if isinstance(found.get(key), str) and found[key]), "")


def _reject_figures(path: Path, found: Mapping[str, Any]) -> None:
    if "task" in found and "split" in found:
        raise _unreadable(
            path, "the results.json of test.py (figures, not hypotheses)", "give the hypotheses.tsv beside it"
        )
    if "systems" in found and "version" in found:
        raise _unreadable(
            path, "the JSON of a report (figures, not hypotheses)", "give the hypothesis files of that report"
        )
