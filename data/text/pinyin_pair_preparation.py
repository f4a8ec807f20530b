"""Adds pinyin to texts of any size, in parallel processes, and stores the pairs as flat arrays for training.

The files of a text are named ``NAME-FINGERPRINT`` (see ``data.text.pinyin_pair_dataset``), at two bytes per
position and array. A text is read in pieces of a megabyte, and the arrays of the pieces are written one after
the other.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from tqdm import tqdm

from data.array_store import write_errors
from data.text.pinyin_pair_dataset import (
    HANZI_LINE_END,
    SYLLABLE_LINE_END,
    PairDataset,
    PairShard,
    shard_entry,
)
from data.text.sources import PIECE, decode, read_pieces, worker_died
from utils.errors import CorpusError, require, unreadable
from utils.files import remove_leftovers, replacing, write_json
from utils.mandarin.pinyin import full_inventory, hanzi_to_pinyin, is_hanzi, reading_version
from utils.mandarin.sandhi import spoken_variants
from utils.processes import ordered_workers
from utils.run_folder.checksum_files import file_hash

NOT_HANZI = "not hanzi only"
BEYOND_BMP = "hanzi outside of the BMP"
UNREAD = "hanzi without a reading"
NOT_UTF8 = "not UTF-8"
LONE_CR = "with carriage returns (CR) in place of line ends (LF)"

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
        return PairPiece(np.array(syllables, "<u2"), np.frombuffer(hanzi, "<u2"), rejected)

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


def prepare_pairs(
    sources: Sequence[str | Path],
    folder: str | Path,
    spoken: float = 0.0,
    seed: int = 0,
) -> PairDataset:
    """Find the syllables of texts and store the pairs, in the order of the lines.

    If a text is large, there is a process for each CPU; the result doesn't depend on their number.

    Args:
        sources: UTF-8 texts, one clause of hanzi only per line, plain or compressed (``.xz``, ``.gz``,
            ``.bz2``). Other lines are left out and counted by reason.
        folder: folder of the arrays; may be shared by several preparations.
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
    is_large = any(Path(source).is_file() and Path(source).stat().st_size > PIECE for source in sources)
    workers = (os.cpu_count() or 1) if is_large else 1
    with (
        write_errors(folder, "pairs of pinyin and hanzi"),
        ordered_workers(workers) as run,
        tqdm(desc="pinyin of texts", unit=" lines", unit_scale=True, disable=None, leave=False) as bar,
    ):
        return PairDataset(tuple(_prepare_text(Path(source), folder, reader, run, bar) for source in sources))


def _prepare_text(source: Path, folder: Path, reader: PairReader, run: Callable, bar: tqdm) -> PairShard:
    entry = shard_entry(folder / f"{source.name.partition('.')[0]}-{_fingerprint(source, reader)}")
    if entry.is_complete():
        return PairShard.load(entry)
    positions = lines = 0
    rejected: Counter[str] = Counter()
    with entry.writing():
        with (
            replacing(entry.path("syllables")) as syllables_path,
            replacing(entry.path("hanzi")) as hanzi_path,
            syllables_path.open("wb") as syllables,
            hanzi_path.open("wb") as hanzi,
        ):
            for piece in run(reader.read, ((piece,) for piece in read_pieces(source)), worker_died(source)):
                syllables.write(piece.syllables.tobytes())
                hanzi.write(piece.hanzi.tobytes())
                positions += len(piece.hanzi)
                lines += piece.lines
                rejected += piece.rejected  # drops zeros
                bar.update(piece.lines + piece.rejected.total())
            if not lines:
                counts = ", ".join(f"{count} lines: {reason}" for reason, count in rejected.items())
                raise CorpusError(
                    "no usable line",
                    where=source,
                    hint=f"{counts or 'it is empty'}; see python -m data.text.cleaning",
                )
        counts = {"source": str(source), "lines": lines, "hanzi": positions - lines, "rejected": rejected}
        write_json(entry.path("json"), counts | {"reading": reading_version()} | asdict(reader))
    return PairShard.load(entry)


def _fingerprint(source: Path, reader: PairReader) -> str:
    """Changes with the text, with its syllables and with their numbers."""
    try:
        content = file_hash(source)
    except OSError as error:
        raise unreadable(CorpusError, "can't read the text", source, error) from error
    variants = f"{_VARIANTS_VERSION} {reader.spoken} {reader.seed}" if reader.spoken else "cited"
    key = f"{content} {' '.join(full_inventory())} {reading_version()} {variants}"
    return hashlib.sha256(key.encode()).hexdigest()[:16]


@cache
def _syllable_numbers() -> dict[str, int]:
    return {syllable: number for number, syllable in enumerate(full_inventory(), start=1)}
