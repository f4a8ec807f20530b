"""Manifest files → their lines as they stand, faults included: what the checks look at.

``data.manifest.read_manifest`` stops at the first line that it can't use; here every line is kept that has
its fields, however wrong they are, so that one look finds everything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from data.manifest import COLUMNS, check_header, find_lists, print_skipped, read_rows, split_of_file
from utils.errors import CorpusError
from utils.mandarin.pinyin import normalise_syllable


@dataclass(frozen=True, slots=True)
class Line:
    """A manifest's line, nothing in it believed yet.

    Attributes:
        number: of the line in its file, from 1; 0 for a recording without a manifest.
        id: of the utterance.
        audio: absolute path.
        seconds: NaN where the field holds no number.
        speaker: ``""`` if not known.
        pinyin: syllables, canonical where they can be read and as they are written elsewhere.
        hanzi: the text.
        spoken: as ``pinyin``, where the corpus has it.
    """

    number: int
    id: str
    audio: str
    seconds: float
    speaker: str
    pinyin: tuple[str, ...]
    hanzi: str
    spoken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listing:
    """A manifest.

    Attributes:
        path: as the user wrote it.
        role: ``train``, ``dev``, ``test``, or ``""`` where neither config nor file name says so.
        lines: those with the right number of fields.
        misshapen: line number and number of fields of the others.
        columns: fields that a line must have.
    """

    path: str
    role: str
    lines: tuple[Line, ...]
    misshapen: tuple[tuple[int, int], ...] = ()
    columns: int = len(COLUMNS)


def read_listing(path: str | Path, role: str | None = None) -> Listing:
    """Read a manifest; a role that is not given is told by the file's name.

    Raises:
        CorpusError: there is no such file, or it is no manifest at all.
    """
    rows = read_rows(path)
    columns = check_header(path, rows)
    folder = str(Path(path).resolve().parent)
    role = split_of_file(Path(path)) if role is None else role
    lines = [_line(number, fields, folder) for number, fields in rows[1:] if len(fields) == columns]
    misshapen = [(number, len(fields)) for number, fields in rows[1:] if len(fields) != columns]
    return Listing(str(path), role, tuple(lines), tuple(misshapen), columns)


def find_manifests(folder: Path) -> list[Path]:
    """The manifests directly in a folder, without those whose utterances are all in the others.

    A corpus often has one list of everything beside those of its splits. Lists of another kind are named on
    the standard error.
    """
    found, others = find_lists(folder)
    print_skipped(others)
    ids = {path: {fields[0] for _, fields in read_rows(path)[1:]} for path in found}
    splits = [path for path in found if split_of_file(path)]
    in_splits = set().union(*(ids[path] for path in splits))
    return [path for path in found if path in splits or not ids[path] or not ids[path] <= in_splits]


@cache
def canonical(syllable: str) -> str | None:
    """A syllable as it is written inside the product; None if it is none."""
    try:
        return normalise_syllable(syllable)
    except CorpusError:
        return None


def of_role(listings: Iterable[Listing], role: str) -> list[Listing]:
    """The listings of one split."""
    return [listing for listing in listings if listing.role == role]


def lines_of(listings: Sequence[Listing]) -> list[Line]:
    """The lines of several listings, one after the other."""
    return [line for listing in listings for line in listing.lines]


def _line(number: int, fields: Sequence[str], folder: str) -> Line:
    name, audio, length, speaker, pinyin, hanzi = fields[:6]
    try:
        seconds = float(length)
    except ValueError:
        seconds = float("nan")
    spoken = _syllables(fields[6]) if len(fields) > 6 else ()
    place = os.path.normpath(os.path.join(folder, audio))  # noqa: PTH118, 130,000 times: pathlib costs seconds
    return Line(number, name, place, seconds, speaker, _syllables(pinyin), hanzi, spoken)


def _syllables(pinyin: str) -> tuple[str, ...]:
    return tuple(map(_spelt, pinyin.split()))


@cache
def _spelt(syllable: str) -> str:
    return canonical(syllable) or syllable
