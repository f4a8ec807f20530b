"""Finds evaluation sentences and repeated lines in large texts, by 64-bit fingerprints of sequences of hanzi.

Evaluation sentences are found by sequences of hanzi:

- a sentence of at least ``GRAM`` (10) hanzi by any ten consecutive hanzi that it shares with a text. This
  also finds parts of the sentence, and sentences that continue from one clause to the next;
- a shorter sentence by all of its hanzi in a row;
- a sentence of fewer than ``SHORTEST_PART`` (4) hanzi only if it is a whole clause: 北京 is everywhere.

Two different texts have the same fingerprint with a probability of 2⁻⁶⁴.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

GRAM = 10  # hanzi
SHORTEST_PART = 4  # hanzi
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd; base of the polynomial of the code points, modulo 2⁶⁴
_MIX = np.uint64(0xD6E8FEB86659FD93)
_TABLE_BITS = 22  # size of the table that rules out most fingerprints: 2^22 entries, 4 MB for each length


@dataclass(frozen=True)
class ExcludedSentences:
    """Fingerprints of evaluation sentences; made by :func:`index_sentences`, sent to worker processes.

    Attributes:
        sequences: length → sorted fingerprints of sequences of this length, (n,) uint64.
        clauses: sentences that are too short to be searched for inside of clauses.
    """

    sequences: dict[int, np.ndarray] = field(default_factory=dict)
    clauses: frozenset[str] = frozenset()

    def covered(self, text: str) -> np.ndarray:
        """Which characters belong to a sequence of an evaluation sentence: (characters,) bool."""
        ends = np.zeros(len(text) + 1, np.int32)  # +1 where a sequence begins, -1 after its end
        for length, fingerprints in _fingerprints(text, max(self.sequences, default=0)):
            if length in self.sequences and len(fingerprints):
                starts = self._matches(length, fingerprints)
                np.add.at(ends, starts, 1)
                np.subtract.at(ends, starts + length, 1)
        return np.cumsum(ends[:-1]) > 0

    def _matches(self, length: int, fingerprints: np.ndarray) -> np.ndarray:
        candidates = np.flatnonzero(self._tables[length][_table_slots(fingerprints)])
        return candidates[_are_in(fingerprints[candidates], self.sequences[length])]

    @cached_property
    def _tables(self) -> dict[int, np.ndarray]:
        """A hash table per length, which rules out most fingerprints before they are searched for."""
        tables = {}
        for length, fingerprints in self.sequences.items():
            tables[length] = np.zeros(1 << _TABLE_BITS, bool)
            tables[length][_table_slots(fingerprints)] = True
        return tables

    def __getstate__(self) -> dict[str, Any]:
        return {"sequences": self.sequences, "clauses": self.clauses}  # without the tables


def index_sentences(sentences: Iterable[str]) -> ExcludedSentences:
    """The fingerprints of evaluation sentences, which consist of hanzi only."""
    by_length: dict[int, list[np.ndarray]] = defaultdict(list)
    clauses = set()
    for sentence in filter(None, sentences):
        if len(sentence) < SHORTEST_PART:
            clauses.add(sentence)
        else:
            *_, (length, fingerprints) = _fingerprints(sentence, GRAM)
            by_length[length].append(fingerprints)
    return ExcludedSentences(
        sequences={length: np.unique(np.concatenate(parts)) for length, parts in by_length.items()},
        clauses=frozenset(clauses),
    )


def line_fingerprint(line: str) -> int:
    """64 bits of a hash."""
    return int.from_bytes(hashlib.blake2b(line.encode(), digest_size=8).digest(), "little")


class SeenLines:
    """Fingerprints of all lines so far, at 8 bytes each, or 16 while they are merged.

    They are kept in sorted arrays, each at most about half as long as the one before: every fingerprint is
    merged a logarithmic number of times.
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._arrays))

    def add(self, fingerprints: np.ndarray) -> np.ndarray:
        """Add fingerprints ((n,) uint64); returns which of them are new: (n,) bool."""
        fresh = np.zeros(len(fingerprints), bool)
        fresh[np.unique(fingerprints, return_index=True)[1]] = True
        for array in self._arrays:
            candidates = np.flatnonzero(fresh)
            fresh[candidates[_are_in(fingerprints[candidates], array)]] = False
        new = np.sort(fingerprints[fresh])
        while self._arrays and len(self._arrays[-1]) <= 2 * len(new):
            new = np.concatenate([self._arrays.pop(), new])
            new.sort(kind="stable")  # both are sorted: a merge
        if len(new):
            self._arrays.append(new)
        return fresh


def _fingerprints(text: str, longest: int) -> Iterable[tuple[int, np.ndarray]]:
    """For each length from 1 to ``longest``, the fingerprints of all sequences of this length, in order."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    codes = (codes + np.uint64(1)) * _MIX
    codes ^= codes >> np.uint64(29)
    fingerprints = codes
    for length in range(1, min(longest, len(text)) + 1):
        if length > 1:
            fingerprints = fingerprints[:-1] * _BASE + codes[length - 1 :]
        yield length, fingerprints


def _table_slots(fingerprints: np.ndarray) -> np.ndarray:
    return (fingerprints * _MIX) >> np.uint64(64 - _TABLE_BITS)


def _are_in(fingerprints: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Which fingerprints occur in a sorted, non-empty array."""
    positions = np.searchsorted(ordered, fingerprints)
    return ordered[np.minimum(positions, len(ordered) - 1)] == fingerprints
