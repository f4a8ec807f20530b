"""Transcripts in CTM, TRN, SubRip or JSON in; their texts by id, and what was left out of them, out.

CTM and TRN are those of NIST's scoring toolkit SCTK (``infmts`` in its documentation). A CTM, SubRip or
WebVTT file has a text for each whole recording; TRN and JSON have the ids that they name.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from utils.errors import CorpusError

CTM, TRN, SUBTITLES, JSON = "CTM", "TRN", "SubRip or WebVTT", "JSON"
ALTERNATIVES = "alternatives beside the first"

_NULL = "@"  # no word, in NIST's alternations
_COMMENT = ";;"
_NUMBER = r"\d*\.?\d+"
_CTM_LINE = re.compile(rf"\S+\s+\S+\s+(?:{_NUMBER}|\*)\s+(?:{_NUMBER}|\*)\s+\S+(?:\s+\S+){{0,3}}")
_STM_LINE = re.compile(rf"\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}(?:\s.*)?")
_TRN_LINE = re.compile(r"(.*?)\s*\(([^()\s]+)\)\s*")
_ALTERNATION = re.compile(r"\{([^{}]*)\}")
_CUE_TIME = re.compile(r"\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->\s+(?:\d+:)?\d\d:\d\d[.,]\d{3}.*")
_MARKUP = re.compile(r"</?[a-z][^>]*>")
_LINES_BEFORE_A_CUE = 20  # title and notes of WebVTT
_TEXTGRID = 'File type = "ooTextFile"'
# Keys of a JSON object under which transcribe.py, FunASR and Whisper keep the id and the text.
_IDS, _TEXTS = ("id", "key"), ("hanzi", "text")


@dataclass(frozen=True, slots=True)
class Transcript:
    """The text of one utterance or recording: hanzi or pinyin, or both where ``pinyin`` is given too."""

    id: str
    text: str
    pinyin: str = ""


@dataclass(frozen=True)
class TranscriptFile:
    """What a file holds.

    Attributes:
        format: one of ``CTM``, ``TRN``, ``SUBTITLES`` and ``JSON``.
        transcripts: in the order of the file.
        left_out: what was left out → ids in which.
    """

    format: str
    transcripts: tuple[Transcript, ...]
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_transcript_file(path: Path, lines: Sequence[str]) -> TranscriptFile | None:
    """The transcripts of a file in one of these formats, which is seen from its content.

    Args:
        path: of the file; its name is the id of subtitles.
        lines: of the file, without empty ones.

    Returns:
        None for a file in none of these formats.

    Raises:
        CorpusError: the format is known but holds no transcripts that can be scored; it is named.
    """
    if lines[0].startswith(_TEXTGRID):
        raise _unreadable(path, "a Praat TextGrid", "give the transcripts as JSON or SubRip")
    if lines[0].lstrip()[:1] in ("{", "[") and (objects := _json_objects(path, lines)) is not None:
        return _from_json(path, objects)
    if any(map(_CUE_TIME.fullmatch, lines[:_LINES_BEFORE_A_CUE])):
        text = " ".join(_cue_texts(lines))
        return TranscriptFile(SUBTITLES, (Transcript(path.stem, text),))
    records = [line.strip() for line in lines if line.strip() and not line.startswith(_COMMENT)]
    if _all_match(_CTM_LINE, records) and _has_times(records, 2):
        return _from_ctm(records)
    if _all_match(_STM_LINE, records) and _has_times(records, 3):
        raise _unreadable(path, "an STM file (segments with times)", "give its texts as TRN, or as 'id text'")
    return _from_trn(records) if _all_match(_TRN_LINE, records) else None


def _unreadable(path: Path, what: str, hint: str) -> CorpusError:
    return CorpusError(f"this is {what}, which can't be scored", where=path, hint=hint)


def _all_match(pattern: re.Pattern[str], records: Sequence[str]) -> bool:
    return bool(records) and all(map(pattern.fullmatch, records))


def _has_times(records: Sequence[str], first: int) -> bool:
    """Whether columns ``first`` and the next are seconds; whole numbers alone may be spoken digits."""
    return any("." in column for record in records for column in record.split()[first : first + 2])


def _from_ctm(records: Sequence[str]) -> TranscriptFile:
    """Words by recording, sorted by their times; of alternatives the first ones."""
    words: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    alternative: dict[tuple[str, str], int] = {}  # which one it is, from 1 on, where there are several
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
        while _ALTERNATION.search(text):  # they may be nested
            text = _ALTERNATION.sub(lambda found: found[1].split("/")[0], text)
        words = [word for word in text.split() if word != _NULL]
        transcripts.append(Transcript(name, " ".join(words)))
    return TranscriptFile(TRN, tuple(transcripts), {ALTERNATIVES: left_out})


def _cue_texts(lines: Sequence[str]) -> Iterator[str]:
    """The lines of all cues, without numbers, times and markup."""
    inside = False
    for line, following in pairwise([*lines, ""]):
        if _CUE_TIME.fullmatch(line):
            inside = True
        elif inside and not (line.strip().isdecimal() and _CUE_TIME.fullmatch(following)):
            yield _MARKUP.sub("", line).strip()


def _json_objects(path: Path, lines: Sequence[str]) -> list[Any] | None:
    """A file's object, those of its array, or those of its lines; None if it isn't JSON."""
    try:
        whole = json.loads("\n".join(lines))
        return whole if isinstance(whole, list) else [whole]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        if path.suffix.startswith(".json"):
            raise CorpusError(f"this is not JSON ({error})", where=path, hint="write it again") from error
        return None


def _from_json(path: Path, objects: Sequence[Any]) -> TranscriptFile:
    if len(objects) == 1 and isinstance(objects[0], dict):
        _refuse_figures(path, objects[0])
    transcripts = []
    for number, one in enumerate(objects, start=1):
        found = one if isinstance(one, dict) else {}
        name = _first(found, _IDS) or (path.stem if len(objects) == 1 else "")
        if not name or not any(key in found for key in (*_TEXTS, "pinyin")):
            what = f"object {number} of this JSON has no {'text' if name else 'id'}"
            hint = "each object needs an 'id', and 'hanzi', 'text' or 'pinyin', as transcribe.py writes them"
            raise CorpusError(what, where=path, hint=hint)
        transcripts.append(Transcript(name, _first(found, _TEXTS), _first(found, ("pinyin",))))
    return TranscriptFile(JSON, tuple(transcripts))


def _first(found: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of these keys that has a text."""
    return next((str(found[key]) for key in keys if isinstance(found.get(key), str) and found[key]), "")


def _refuse_figures(path: Path, found: Mapping[str, Any]) -> None:
    if "task" in found and "split" in found:
        what = "the results.json of test.py (figures, not hypotheses)"
        raise _unreadable(path, what, "give the hypotheses.tsv beside it")
    if "systems" in found and "version" in found:
        what = "the report.json of a report"
        raise _unreadable(path, what, "give the files that the report was made of")
