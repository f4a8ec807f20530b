"""Reads and writes manifests: TSV files that list recordings with their transcripts, one utterance per line.

A manifest has the header ``id audio seconds speaker pinyin hanzi`` and may have a column ``spoken_pinyin``;
``audio`` is relative to the manifest's folder, absolute, or an address (:mod:`utils.object_store`). A
transcript list is ``id pinyin hanzi`` without a header.
"""

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

import numpy as np

from utils.addresses import address_of
from utils.errors import CorpusError, unreadable
from utils.files import conversion_hint, replacing
from utils.mandarin.pinyin import normalise_syllable
from utils.object_store import open_file

COLUMNS = ("id", "audio", "seconds", "speaker", "pinyin", "hanzi")
SPOKEN = "spoken_pinyin"

REJECTED = "rejected.tsv"  # written beside the manifests when a corpus is prepared
SPLITS = ("train", "dev", "test")

Row = tuple[int, list[str]]  # line number from 1, fields
Item = TypeVar("Item", "Utterance", "Transcript")


@dataclass(frozen=True, slots=True)
class Transcript:
    """A text without a recording: canonical syllables, one for each hanzi."""

    id: str
    pinyin: tuple[str, ...]
    hanzi: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """A recording and its transcript.

    Attributes:
        id: unique in its manifest.
        audio: absolute path of the recording, or its address as a path.
        seconds: length of the recording.
        speaker: the speaker's name; ``""`` if unknown.
        pinyin: canonical syllables, the citation reading; empty for a recording without speech. Where the
            reading is pypinyin's, 一 and 不 may have changed their tone
            (``utils.mandarin.pinyin.hanzi_to_pinyin``).
        hanzi: one character for each syllable.
        spoken_pinyin: the syllables as pronounced (sandhi, neutral tones), if the corpus has them and they
            differ from ``pinyin``.
    """

    id: str
    audio: Path
    seconds: float
    speaker: str
    pinyin: tuple[str, ...]
    hanzi: str
    spoken_pinyin: tuple[str, ...] = ()


def read_manifest(path: str | Path) -> list[Utterance]:
    """Read a manifest and convert its pinyin, written in any style, to canonical syllables.

    Raises:
        CorpusError: with file and line: no such file, not UTF-8, wrong columns, a value that can't be
            parsed, an unknown syllable, unequal counts, a duplicate id.
    """
    path = Path(path)
    rows = _iterate_rows(path)
    columns = check_header(path, list(islice(rows, 1)))
    folder = folder_of(path)
    return _parse_rows(path, rows, lambda fields: _parse_utterance(fields, columns, folder))


def find_lines(path: str | Path) -> np.ndarray:
    """Where the lines of a manifest begin: (utterances,) int64 bytes, for :func:`read_lines`.

    Raises:
        CorpusError: no such file, or it is not a manifest.
    """
    check_header(path, list(islice(_iterate_rows(Path(path)), 1)))
    with open_file(path) as file:
        lengths = np.fromiter(map(len, file), np.int64)
    return (np.cumsum(lengths) - lengths)[1:][lengths[1:] > 2]  # neither the header nor empty lines


def read_ids(path: str | Path) -> Iterator[str]:
    """Yield the ids of a manifest's utterances one by one, as many as :func:`find_lines` finds.

    Raises:
        CorpusError: no such file, it is not a manifest, or not UTF-8.
    """
    rows = _iterate_rows(Path(path))
    check_header(path, list(islice(rows, 1)))
    for _, fields in rows:
        yield fields[0]


def read_lines(path: str | Path, starts: Iterable[int]) -> list[Utterance]:
    """Read the utterances whose lines begin at these bytes; their ids are not compared with each other.

    Raises:
        CorpusError: as :func:`read_manifest`.
    """
    columns = check_header(path, list(islice(_iterate_rows(Path(path)), 1)))
    folder, utterances = folder_of(path), []
    with open_file(path) as file:
        for start in starts:
            file.seek(int(start))
            try:
                fields = file.readline().decode("utf-8").rstrip("\r\n").split("\t")
                utterances.append(_parse_utterance(fields, columns, folder))
            except (CorpusError, UnicodeDecodeError) as error:
                raise CorpusError(
                    f"not a line of a manifest ({error})", where=f"{path}, byte {start}"
                ) from error
    return utterances


def read_transcripts(path: str | Path) -> list[Transcript]:
    """Read a list of texts, ``id pinyin hanzi`` without a header; of a manifest, only these columns.

    Raises:
        CorpusError: as :func:`read_manifest`.
    """
    path = Path(path)
    rows = _iterate_rows(path)
    first = list(islice(rows, 1))
    if first and first[0][1][0] == COLUMNS[0]:
        return [Transcript(u.id, u.pinyin, u.hanzi) for u in read_manifest(path)]
    return _parse_rows(path, chain(first, rows), _parse_transcript)


def write_manifest(path: str | Path, utterances: Sequence[Utterance]) -> None:
    """Write a manifest, completely or not at all; paths of recordings become relative to its folder.

    If ``path`` is a link, the file that it leads to is written.

    Raises:
        CorpusError: a field contains a tab or a line break, or is not UTF-8.
    """
    columns = (*COLUMNS, SPOKEN) if any(u.spoken_pinyin for u in utterances) else COLUMNS
    path = Path(path).resolve()

    @cache
    def relative(parent: str) -> str:
        return os.path.relpath(parent, path.parent)

    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        for utterance in utterances:
            parent, name = os.path.split(utterance.audio)
            fields = [
                utterance.id,
                address_of(utterance.audio) or Path(relative(parent or "."), name).as_posix(),
                f"{utterance.seconds:.3f}",
                utterance.speaker,
                " ".join(utterance.pinyin),
                utterance.hanzi,
                " ".join(utterance.spoken_pinyin),
            ][: len(columns)]
            if any(set(field) & set("\t\n\r") for field in fields):
                raise CorpusError(
                    "a field contains a tab or a line break", where=f"utterance {utterance.id!r}"
                )
            try:
                file.write("\t".join(fields) + "\n")
            except UnicodeEncodeError as error:
                raise CorpusError(
                    "a field is not UTF-8", where=f"utterance {utterance.id}", hint="rename the recording"
                ) from error


def read_rows(path: str | Path) -> list[Row]:
    """Read line numbers from 1 and fields of a UTF-8 file of tab-separated values, without empty lines.

    Raises:
        CorpusError: no such file, or not UTF-8 (with the line).
    """
    return list(_iterate_rows(path))


def _iterate_rows(path: str | Path) -> Iterator[Row]:
    """As :func:`read_rows`, row by row: a list of 140,000 lines is never in memory as a whole."""
    try:
        with open_file(path) as file:
            for number, content in enumerate(file, start=1):
                line = content.decode("utf-8-sig" if number == 1 else "utf-8")
                line = line.removesuffix("\n").removesuffix("\r")
                if line:
                    yield number, line.split("\t")
    except OSError as error:
        raise unreadable(CorpusError, "can't read the list of utterances", path, error) from error
    except UnicodeDecodeError as error:
        hint = conversion_hint(path, content)
        raise CorpusError("not UTF-8 text", where=f"{path}:{number}", hint=hint) from error


def folder_of(path: str | Path) -> str:
    """Folder of a manifest, absolute unless it is an address."""
    return str(Path(path).parent if address_of(path) else Path(path).resolve().parent)


def audio_path(folder: str, audio: str) -> str:
    """Path of a recording, which is relative to the manifest's folder, absolute or an address."""
    # normpath, not resolve: a manifest of 140,000 lines must not cost as many file-system calls.
    joined = audio if address_of(audio) else os.path.join(folder, audio)  # noqa: PTH118 - a third of Path's time
    return os.path.normpath(joined)


def check_header(path: str | Path, rows: Sequence[Row]) -> int:
    """Check that ``rows`` begin with a manifest's header and return its number of columns.

    Raises:
        CorpusError: they do not.
    """
    header = rows[0][1] if rows else []
    if tuple(header) not in (COLUMNS, (*COLUMNS, SPOKEN)):
        raise CorpusError(
            f"not a manifest's header, '{' '.join(header)}'",
            where=f"{path}:1",
            hint=f"the first line is {' '.join(COLUMNS)} [{SPOKEN}], separated by tabs; python -m "
            "data.corpora.manifest_lists prepare FOLDER makes them of lists 'audio pinyin hanzi' (with tabs)",
        )
    return len(header)


def is_manifest(path: Path) -> bool:
    """Whether a file begins with a manifest's header."""
    try:
        with path.open("rb") as file:
            start = file.read(3 + 100)  # a byte-order mark, and more than the header
    except OSError:
        return False
    return start.removeprefix(b"\xef\xbb\xbf").startswith("\t".join(COLUMNS).encode())


def split_of_file(path: Path) -> str:
    """The split of ``test_noisy.tsv`` or ``thchs_test.txt``, by its name; ``""`` if it has none."""
    name = path.stem.lower()
    return next((split for split in SPLITS if name.startswith(split) or name.endswith(f"_{split}")), "")


def _parse_rows(path: Path, rows: Iterable[Row], parse: Callable[[list[str]], Item]) -> list[Item]:
    """Parse every row; adds file and line to the errors."""
    items: list[Item] = []
    lines: dict[str, int] = {}
    with _without_garbage_collection():
        for line, fields in rows:
            try:
                item = parse(fields)
                first = lines.setdefault(item.id, line)
                if first != line:
                    raise CorpusError(
                        f"duplicate id '{item.id}', first in line {first}", hint="give each line its own id"
                    )
            except CorpusError as error:
                raise CorpusError(
                    error.message,
                    where=f"{path}:{line}" + (f" ({error.where})" if error.where else ""),
                    hint=error.hint,
                ) from error
            items.append(item)
    return items


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Utterances have no reference cycles, and searching for cycles would take a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parse_transcript(fields: list[str]) -> Transcript:
    if len(fields) != 3:
        raise CorpusError(f"{len(fields)} fields instead of 3", hint="id, pinyin, hanzi, separated by tabs")
    name, pinyin, hanzi = fields
    return Transcript(name, _parse_pinyin(name, pinyin, hanzi), hanzi)


def _parse_utterance(fields: list[str], columns: int, folder: str) -> Utterance:
    if len(fields) != columns:
        raise CorpusError(f"{len(fields)} fields instead of {columns}")
    name, audio, length, speaker, pinyin, hanzi = fields[:6]
    try:
        seconds = float(length)
    except ValueError:
        raise CorpusError(f"'{length}' is not a number of seconds") from None
    if not 0 <= seconds < float("inf"):
        raise CorpusError(f"{length} seconds are not possible")
    spoken_pinyin = _parse_pinyin(name, fields[6], hanzi) if columns > 6 and fields[6] else ()
    path = Path(audio_path(folder, audio))
    syllables = _parse_pinyin(name, pinyin, hanzi)
    return Utterance(name, path, seconds, sys.intern(speaker), syllables, hanzi, spoken_pinyin)


def _parse_pinyin(name: str, pinyin: str, hanzi: str) -> tuple[str, ...]:
    syllables = tuple(map(normalise_syllable, pinyin.split()))
    if len(syllables) != len(hanzi):
        raise CorpusError(
            f"syllables and hanzi differ in number: {len(syllables)} and {len(hanzi)}",
            where=f"utterance {name}",
            hint="write one syllable for each hanzi; data.corpora.manifest_lists fills an empty column",
        )
    return syllables
