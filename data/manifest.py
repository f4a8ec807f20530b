"""Manifest files (TSV) ⇄ utterances, the one form in which recordings and their texts go through the house.

A manifest has the header ``id audio seconds speaker pinyin hanzi`` and may have ``spoken_pinyin``; ``audio``
is relative to the manifest's folder. A transcript list is ``id pinyin hanzi`` without a header.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from utils.errors import CorpusError
from utils.files import replacing
from utils.mandarin.pinyin import normalise_syllable

COLUMNS = ("id", "audio", "seconds", "speaker", "pinyin", "hanzi")
SPOKEN = "spoken_pinyin"

REJECTED = "rejected.tsv"  # what a preparation writes beside the manifests
ROLES = ("train", "dev", "test")

Row = tuple[int, list[str]]  # line number from 1, fields
Item = TypeVar("Item", "Utterance", "Transcript")


@dataclass(frozen=True, slots=True)
class Transcript:
    """A text without a recording: canonical syllables, as many as hanzi."""

    id: str
    pinyin: tuple[str, ...]
    hanzi: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recording and what is said in it.

    Attributes:
        id: unique in its manifest.
        audio: absolute path of the recording.
        seconds: its length.
        speaker: who speaks; ``""`` if not known.
        pinyin: canonical syllables, the citation reading; empty for a recording without speech. From
            pypinyin, 一 and 不 stand in part with their tone changed
            (``utils.mandarin.pinyin.hanzi_to_pinyin``).
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
    rows = _rows(path)
    columns = check_header(path, list(islice(rows, 1)))
    folder = str(path.resolve().parent)
    return _each(path, rows, lambda fields: _utterance(fields, columns, folder))


def read_transcripts(path: str | Path) -> list[Transcript]:
    """Read a list of texts, ``id pinyin hanzi`` without a header; of a manifest, just these columns.

    Raises:
        CorpusError: as :func:`read_manifest`.
    """
    path = Path(path)
    rows = _rows(path)
    first = list(islice(rows, 1))
    if first and first[0][1][0] == COLUMNS[0]:
        return [Transcript(u.id, u.pinyin, u.hanzi) for u in read_manifest(path)]
    return _each(path, chain(first, rows), _transcript)


def write_manifest(path: str | Path, utterances: Sequence[Utterance]) -> None:
    """Write a manifest, whole or not at all; ``audio`` becomes relative to its folder.

    Raises:
        CorpusError: a field holds a tab or a line break.
    """
    columns = (*COLUMNS, SPOKEN) if any(u.spoken_pinyin for u in utterances) else COLUMNS
    folder = Path(path).resolve().parent

    @cache
    def relative(parent: str) -> str:
        return os.path.relpath(parent, folder)

    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        for utterance in utterances:
            parent, name = os.path.split(utterance.audio)
            audio = Path(relative(parent or "."), name).as_posix()
            fields = _fields(utterance, audio)[: len(columns)]
            if any(set(field) & set("\t\n\r") for field in fields):
                what = "a field holds a tab or a line break"
                raise CorpusError(what, where=f"utterance {utterance.id!r}")
            file.write("\t".join(fields) + "\n")


def read_rows(path: str | Path) -> list[Row]:
    """Line numbers from 1 and fields of a UTF-8 file of tab-separated values; empty lines are left out.

    Raises:
        CorpusError: no such file, or not UTF-8 (naming the line).
    """
    return list(_rows(path))


def _rows(path: str | Path) -> Iterator[Row]:
    """As :func:`read_rows`, one after the other: a list of 140,000 lines is never in memory whole."""
    try:
        with Path(path).open("rb") as file:
            for number, content in enumerate(file, start=1):
                line = content.decode("utf-8-sig" if number == 1 else "utf-8")
                line = line.removesuffix("\n").removesuffix("\r")
                if line:
                    yield number, line.split("\t")
    except OSError as error:
        raise CorpusError("can't read the list of utterances", where=path, hint=error.strerror) from error
    except UnicodeDecodeError as error:
        hint = "convert it, e.g. iconv -f GB18030 -t UTF-8"
        raise CorpusError("this is not UTF-8 text", where=f"{path}:{number}", hint=hint) from error


def check_header(path: str | Path, rows: Sequence[Row]) -> int:
    """Check that ``rows`` begin with a manifest's header and give its number of columns.

    Raises:
        CorpusError: they don't.
    """
    header = rows[0][1] if rows else []
    if tuple(header) not in (COLUMNS, (*COLUMNS, SPOKEN)):
        hint = f"the first line is {' '.join(COLUMNS)} [{SPOKEN}], separated by tabs"
        raise CorpusError("this is not a manifest's header", where=f"{path}:1", hint=hint)
    return len(header)


def is_manifest(path: Path) -> bool:
    """Whether a file begins with a manifest's header."""
    try:
        with path.open("rb") as file:
            start = file.read(3 + 100)  # a byte-order mark, and more than the header
    except OSError:
        return False
    return start.removeprefix(b"\xef\xbb\xbf").startswith("\t".join(COLUMNS).encode())


def role_of(path: Path) -> str:
    """The split that a file's name speaks of (``test_noisy.tsv`` is a test); ``""`` if none."""
    return next((role for role in ROLES if path.name.lower().startswith(role)), "")


def lists_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """The lists (``*.tsv``) directly in a folder: those to read as manifests, and the others.

    A list is read if it is named after a split, whatever its header (a wrong one is then an error), or if it
    has a manifest's header. What a preparation has rejected is in neither.
    """
    lists = sorted(path for path in folder.glob("*.tsv") if path.name != REJECTED)
    read = [path for path in lists if role_of(path) or is_manifest(path)]
    return read, [path for path in lists if path not in read]


def note_skipped(lists: Sequence[Path]) -> None:
    """Say on the standard error which lists of a folder are not read, if there are any."""
    if lists:
        names = ", ".join(map(str, lists))
        print(f"note: not read, since these have no manifest's header: {names}", file=sys.stderr)


def _each(path: Path, rows: Iterable[Row], parse: Callable[[list[str]], Item]) -> list[Item]:
    """Parse every row; errors get the file and the line."""
    items: list[Item] = []
    lines: dict[str, int] = {}
    with _no_search_for_cycles():
        for line, fields in rows:
            try:
                item = parse(fields)
                first = lines.setdefault(item.id, line)
                if first != line:
                    what = f"the id '{item.id}' comes twice, first in line {first}"
                    raise CorpusError(what, hint="give each line its own")
            except CorpusError as error:
                place = f"{path}:{line}" + (f" ({error.where})" if error.where else "")
                raise CorpusError(error.what, where=place, hint=error.hint) from error
            items.append(item)
    return items


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Utterances hold none, and while they are made Python would look for some in a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _fields(utterance: Utterance, audio: str) -> list[str]:
    """All fields of a line, the spoken reading included."""
    return [
        utterance.id,
        audio,
        f"{utterance.seconds:.3f}",
        utterance.speaker,
        " ".join(utterance.pinyin),
        utterance.hanzi,
        " ".join(utterance.spoken_pinyin),
    ]


def _transcript(fields: list[str]) -> Transcript:
    if len(fields) != 3:
        raise CorpusError(f"{len(fields)} fields instead of 3", hint="id, pinyin, hanzi, with tabs between")
    name, pinyin, hanzi = fields
    return Transcript(name, _syllables(name, pinyin, hanzi), hanzi)


def _utterance(fields: list[str], columns: int, folder: str) -> Utterance:
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
    # normpath, not resolve: a manifest of 140,000 lines must not cost as many file-system calls.
    place = Path(os.path.normpath(os.path.join(folder, audio)))  # noqa: PTH118 - a third of Path's time
    syllables = _syllables(name, pinyin, hanzi)
    return Utterance(name, place, seconds, sys.intern(speaker), syllables, hanzi, spoken)


def _syllables(name: str, pinyin: str, hanzi: str) -> tuple[str, ...]:
    syllables = tuple(map(normalise_syllable, pinyin.split()))
    _check_counts(name, syllables, hanzi)
    return syllables


def _check_counts(name: str, pinyin: Sequence[str], hanzi: str) -> None:
    if len(pinyin) != len(hanzi):
        what = f"{len(pinyin)} syllables for {len(hanzi)} hanzi"
        raise CorpusError(what, where=f"utterance {name}", hint="write one syllable a hanzi")
