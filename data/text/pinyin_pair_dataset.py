"""Opens prepared pairs of pinyin and hanzi as memory-mapped arrays, and cuts rows of a model's ids from them.

The pairs of one text are a shard: two flat arrays, syllables and hanzi. They don't depend on a vocabulary: a
syllable is its index in the full inventory plus 1, a hanzi is its code point. Tables map both to the ids of a
model. ``data.text.pinyin_pair_preparation`` writes the files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data.array_store import CacheEntry
from utils.mandarin.pinyin import full_inventory

SYLLABLE_LINE_END, HANZI_LINE_END = 0, ord("\n")
_COUNTED_TOGETHER = 1 << 22  # positions; limits the memory that counting needs


class Pair(NamedTuple):
    """A sentence: its canonical syllables and its hanzi, of the same number."""

    pinyin: tuple[str, ...]
    hanzi: str


@dataclass(frozen=True)
class ReadingCounts:
    """How often hanzi are read as syllables.

    Attributes:
        keys: (n,) uint32, ascending: a syllable as in a shard << 16 | a code point.
        counts: (n,) int64.
    """

    keys: np.ndarray
    counts: np.ndarray

    @property
    def syllables(self) -> np.ndarray:
        """(n,) uint16, as in a shard: index in the full inventory + 1."""
        return (self.keys >> np.uint32(16)).astype(np.uint16)

    @property
    def hanzi(self) -> np.ndarray:
        """(n,) uint16, code points."""
        return self.keys.astype(np.uint16)

    def named(self) -> Iterator[tuple[str, str, int]]:
        """(syllable, hanzi, count) of each reading."""
        inventory = full_inventory()
        rows = zip(self.syllables.tolist(), self.hanzi.tolist(), self.counts.tolist(), strict=True)
        return ((inventory[syllable - 1], chr(code), count) for syllable, code, count in rows)

    @classmethod
    def total(cls, parts: Sequence[ReadingCounts]) -> ReadingCounts:
        """The sum of several counts."""
        keys, rows = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, rows, np.concatenate([part.counts for part in parts]))
        return cls(keys, counts)


@dataclass(frozen=True)
class PairShard:
    """The pairs of one text; its arrays are memory-mapped.

    Attributes:
        entry: the files of the shard.
        line_count: lines in the arrays.
        hanzi_count: hanzi in the arrays.
        rejected: reason → number of lines that were left out.
    """

    entry: CacheEntry
    line_count: int
    hanzi_count: int
    rejected: dict[str, int]

    @property
    def name(self) -> str:
        """Name of the files, without their endings."""
        return self.entry.stem.name

    def __len__(self) -> int:
        """Positions: hanzi and line ends."""
        return self.hanzi_count + self.line_count

    @cached_property
    def syllables(self) -> np.ndarray:
        """(positions,) uint16: index in the full inventory + 1; ``SYLLABLE_LINE_END`` ends a line."""
        return np.memmap(self.entry.path("syllables"), "<u2", "r")

    @cached_property
    def hanzi(self) -> np.ndarray:
        """(positions,) uint16: code points; ``HANZI_LINE_END`` ends a line."""
        return np.memmap(self.entry.path("hanzi"), "<u2", "r")

    def count_readings(self) -> ReadingCounts:
        """How often each hanzi is read as each syllable."""
        starts = range(0, len(self), _COUNTED_TOGETHER)
        return ReadingCounts.total([self._count(start, start + _COUNTED_TOGETHER) for start in starts])

    def _count(self, start: int, stop: int) -> ReadingCounts:
        hanzi = self.hanzi[start:stop]
        keys = self.syllables[start:stop].astype(np.uint32) << np.uint32(16) | hanzi
        return ReadingCounts(*np.unique(keys[hanzi != HANZI_LINE_END], return_counts=True))

    def pairs(self) -> Iterator[Pair]:
        """The lines."""
        names, start = ("", *full_inventory()), 0
        for end in np.flatnonzero(self.hanzi == HANZI_LINE_END).tolist():
            syllables = tuple(names[number] for number in self.syllables[start:end].tolist())
            yield Pair(syllables, self.hanzi[start:end].tobytes().decode("utf-16-le"))
            start = end + 1

    @classmethod
    def load(cls, entry: CacheEntry) -> PairShard:
        """Read the counts and check all files; the arrays are opened when they are first used.

        Raises:
            CacheError: a file is missing or damaged.
        """
        with entry.reading():
            saved = json.loads(entry.path("json").read_text(encoding="utf-8"))
            return cls(entry, saved["lines"], saved["hanzi"], saved["rejected"])


@dataclass(frozen=True)
class PairDataset:
    """The pairs of several texts, in the order of the texts."""

    shards: tuple[PairShard, ...]

    @property
    def hanzi_count(self) -> int:
        """Hanzi of all texts, without line ends."""
        return sum(shard.hanzi_count for shard in self.shards)

    @property
    def rejected(self) -> dict[str, int]:
        """Reason → number of lines that were left out."""
        return dict(sum((Counter(shard.rejected) for shard in self.shards), Counter()))

    def count_readings(self) -> ReadingCounts:
        """How often each hanzi is read as each syllable."""
        return ReadingCounts.total([shard.count_readings() for shard in self.shards])


class PairRows:
    """All positions of some shards as rows of equal length.

    Each shard is cut separately; its first and last row are padded.

    Args:
        shards: the shards; their arrays stay on disk.
        length: positions per row.
        syllable_ids: table from :func:`syllable_table`.
        hanzi_ids: table from :func:`hanzi_table`.

    Attributes:
        length: positions per row.
    """

    def __init__(
        self, shards: Sequence[PairShard], length: int, syllable_ids: np.ndarray, hanzi_ids: np.ndarray
    ):
        self._shards, self.length = shards, length
        self._syllable_ids, self._hanzi_ids = syllable_ids, hanzi_ids
        # One row more than fits. With a large offset, the last positions are in no row in this epoch.
        self._ends = np.cumsum([self._row_count(shard) for shard in shards])

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._ends[-1])

    def read(self, rows: np.ndarray, offset: int) -> tuple[np.ndarray, np.ndarray]:
        """Syllables and hanzi of some rows, (rows, length) int32 each, 0 outside of a text.

        Args:
            rows: (rows,) int, their indices.
            offset: positions by which the first row of each shard begins before it; less than a row.
        """
        syllables, hanzi = (np.zeros((len(rows), self.length), np.int32) for _ in range(2))
        for targets, shard, positions in self._positions(rows, offset):
            inside = (positions >= 0) & (positions < len(shard))
            mask = np.zeros(syllables.shape, bool)
            mask[targets] = inside
            syllables[mask] = self._syllable_ids[shard.syllables[positions[inside]]]
            hanzi[mask] = self._hanzi_ids[shard.hanzi[positions[inside]]]
        return syllables, hanzi

    def names(self, rows: np.ndarray, offset: int) -> list[str]:
        """Text and first position of each of the rows, (rows,) int, for messages."""
        names = [""] * len(rows)
        for targets, shard, positions in self._positions(rows, offset):
            for target, first in zip(targets, positions[:, 0].tolist(), strict=True):
                names[target] = f"{shard.name}:{max(first, 0)}"
        return names

    def _positions(self, rows: np.ndarray, offset: int) -> Iterator[tuple[np.ndarray, PairShard, np.ndarray]]:
        """For each shard: which of the rows it holds, the shard, their positions in it (rows, length)."""
        owners = np.searchsorted(self._ends, rows, side="right")
        for owner in np.unique(owners):
            targets = np.flatnonzero(owners == owner)
            shard = self._shards[owner]
            first = self._ends[owner] - self._row_count(shard)
            starts = (rows[targets] - first) * self.length - offset
            yield targets, shard, starts[:, None] + np.arange(self.length)

    def _row_count(self, shard: PairShard) -> int:
        return len(shard) // self.length + 1


def syllable_table(ids: np.ndarray, end: int) -> np.ndarray:
    """Map from the syllables of a shard to a model's ids: (inventory + 1,) int16, or int32 for many ids.

    Args:
        ids: the model's id of each syllable of ``utils.mandarin.pinyin.full_inventory()``.
        end: id of a line end.
    """
    return _narrow(np.insert(np.asarray(ids, np.int64), SYLLABLE_LINE_END, end))


def hanzi_table(tokens: Sequence[str], end: int, unknown: int) -> np.ndarray:
    """Map from the code points of a shard to a model's ids: (65536,) int16, or int32 for many ids.

    Args:
        tokens: the model's vocabulary, ordered by id; tokens longer than a character are not hanzi.
        end: id of a line end.
        unknown: id of all other hanzi.
    """
    table = np.full(1 << 16, unknown, np.int64)
    for number, token in enumerate(tokens):
        if len(token) == 1 and token <= "\uffff":
            table[ord(token)] = number
    table[HANZI_LINE_END] = end
    return _narrow(table)


def shard_entry(stem: Path) -> CacheEntry:
    """The files of a shard."""
    return CacheEntry(stem, ("json", "syllables", "hanzi"), "pairs of pinyin and hanzi")


def _narrow(table: np.ndarray) -> np.ndarray:
    largest = np.abs(table).max()
    return table.astype(np.int16 if largest <= np.iinfo(np.int16).max else np.int32)
