"""Reads a file of transcripts: subtitles (SubRip, WebVTT, ASS, TTML, LRC), CTM, TRN, records, or ``id text``.

CTM and TRN are the formats of NIST's scoring toolkit SCTK (``infmts`` in its documentation). A CTM file has
one text for each recording, a file of subtitles that of one recording. Only texts are read, so that an odd
time loses none: any line with a time and an arrow begins a cue of SubRip or WebVTT.
"""

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import and_, itemgetter
from pathlib import Path
from xml.etree import ElementTree

from analysis.inputs.records import Items, TextEntry, read_json, read_table
from utils.errors import CorpusError

CTM, TRN, SUBTITLES, RECORDS, TEXT = "CTM", "TRN", "subtitles", "table or JSON", "text"
ALTERNATIVES = "alternatives beside the first"

_NULL = "@"  # stands for no word in NIST's alternations
_COMMENT = ";;"
_NUMBER = r"\d*\.?\d+"
_CTM_LINE = re.compile(rf"\S+\s+\S+\s+(?:{_NUMBER}|\*)\s+(?:{_NUMBER}|\*)\s+\S+(?:\s+\S+){{0,3}}")
_STM_LINE = re.compile(rf"\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}(?:\s.*)?")
_TRN_LINE = re.compile(r"(.*?)\s*\(([^()\s]+)\)\s*")
_ALTERNATION = re.compile(r"\{([^{}]*)\}")
_TIMES_BEFORE = re.compile(r"\s*\[[\d:.]+ *--> *[\d:.]+\]\s*")
_CUE_TIME = re.compile(r"\s*(?:-?\d+(?:\s*[:.,：，]\s*\d+)+\s*(?:[-–—=]+\s*(?:>|&gt;)|[-–—]{2,}|→)|-->).*")
_LRC_TIME = re.compile(r"\s*\[(\d+(?:[:.]\d+)+)\]")
_LRC_TAG = re.compile(r"\s*\[[^\d\]][^\]]*:[^\]]*\]\s*")  # title, artist …
# Tags, also with the times of words, and the commands of ASS, which SubRip may have too.
_MARKUP = re.compile(r"</?[a-z][^>]*>|<(?:\d+:)?\d+:\d\d(?:[.:]\d{1,3})?>|\{\\[^}]*\}", re.IGNORECASE)
_WORD_TIME = re.compile(r"<\d+:\d\d[\d:.]*><c>")
_NO_CUE = re.compile(r"(NOTE|STYLE|REGION)(\s.*)?")  # blocks of WebVTT without text
_ASS_DRAWING = re.compile(r"\{[^}]*\\p[1-9][^}]*\}.*?(?=\{[^}]*\\p0|$)")
_ASS_BREAK = re.compile(r"\\[Nnh]")
_WHISPER_TABLE = ["start", "end", "text"]  # of one recording
_ASS_COLUMNS = 10  # the last one is the text
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|!--|html|(?:\w+:)?tt[\s>])", re.IGNORECASE)
_TEXTGRID = 'File type = "ooTextFile"'


@dataclass(frozen=True)
class TranscriptFile:
    """The contents of a transcript file.

    Attributes:
        format: one of ``CTM``, ``TRN``, ``SUBTITLES``, ``RECORDS`` and ``TEXT``.
        items: ids and entries in the order of the file.
        left_out: description of what was left out → ids of the transcripts concerned.
    """

    format: str
    items: Items
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_transcript_file(
    path: Path, name: str, lines: Sequence[str], numbers: Sequence[int], is_reference: bool
) -> TranscriptFile:
    """Read the lines of a file, whose format is recognised from its content.

    Args:
        path: path of the file.
        name: id of a file with one text.
        lines: lines of the file, without empty lines.
        numbers: number of each line in the file, from 1.
        is_reference: whether to take the reference's texts of a file that also has hypotheses.

    Raises:
        CorpusError: the format is known but has no transcripts that can be scored; the message names it.
    """
    if lines[0].startswith(_TEXTGRID):
        raise _unreadable(path, "a Praat TextGrid", "give the transcripts as JSON or SubRip")
    if _XML.match(lines[0]):
        return _one_text(name, _ttml_texts(path, "\n".join(lines)))
    if (
        lines[0].lstrip()[:1] in ("{", "[")
        and (items := read_json(path, name, lines, numbers, is_reference)) is not None
    ):
        return TranscriptFile(RECORDS, items)
    if lines[0].startswith("WEBVTT") or any(map(_CUE_TIME.fullmatch, lines)):
        return _one_text(name, _cue_texts(lines, numbers))
    if is_printed_with_times(lines):
        return _one_text(name, (_TIMES_BEFORE.sub("", line) for line in lines))
    if lines[0].split("\t") == _WHISPER_TABLE:
        return _one_text(name, (line.split("\t", 2)[-1] for line in lines[1:]))
    if any(line.startswith("Dialogue:") for line in lines):
        return _one_text(name, _ass_texts(lines))
    if any(map(_LRC_TIME.match, lines)):
        return _one_text(name, _lrc_texts(lines))
    if (items := read_table(path, lines, numbers, is_reference)) is not None:
        return TranscriptFile(RECORDS, items)
    records = [line.strip() for line in lines if not line.startswith(_COMMENT)]
    if _all_match(_CTM_LINE, records) and _has_times(records, 2):
        return _from_ctm(records)
    if _all_match(_STM_LINE, records) and _has_times(records, 3):
        raise _unreadable(path, "an STM file (segments with times)", "give its texts as TRN, or as 'id text'")
    if _all_match(_TRN_LINE, records):
        return _from_trn(records)
    pairs = ((*line.strip().split(None, 1), "")[:2] for line in lines)
    return TranscriptFile(TEXT, [(id, TextEntry(hanzi=text)) for id, text in pairs])


def is_printed_with_times(lines: Sequence[str]) -> bool:
    """Whether all lines begin with times in brackets, as Whisper prints them."""
    return all(map(_TIMES_BEFORE.match, lines))


def _one_text(name: str, texts: Iterator[str]) -> TranscriptFile:
    """The text of a file of subtitles, without markup."""
    text = " ".join(html.unescape(_MARKUP.sub("", line)).strip() for line in texts)
    return TranscriptFile(SUBTITLES, [(name, TextEntry(hanzi=text))])


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
            before = timed_words[-1][0] if timed_words else 0.0
            timed_words.append((before if begin == "*" else float(begin), word))
    files = [file for file, _ in words]
    ids = {side: "_".join(side) if files.count(side[0]) > 1 else side[0] for side in words}
    items = [
        (ids[side], TextEntry(" ".join(word for _, word in sorted(timed_words, key=itemgetter(0)))))
        for side, timed_words in words.items()
    ]
    return TranscriptFile(CTM, items, {ALTERNATIVES: [ids[side] for side in left_out]})


def _from_trn(records: Sequence[str]) -> TranscriptFile:
    items, left_out = [], []
    for found in filter(None, map(_TRN_LINE.fullmatch, records)):
        text, name = found.groups()
        if _ALTERNATION.search(text):
            left_out.append(name)
        while _ALTERNATION.search(text):  # alternations may be nested
            text = _ALTERNATION.sub(lambda found: found[1].split("/")[0], text)
        items.append((name, TextEntry(" ".join(word for word in text.split() if word != _NULL))))
    return TranscriptFile(TRN, items, {ALTERNATIVES: left_out})


def _cue_texts(lines: Sequence[str], numbers: Sequence[int]) -> Iterator[str]:
    """The lines of all cues of SubRip or WebVTT without numbers, other names of cues, notes and times.

    Captions that scroll, as YouTube makes them, have times of words, and each line again in the next cues.
    """
    inside, is_webvtt, before = False, lines[0].startswith("WEBVTT"), ""
    scrolls = any(map(_WORD_TIME.search, lines))
    is_time = [bool(_CUE_TIME.fullmatch(line)) for line in lines] + [False]
    is_number = [line.strip().isdecimal() for line in lines]
    # In a file without numbers of cues, a number is text.
    is_numbered = 2 * sum(map(and_, is_number, is_time[1:])) > sum(is_time)
    follows_blank = [before + 1 < number for before, number in pairwise([0, *numbers])] + [False]
    for index, line in enumerate(lines):
        if is_time[index]:
            inside = True
        elif is_webvtt and follows_blank[index] and _NO_CUE.fullmatch(line):
            inside = False
        elif is_time[index + 1] and is_number[index] and is_numbered:
            continue
        elif is_time[index + 1] and is_webvtt and follows_blank[index] and not follows_blank[index + 1]:
            continue  # in WebVTT, any text may be the name of a cue
        elif inside:
            if not (scrolls and line.strip() == before):
                yield line
            before = _MARKUP.sub("", line).strip() or before


def _ass_texts(lines: Sequence[str]) -> Iterator[str]:
    """The dialogue of ASS or SSA (SubStation Alpha) in the order of its start times."""
    events = [line.split(",", _ASS_COLUMNS - 1) for line in lines if line.startswith("Dialogue:")]
    for event in sorted(events, key=lambda event: event[1:2]):  # damaged lines have fewer columns
        yield _ASS_BREAK.sub(" ", _ASS_DRAWING.sub("", event[-1]))


def _lrc_texts(lines: Sequence[str]) -> Iterator[str]:
    """The lines of LRC in the order of their times; a line with several times comes several times."""
    texts, times = [], [""]
    for line in lines:
        if not _LRC_TAG.fullmatch(line):
            times = _LRC_TIME.findall(line) or times  # a line without a time continues the one before it
            texts += [(time, _LRC_TIME.sub("", line)) for time in times]
    for _, text in sorted(texts, key=lambda timed: [int(part) for part in re.findall(r"\d+", timed[0])]):
        yield text


def _ttml_texts(path: Path, text: str) -> Iterator[str]:
    """The paragraphs of TTML, also of DFXP, IMSC and EBU-TT; a break is a space."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise _unreadable(path, f"XML or HTML with an error ({error})", "write the file again") from error
    if root.tag.rpartition("}")[2] != "tt":
        raise _unreadable(path, "XML or HTML, but not TTML", "give SubRip, or lines of 'id text'")
    for line_break in root.findall(".//{*}br"):
        line_break.tail = f" {line_break.tail or ''}"
    for paragraph in root.findall(".//{*}p"):
        yield " ".join("".join(paragraph.itertext()).split())
