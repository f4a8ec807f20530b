"""Adds pinyin to texts of any size, in parallel processes, and stores the pairs as flat arrays for training.

The files of a text are named ``NAME-FINGERPRINT`` (see ``data.text.pinyin_pair_dataset``), at two bytes per
position and array; ``shards.json`` lists the texts of the last preparation. A text is read in pieces of a
megabyte. A killed preparation continues with the first piece that is missing. Of two preparations of one text
at the same time, one waits for the other.
"""

from __future__ import annotations

import glob
import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.array_store import CacheEntry, write_array_header, write_errors
from data.text.pinyin_pair_dataset import (
    HANZI_LINE_END,
    INDEX,
    SYLLABLE_LINE_END,
    PairDataset,
    PairShard,
    inventory_hash,
    shard_entry,
)
from data.text.sources import decode, piece_pool, read_pieces
from utils.errors import CacheError, CorpusError, require, unreadable
from utils.files import read_arrays, remove_leftovers, replacing, write_json
from utils.mandarin.pinyin import full_inventory, hanzi_to_pinyin, is_hanzi, reading_version
from utils.mandarin.sandhi import spoken_variants
from utils.run_folder.file_lock import exclusive

NOT_HANZI = "not hanzi only"
BEYOND_BMP = "hanzi outside of the BMP"
UNREAD = "hanzi without a reading"
NOT_UTF8 = "not UTF-8"
LONE_CR = "with carriage returns (CR) in place of line ends (LF)"
REASONS = (NOT_HANZI, BEYOND_BMP, UNREAD, NOT_UTF8, LONE_CR)

_VARIANTS_VERSION = "1"  # increase it when spoken variants are found or drawn differently


@dataclass(frozen=True)
class PairPiece:
    """Pairs of a piece of text; the arrays are those of a shard.

    Attributes:
        syllables: (positions,) uint16.
        hanzi: (positions,) uint16.
        rejected: reason → lines; empty lines don't count.
    """

    syllables: np.ndarray
    hanzi: np.ndarray
    rejected: Counter[str]

    @property
    def lines(self) -> int:
        """Lines in the arrays."""
        return int(np.count_nonzero(self.hanzi == HANZI_LINE_END))

    def save(self, path: Path) -> None:
        """Write it as ``.npz``."""
        rejected = np.array([self.rejected[reason] for reason in REASONS])
        with replacing(path) as temporary:
            np.savez(temporary, syllables=self.syllables, hanzi=self.hanzi, rejected=rejected)

    @classmethod
    def load(cls, path: Path) -> PairPiece:
        """Read what :meth:`save` wrote.

        Raises:
            CacheError: it is damaged.
        """
        try:
            saved = read_arrays(path)
            counts = saved["rejected"].tolist()
            if len(counts) == len(REASONS) - 1:  # written before there was the last reason
                counts.append(0)
            rejected = Counter(dict(zip(REASONS, counts, strict=True)))
            return cls(saved["syllables"], saved["hanzi"], rejected)
        except (KeyError, ValueError) as error:
            raise CacheError(
                "a piece of a preparation is damaged",
                where=path,
                hint="delete this file and run the command again",
            ) from error


@dataclass(frozen=True)
class PairReader:
    """Finds the syllables of the hanzi in a text.

    Attributes:
        spoken: fraction of the syllables with a spoken variant (``utils.mandarin.sandhi.spoken_variants``)
            that are replaced by it.
        seed: seed of this choice, which depends on the seed and the line only.
    """

    spoken: float = 0.0
    seed: int = 0

    def read(self, piece: bytes) -> PairPiece:
        """The pairs of some lines of UTF-8 text, one clause of hanzi only per line."""
        text, undecodable = decode(piece)
        rejected = Counter({NOT_UTF8: undecodable})
        lines: list[str] = []
        syllables: list[int] = []
        for line in filter(None, map(str.strip, text.lstrip("\ufeff").split("\n"))):
            if reason := self._append(line, syllables):
                rejected[reason] += 1
            else:
                lines.append(line)
                syllables.append(SYLLABLE_LINE_END)
        hanzi = "".join(f"{line}\n" for line in lines).encode("utf-16-le")
        return PairPiece(np.array(syllables, np.uint16), np.frombuffer(hanzi, "<u2"), rejected)

    def _append(self, line: str, numbers: list[int]) -> str:
        """Append the numbers of a line's syllables, or return the reason why the line can't be used."""
        if not is_hanzi(line):
            return LONE_CR if "\r" in line else NOT_HANZI
        if max(line) > "\uffff":
            return BEYOND_BMP
        try:
            syllables = hanzi_to_pinyin(line)
        except CorpusError:
            return UNREAD
        if self.spoken:
            syllables = self._with_variants(line, syllables)
        numbers += map(_syllable_numbers().__getitem__, syllables)
        return ""

    def _with_variants(self, line: str, syllables: Sequence[str]) -> Sequence[str]:
        readings = spoken_variants(line, syllables)
        if max(map(len, readings)) == 1:
            return syllables
        rng = random.Random(f"{self.seed}\t{line}")
        return [
            rng.choice(variants) if variants and rng.random() < self.spoken else standard
            for standard, *variants in readings
        ]


def write_piece(reader: PairReader, piece: bytes, path: Path) -> int:
    """Write the pairs of a piece of text to ``path``; returns its number of lines. For worker processes."""
    pairs = reader.read(piece)
    pairs.save(path)
    return pairs.lines + pairs.rejected.total()


def prepare_pairs(
    sources: Sequence[str | Path],
    folder: str | Path,
    workers: int = 0,
    spoken: float = 0.0,
    seed: int = 0,
) -> PairDataset:
    """Find the syllables of texts and store the pairs, in the order of the lines.

    Args:
        sources: UTF-8 texts, one clause of hanzi only per line, plain or compressed (``.xz``, ``.gz``,
            ``.bz2``). Other lines are left out and counted, see ``REASONS``.
        folder: folder of the arrays; may be shared by several preparations.
        workers: processes; 0: one for each CPU. The result doesn't depend on it.
        spoken: fraction of the syllables with a spoken variant that are replaced by it, see
            :class:`PairReader`.
        seed: seed of this choice.

    Raises:
        CorpusError: there are no texts, one can't be read or has no usable line, or a process died.
        CacheError: the folder can't be written, or a file in it is damaged.
        ConfigError: ``spoken`` is not a fraction.
    """
    require(sources, "no texts to prepare", hint="name at least one", error=CorpusError)
    require(0 <= spoken <= 1, f"spoken is {spoken}, not a fraction", hint="from 0 to 1")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    reader = PairReader(spoken, seed)
    with (
        write_errors(folder, "pairs of pinyin and hanzi"),
        piece_pool(workers or os.cpu_count() or 1) as run,
        tqdm(desc="pinyin of texts", unit=" lines", unit_scale=True, disable=None, leave=False) as bar,
    ):
        shards = tuple(_prepare_text(Path(source), folder, reader, run, bar) for source in sources)
        names = [shard.name for shard in shards]
        write_json(folder / INDEX, {"parts": names, "inventory": inventory_hash()})
    return PairDataset(shards)


def _prepare_text(source: Path, folder: Path, reader: PairReader, run: Callable, bar: tqdm) -> PairShard:
    entry = shard_entry(folder / f"{source.name.partition('.')[0]}-{_fingerprint(source, reader)}")
    with exclusive(entry.path("lock")):  # another training may prepare the same text
        if not entry.is_complete():
            pieces: list[Path] = []
            for lines in run(source, write_piece, _missing_pieces(source, entry, reader, pieces)):
                bar.update(lines)
            _join(source, entry, reader, pieces)
        for piece in folder.glob(f"{glob.escape(entry.stem.name)}.piece-*"):
            piece.unlink()
        entry.path("lock").unlink(missing_ok=True)  # those who wait for it will find a complete entry
    return PairShard.load(entry)


def _missing_pieces(
    source: Path, entry: CacheEntry, reader: PairReader, pieces: list[Path]
) -> Iterator[tuple[PairReader, bytes, Path]]:
    """Jobs for the pieces that no earlier preparation has written; the paths of all are put in ``pieces``."""
    for number, piece in enumerate(read_pieces(source)):
        pieces.append(entry.path(f"piece-{number:05d}.npz"))
        if not pieces[-1].is_file():
            yield reader, piece, pieces[-1]


def _join(source: Path, entry: CacheEntry, reader: PairReader, pieces: Sequence[Path]) -> None:
    """Write the arrays of all pieces one after the other; one piece is in memory at a time."""
    positions = lines = 0
    rejected: Counter[str] = Counter()
    for piece in map(PairPiece.load, pieces):
        positions += len(piece.hanzi)
        lines += piece.lines
        rejected += piece.rejected  # drops zeros
    if not lines:
        counts = ", ".join(f"{count} lines: {reason}" for reason, count in rejected.items())
        raise CorpusError(
            "no usable line",
            where=source,
            hint=f"{counts or 'it is empty'}; see python -m data.text.cleaning",
        )
    with entry.writing():
        for name in ("syllables", "hanzi"):
            with replacing(entry.path(f"{name}.npy")) as temporary, temporary.open("wb") as file:
                write_array_header(file, (positions,), np.dtype("<u2"))
                for piece in map(PairPiece.load, pieces):
                    file.write(getattr(piece, name).tobytes())
        counts = {"source": str(source), "lines": lines, "hanzi": positions - lines, "rejected": rejected}
        versions = {"inventory": inventory_hash(), "reading": reading_version()}
        write_json(entry.path("json"), counts | versions | asdict(reader))


def _fingerprint(source: Path, reader: PairReader) -> str:
    """Changes with the text, with its syllables and with their numbers."""
    try:
        with source.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(CorpusError, "can't read the text", source, error) from error
    variants = f"{_VARIANTS_VERSION} {reader.spoken} {reader.seed}" if reader.spoken else "cited"
    key = f"{content} {inventory_hash()} {reading_version()} {variants}"
    return hashlib.sha256(key.encode()).hexdigest()[:16]


@cache
def _syllable_numbers() -> dict[str, int]:
    return {syllable: number for number, syllable in enumerate(full_inventory(), start=1)}
