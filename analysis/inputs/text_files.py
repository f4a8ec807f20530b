"""Reads the references or hypotheses of a file or folder: its texts by id, and its problems.

Known formats are lines of ``id text`` as Kaldi, ESPnet, WeNet and FunASR write them (hanzi or pinyin, spaces
or tabs, words or characters), and those of :mod:`analysis.inputs.transcript_files` and
:mod:`analysis.inputs.records`. A folder, such as ``transcribe.py`` writes, has a file for each recording.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from analysis.inputs.normalisation import (
    hanzi_tokens,
    looks_like_pinyin,
    normalise,
    pinyin_tokens,
)
from analysis.inputs.records import Items, TextEntry
from analysis.inputs.transcript_files import (
    ALTERNATIVES,
    SUBTITLES,
    TEXT,
    TranscriptFile,
    is_printed_with_times,
    read_transcript_file,
)
from analysis.inputs.utterance_results import HANZI, SYLLABLES
from data.manifest import read_rows
from utils.errors import CorpusError, require
from utils.mandarin.pinyin import is_hanzi, tone_of

EXAMPLES_KEPT = 5  # ids or tokens of a problem
LINES_EXAMINED = 200  # to distinguish hanzi from pinyin
MAX_TONELESS = 0.5  # fraction of the syllables without a tone; a file with more is reported
MAX_WITHOUT_ID = 0.5  # fraction of lines whose id is rather a text; more is an error
MAX_REPEATED = 0.5  # fraction of lines that give another text to an earlier id; more is an error
# What may be in a folder of transcripts: one text a file, except in JSON and CTM.
_SUFFIXES = (".txt", ".json", ".jsonl", ".srt", ".vtt", ".ass", ".ssa", ".lrc", ".ttml", ".ctm", ".trn")
_NO_TEXT = {
    "lines with tags (SenseVoice, Whisper)": re.compile(r"<\|[^<>|]*\|>"),
    "lines with invisible characters": re.compile("[\u200b-\u200f\u202a-\u202e\u2060\ufeff]"),
}


@dataclass(frozen=True)
class Problem:
    """A problem of the files that may affect the results.

    Attributes:
        file: path of the file that has the problem.
        description: the problem, without the file and the number.
        count: number of lines or tokens concerned.
        examples: a few of these ids or tokens.
        effect: what was done.
        is_harmless: whether it is only a remark, after which the rates are right; it stands below them.
    """

    file: str
    description: str
    count: int
    examples: tuple[str, ...]
    effect: str
    is_harmless: bool = False

    @classmethod
    def of(
        cls, path: Path, description: str, found: Sequence[str], effect: str, is_harmless: bool = False
    ) -> "Problem":
        """The problem of these ids or tokens of a file."""
        examples = tuple(dict.fromkeys(found))[:EXAMPLES_KEPT]
        return cls(str(path), description, len(found), examples, effect, is_harmless)


@dataclass(frozen=True)
class TextFile:
    """The contents of a file.

    Attributes:
        levels: ``syllables``, ``hanzi`` or both.
        lines: entry of each utterance id.
        problems: problems of the file.
        format: name of the file's format, for messages.
    """

    path: Path
    levels: tuple[str, ...]
    lines: Mapping[str, TextEntry]
    problems: tuple[Problem, ...] = field(default=())
    format: str = TEXT


def read_text_file(path: str | Path, is_reference: bool = False) -> TextFile:
    """Read a file, or all transcripts of a folder; the format is recognised from the content.

    Args:
        path: the file or folder.
        is_reference: whether to take the reference's texts of a file that also has hypotheses.

    Raises:
        CorpusError: a file cannot be read, is not UTF-8, is empty, is a damaged table, or has a format that
            cannot be scored; or the folder has no transcripts, or those of several formats.
    """
    path = Path(path)
    if not path.is_dir():
        return _text_file(path, _read(path, path.stem, is_reference))
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".") and file.is_file()
    )
    suffixes = sorted({file.suffix.lower() for file in files})
    hint = f"give a folder with transcripts of one of these formats: {' '.join(_SUFFIXES)}"
    require(files, "no transcripts in this folder", where=path, hint=hint, error=CorpusError)
    several = f"transcripts of several formats ({' '.join(suffixes)})"
    require(len(suffixes) == 1, several, where=path, hint=hint, error=CorpusError)
    found = [_read_in_folder(path, file, is_reference) for file in files]
    left_out = {ALTERNATIVES: [id for each in found for id in each.left_out.get(ALTERNATIVES, ())]}
    items = [item for each in found for item in each.items]
    return _text_file(path, TranscriptFile(found[0].format, items, left_out))


def tokens(line: TextEntry, level: str, rules: Sequence[str]) -> tuple[str, ...]:
    """The tokens of a line on a level, after normalisation by these rules."""
    if level == SYLLABLES:
        return pinyin_tokens(line.pinyin)[0]
    return hanzi_tokens(normalise(line.hanzi, rules))


def _read(path: Path, name: str, is_reference: bool) -> TranscriptFile:
    """Read a file; ``name`` is the id of a file with one text."""
    rows = [(number, "\t".join(fields)) for number, fields in read_rows(path)]
    rows = [(number, line) for number, line in rows if line.strip()]
    require(rows, "the file is empty", where=path, hint="lines of 'id text' are expected", error=CorpusError)
    numbers, lines = zip(*rows, strict=True)
    return read_transcript_file(path, name, lines, numbers, is_reference)


def _read_in_folder(folder: Path, file: Path, is_reference: bool) -> TranscriptFile:
    """Read a file of a folder; all of a ``.txt`` file is one text, without an id."""
    name, suffix = file.relative_to(folder).with_suffix("").as_posix(), file.suffix.lower()
    if suffix == ".txt" or (suffix in (".srt", ".ctm") and not file.stat().st_size):  # of silence
        lines = ["\t".join(fields) for _, fields in read_rows(file)]
        if lines and is_printed_with_times(lines):
            return _read(file, name, is_reference)
        text = " ".join(lines)
        return TranscriptFile(SUBTITLES, [(name, TextEntry(hanzi=text))])
    return _read(file, name, is_reference)


def _text_file(path: Path, found: TranscriptFile) -> TextFile:
    """Lines by id; of several lines with the same id the first is used.

    Raises:
        CorpusError: most lines are text without an id, or repeat an id with another text.
    """
    require(
        found.items,
        "no transcripts",
        where=path,
        hint="give those of one utterance or more",
        error=CorpusError,
    )
    items, problems = _without_tags(path, found.items)
    entries = [entry for _, entry in items]
    if not any(entry.pinyin for entry in entries) and looks_like_pinyin(
        entry.hanzi for entry in entries[:LINES_EXAMINED]
    ):
        items = [(id, replace(entry, hanzi="", pinyin=entry.hanzi)) for id, entry in items]
    lines: dict[str, TextEntry] = {}
    same: list[str] = []
    different: list[str] = []
    for id, line in items:
        first = lines.setdefault(id, line)
        if first is not line:
            (same if first == line else different).append(id)
    if len(different) > MAX_REPEATED * len(items):
        raise CorpusError(
            f"{len(different)} of {len(items)} lines have the id of an earlier line, with another text",
            where=path,
            hint="give one line of 'id text' for each utterance, or CTM, TRN, SubRip or JSON",
        )
    without = [id for id, line in lines.items() if not (line.hanzi or line.pinyin)]
    if found.format == TEXT and sum(map(_is_text, without)) > MAX_WITHOUT_ID * len(lines):
        hint = "give lines of 'id text'; for lines in the same order in all files: awk '{print NR, $0}' FILE"
        raise CorpusError("lines of text without an id", where=path, hint=hint)
    problems += [
        Problem.of(path, "ids that come twice with the same text", same, "the first is used", True),
        Problem.of(path, "ids that come twice with different texts", different, "the first is used"),
        Problem.of(path, "ids without a text", without, "empty"),
        *(Problem.of(path, title, ids, "left out", True) for title, ids in found.left_out.items()),
        *_pinyin_problems(path, lines.values()),
    ]
    shown = tuple(problem for problem in problems if problem.count)
    return TextFile(path, _levels(lines.values()), lines, shown, found.format)


def _is_text(id: str) -> bool:
    """Whether an id is rather a text: hanzi, without the digits that ids have."""
    return any(map(is_hanzi, id)) and not any(map(str.isdecimal, id))


def _levels(entries: Iterable[TextEntry]) -> tuple[str, ...]:
    """The levels that all entries have; syllables only if each text has them."""
    with_text = [entry for entry in entries if entry.hanzi or entry.pinyin]
    if not with_text or not all(entry.pinyin for entry in with_text):
        return (HANZI,)
    return (HANZI, SYLLABLES) if any(entry.hanzi for entry in with_text) else (SYLLABLES,)


def _without_tags(path: Path, items: Items) -> tuple[Items, list[Problem]]:
    """The same items without what is no text, and the remarks on it."""
    problems = []
    for title, pattern in _NO_TEXT.items():
        found = [id for id, entry in items if pattern.search(entry.hanzi)]
        if found:
            items = [(id, replace(entry, hanzi=pattern.sub("", entry.hanzi).strip())) for id, entry in items]
        problems.append(Problem.of(path, title, found, "these are left out", True))
    return items, problems


def _pinyin_problems(path: Path, entries: Iterable[TextEntry]) -> list[Problem]:
    strange: list[str] = []
    syllables = toneless = 0
    for entry in entries:
        found, unknown = pinyin_tokens(entry.pinyin)
        strange += unknown
        syllables += len(found) - len(unknown)
        toneless += sum(not token.startswith("[") and tone_of(token) == 5 for token in found)
    problems = [Problem.of(path, "words that are not Mandarin syllables", strange, "kept in brackets")]
    if toneless > MAX_TONELESS * syllables:
        effect = "read as neutral tone: see the toneless rate"
        problems.append(Problem(str(path), "syllables without a tone (more than half)", toneless, (), effect))
    return problems
