"""Manifest files (TSV) ⇄ utterances, the one form in which recordings and their texts go through the house.

A manifest has the header ``id audio seconds speaker pinyin hanzi`` and may have ``spoken_pinyin``; ``audio``
is relative to the manifest's folder. A transcript list is ``id pinyin hanzi`` without a header.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from utils.errors import CorpusError
from utils.files import write_text
from utils.pinyin import normalise_syllable

COLUMNS = ("id", "audio", "seconds", "speaker", "pinyin", "hanzi")
SPOKEN = "spoken_pinyin"

Rows = Sequence[tuple[int, list[str]]]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Transcript:
    """A text without a recording: canonical syllables, as many as hanzi."""

    id: str
    pinyin: tuple[str, ...]
    hanzi: str


@dataclass(frozen=True)
class Utterance:
    """One recording and what is said in it.

    Attributes:
        id: unique in its manifest.
        audio: absolute path of the recording.
        seconds: its length.
        speaker: who speaks; ``""`` if not known.
        pinyin: canonical syllables, the citation reading; empty for a recording without speech. From
            pypinyin, 一 and 不 stand in part with their tone changed (``utils.pinyin.hanzi_to_pinyin``).
        hanzi: as many characters as syllables.
        spoken_pinyin: what was said (sandhi, neutral tones) where the corpus notes it and it differs.
    """

    id: str
    audio: Path
    seconds: float
    speaker: str
    pinyin: tuple[str, ...]
    hanzi: str
    spoken_pinyin: tuple[str, ...] = ()


def read_manifest(path: str | Path) -> list[Utterance]:
    """Read a manifest; pinyin of any writing habit becomes canonical.

    Raises:
        CorpusError: naming file and line: no such file, not UTF-8, wrong columns, a value that can't be
            read, an unknown syllable, unequal counts, an id that comes twice.
    """
    path = Path(path)
    rows = read_rows(path)
    columns = check_header(path, rows)
    folder = path.resolve().parent
    utterances = _each(path, rows[1:], lambda fields: _utterance(fields, columns, folder))
    _check_unique(path, [utterance.id for utterance in utterances])
    return utterances


def read_transcripts(path: str | Path) -> list[Transcript]:
    """Read a list of texts, ``id pinyin hanzi`` without a header; of a manifest, just these columns.

    Raises:
        CorpusError: as :func:`read_manifest`.
    """
    path = Path(path)
    rows = read_rows(path)
    if rows and rows[0][1][0] == COLUMNS[0]:
        return [Transcript(u.id, u.pinyin, u.hanzi) for u in read_manifest(path)]
    transcripts = _each(path, rows, _transcript)
    _check_unique(path, [transcript.id for transcript in transcripts])
    return transcripts


def write_manifest(path: str | Path, utterances: Sequence[Utterance]) -> None:
    """Write a manifest, whole or not at all; ``audio`` becomes relative to its folder.

    Raises:
        CorpusError: a field holds a tab or a line break.
    """
    folder = Path(path).resolve().parent
    columns = (*COLUMNS, SPOKEN) if any(u.spoken_pinyin for u in utterances) else COLUMNS
    lines = ["\t".join(columns)]
    for utterance in utterances:
        fields = [
            utterance.id,
            Path(os.path.relpath(utterance.audio, folder)).as_posix(),
            f"{utterance.seconds:.3f}",
            utterance.speaker,
            " ".join(utterance.pinyin),
            utterance.hanzi,
            " ".join(utterance.spoken_pinyin),
        ][: len(columns)]
        if any(set(field) & set("\t\n\r") for field in fields):
            raise CorpusError("a field holds a tab or a line break", where=f"utterance {utterance.id!r}")
        lines.append("\t".join(fields))
    write_text(path, "\n".join(lines) + "\n")


def read_rows(path: str | Path) -> list[tuple[int, list[str]]]:
    """Line numbers from 1 and fields of a UTF-8 file of tab-separated values; empty lines are left out.

    Raises:
        CorpusError: no such file, or not UTF-8 (naming the line).
    """
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise CorpusError("can't read the list of utterances", where=path, hint=error.strerror) from error
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        hint = "convert it, e.g. iconv -f GB18030 -t UTF-8"
        raise CorpusError("this is not UTF-8 text", where=f"{path}:{line}", hint=hint) from error
    lines = text.replace("\r\n", "\n").split("\n")
    return [(number, line.split("\t")) for number, line in enumerate(lines, start=1) if line]


def check_header(path: str | Path, rows: Rows) -> int:
    """Check that ``rows`` begin with a manifest's header and give its number of columns.

    Raises:
        CorpusError: they don't.
    """
    header = rows[0][1] if rows else []
    if tuple(header) not in (COLUMNS, (*COLUMNS, SPOKEN)):
        hint = f"the first line is {' '.join(COLUMNS)} [{SPOKEN}], separated by tabs"
        raise CorpusError("this is not a manifest's header", where=f"{path}:1", hint=hint)
    return len(header)


def _each(path: Path, rows: Rows, parse: Callable[[list[str]], Item]) -> list[Item]:
    """Parse every row; errors get the file and the line."""
    items = []
    for line, fields in rows:
        try:
            items.append(parse(fields))
        except CorpusError as error:
            place = f"{path}:{line}" + (f" ({error.where})" if error.where else "")
            raise CorpusError(error.what, where=place, hint=error.hint) from error
    return items


def _transcript(fields: list[str]) -> Transcript:
    if len(fields) != 3:
        raise CorpusError(f"{len(fields)} fields instead of 3", hint="id, pinyin, hanzi, with tabs between")
    name, pinyin, hanzi = fields
    return Transcript(name, _syllables(name, pinyin, hanzi), hanzi)


def _utterance(fields: list[str], columns: int, folder: Path) -> Utterance:
    if len(fields) != columns:
        raise CorpusError(f"{len(fields)} fields instead of {columns}")
    name, audio, length, speaker, pinyin, hanzi = fields[:6]
    try:
        seconds = float(length)
    except ValueError:
        raise CorpusError(f"'{length}' is not a number of seconds") from None
    if not 0 <= seconds < float("inf"):
        raise CorpusError(f"{length} seconds are not possible")
    spoken = _syllables(name, fields[6], hanzi) if columns > 6 and fields[6] else ()
    # os.path.normpath, not resolve: a manifest of 140,000 lines must not cost as many file-system calls.
    place = Path(os.path.normpath(folder / audio))
    return Utterance(name, place, seconds, speaker, _syllables(name, pinyin, hanzi), hanzi, spoken)


def _syllables(name: str, pinyin: str, hanzi: str) -> tuple[str, ...]:
    syllables = tuple(map(normalise_syllable, pinyin.split()))
    _check_counts(name, syllables, hanzi)
    return syllables


def _check_counts(name: str, pinyin: Sequence[str], hanzi: str) -> None:
    if len(pinyin) != len(hanzi):
        what = f"{len(pinyin)} syllables for {len(hanzi)} hanzi"
        raise CorpusError(what, where=f"utterance {name}", hint="write one syllable a hanzi")


def _check_unique(path: Path, ids: Sequence[str]) -> None:
    twice = next((name for name, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        raise CorpusError(f"the id '{twice}' comes twice", where=path, hint="give each line its own")
