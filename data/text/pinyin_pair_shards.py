"""Plain texts in; pairs of syllables and hanzi as flat arrays on disk, to train language models on, out.

For each text ``NAME-FINGERPRINT.syllables.npy`` and ``….hanzi.npy``, two bytes a position each, ``….json``
with the counts, and ``….sha256`` with the checksums of these files, which is written last; ``shards.json``
names the texts of the last preparation.
What is there isn't prepared again, down to pieces of a megabyte: a killed preparation goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import starmap
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.text.pinyin_pair_part import PairPart, ReadingCounts, array_path, checksums_path, merged
from data.text.pinyin_pair_pieces import HANZI_LINE_END, PairPiece, PairReader, write_piece
from data.text.sources import read_pieces
from utils.errors import ConfigError, CorpusError
from utils.files import remove_left_over, replacing, write_json
from utils.mandarin.pinyin import full_inventory, reading_version
from utils.processes import WorkerPool

INDEX = "shards.json"
_SPOKEN = "1"  # raise it when spoken variants are found or drawn differently
_UNDER_WAY = 2  # pieces for each process, done or not

Runner = Callable[..., Iterator[int]]  # (work, jobs) → results of work(*job), in the order of the jobs


@dataclass(frozen=True)
class PairShards:
    """The pairs of several texts, in the texts' order."""

    parts: tuple[PairPart, ...]

    @property
    def lines(self) -> int:
        """Lines of all parts."""
        return sum(part.lines for part in self.parts)

    @property
    def hanzi(self) -> int:
        """Hanzi of all parts, without the ends of lines."""
        return sum(part.hanzi for part in self.parts)

    @property
    def rejected(self) -> dict[str, int]:
        """Reason → lines that were left out."""
        return dict(sum((Counter(part.rejected) for part in self.parts), Counter()))

    def count_readings(self) -> ReadingCounts:
        """How often each hanzi is read as each syllable."""
        return merged([part.count_readings() for part in self.parts])

    @classmethod
    def load(cls, folder: str | Path) -> PairShards:
        """What the last preparation in a folder was asked for.

        Raises:
            CorpusError: there was none, it is damaged, or it has another inventory of syllables than ours.
        """
        path = Path(folder) / INDEX
        try:
            index = json.loads(path.read_text(encoding="utf-8"))
            stems, inventory = list(map(str, index["parts"])), index["inventory"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorpusError("no prepared pairs here", where=path, hint="call prepare_pairs") from error
        if inventory != _inventory_hash():
            raise CorpusError(
                "these pairs have another inventory of syllables", where=path, hint="prepare them again"
            )
        return cls(tuple(PairPart.load(Path(folder) / stem) for stem in stems))


def prepare_pairs(
    sources: Sequence[str | Path],
    folder: str | Path,
    workers: int = 0,
    spoken: float = 0.0,
    seed: int = 0,
) -> PairShards:
    """Read texts aloud, and keep the pairs; the order of the lines stays.

    Args:
        sources: UTF-8 texts, one clause of nothing but hanzi a line, packed (``.xz``, ``.gz``, ``.bz2``) or
            not; a line with anything else is left out and counted, see
            ``data.text.pinyin_pair_pieces.REASONS``.
        folder: where the arrays are kept; of several preparations, if wanted.
        workers: processes; 0 means as many as there are CPUs. The result doesn't depend on it.
        spoken: share of the positions that may be said otherwise than cited where it is done
            (``utils.mandarin.sandhi.spoken_variants``); drawn from ``seed`` and the line.

    Raises:
        CorpusError: there are no texts, one can't be read or has no line that can be used, a process died.
        ConfigError: ``spoken`` is no share.
    """
    if not sources:
        raise CorpusError("no texts to prepare", hint="name at least one")
    if not 0 <= spoken <= 1:
        raise ConfigError(f"a share of {spoken} of the positions can't be", hint="spoken is from 0 to 1")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    remove_left_over(folder)
    reader = PairReader(spoken, seed)
    with (
        _runner(workers or os.cpu_count() or 1) as run,
        tqdm(desc="pinyin of texts", unit=" lines", unit_scale=True, disable=None, leave=False) as bar,
    ):
        parts = tuple(_prepared(Path(source), folder, reader, run, bar) for source in sources)
    stems = [part.stem.name for part in parts]
    write_json(folder / INDEX, {"parts": stems, "inventory": _inventory_hash()})
    return PairShards(parts)


@contextmanager
def _runner(workers: int) -> Iterator[Runner]:
    if workers == 1:
        yield starmap
        return
    with closing(WorkerPool(workers)) as pool:
        yield partial(pool.in_order, most=_UNDER_WAY * workers)


def _prepared(source: Path, folder: Path, reader: PairReader, run: Runner, bar: tqdm) -> PairPart:
    stem = folder / f"{source.name.partition('.')[0]}-{_fingerprint(source, reader)}"
    if not checksums_path(stem).is_file():
        pieces: list[Path] = []
        try:
            for lines in run(write_piece, _missing(source, stem, reader, pieces)):
                bar.update(lines)
        except BrokenExecutor as error:
            hint = "was it killed for its memory? run it again with fewer workers: it goes on"
            raise CorpusError("a worker process died", where=source, hint=hint) from error
        _join(source, stem, reader, pieces)
    for piece in folder.glob(f"{stem.name}.piece-*"):
        piece.unlink()
    return PairPart.load(stem)


def _missing(
    source: Path, stem: Path, reader: PairReader, pieces: list[Path]
) -> Iterator[tuple[PairReader, bytes, Path]]:
    """What is to be done for the pieces that no earlier preparation left; ``pieces`` takes in all paths."""
    for number, piece in enumerate(read_pieces(source)):
        pieces.append(stem.with_name(f"{stem.name}.piece-{number:05d}.npz"))
        if not pieces[-1].is_file():
            yield reader, piece, pieces[-1]


def _join(source: Path, stem: Path, reader: PairReader, pieces: Sequence[Path]) -> None:
    """Write the arrays of all pieces one after the other; one piece is in memory at a time."""
    positions = lines = 0
    rejected: Counter[str] = Counter()
    for piece in map(PairPiece.load, pieces):
        positions += len(piece.hanzi)
        lines += int(np.count_nonzero(piece.hanzi == HANZI_LINE_END))
        rejected += piece.rejected  # drops what is 0
    if not lines:
        found = ", ".join(f"{count} lines: {reason}" for reason, count in rejected.items()) or "it is empty"
        raise CorpusError(
            "no line that can be used", where=source, hint=f"{found}; see python -m data.text.cleaning"
        )
    for kind in ("syllables", "hanzi"):
        with replacing(array_path(stem, kind)) as temporary, temporary.open("wb") as file:
            header = {"descr": "<u2", "fortran_order": False, "shape": (positions,)}
            np.lib.format.write_array_header_1_0(file, header)
            for piece in map(PairPiece.load, pieces):
                file.write(getattr(piece, kind).tobytes())
    part = PairPart(stem, str(source), lines, positions - lines, dict(rejected))
    part.save({"inventory": _inventory_hash(), "reading": reading_version(), **asdict(reader)})


def _fingerprint(source: Path, reader: PairReader) -> str:
    """Changes with the text, and with what its syllables are and how they are numbered."""
    try:
        with source.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CorpusError("can't read the text", where=source, hint=error.strerror) from error
    said = f"{_SPOKEN} {reader.spoken} {reader.seed}" if reader.spoken else "cited"
    key = f"{content} {_inventory_hash()} {reading_version()} {said}"
    return hashlib.sha256(key.encode()).hexdigest()[:16]


@cache
def _inventory_hash() -> str:
    return hashlib.sha256(" ".join(full_inventory()).encode()).hexdigest()[:16]
