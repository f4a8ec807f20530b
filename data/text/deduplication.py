"""Sentences in, 64-bit fingerprints of them out: what a corpus must not hold, and what it holds already.

Evaluation text is found by its runs of hanzi, whatever stands around them:

- a sentence of at least ``GRAM`` (10) hanzi by any ten hanzi in a row that it shares with a text: so also a
  text that is a part of the sentence, and a sentence that goes over from one clause to the next;
- a shorter one by all of its hanzi in a row;
- one of fewer than ``SHORTEST_PART`` (4) only where it is a whole clause: 北京 is in every newspaper.

Two texts have the same fingerprint by chance with a probability of 2⁻⁶⁴.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

GRAM = 10
SHORTEST_PART = 4
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd; of the polynomial in the characters' codes, modulo 2⁶⁴
_MIX = np.uint64(0xD6E8FEB86659FD93)
_TABLE_BITS = 22


@dataclass(frozen=True)
class Excluded:
    """Fingerprints of evaluation sentences; made by :func:`excluded`, sent to worker processes.

    Attributes:
        runs: number of hanzi → sorted fingerprints of runs so long, (n,) uint64.
        clauses: sentences too short to be looked for inside of others.
    """

    runs: dict[int, np.ndarray] = field(default_factory=dict)
    clauses: frozenset[str] = frozenset()

    def covered(self, text: str) -> np.ndarray:
        """Which characters of a text are in a run that an evaluation sentence has: (characters,) bool."""
        ends = np.zeros(len(text) + 1, np.int32)  # + 1 where a run begins, - 1 where it has ended
        for length, prints in _fingerprints(text, max(self.runs, default=0)):
            if length in self.runs and len(prints):
                starts = self._found(length, prints)
                np.add.at(ends, starts, 1)
                np.subtract.at(ends, starts + length, 1)
        return np.cumsum(ends[:-1]) > 0

    def _found(self, length: int, prints: np.ndarray) -> np.ndarray:
        candidates = np.flatnonzero(self._tables[length][_places(prints)])
        return candidates[_are_in(prints[candidates], self.runs[length])]

    @cached_property
    def _tables(self) -> dict[int, np.ndarray]:
        """For each length a field that passes all its runs and few others: most of a text isn't looked up."""
        tables = {}
        for length, prints in self.runs.items():
            tables[length] = np.zeros(1 << _TABLE_BITS, bool)
            tables[length][_places(prints)] = True
        return tables

    def __getstate__(self) -> dict:
        return {"runs": self.runs, "clauses": self.clauses}  # without the tables


def excluded(sentences: Iterable[str]) -> Excluded:
    """The fingerprints of evaluation sentences, given as hanzi only."""
    by_length: dict[int, list[str]] = defaultdict(list)
    clauses = set()
    for sentence in filter(None, sentences):
        if len(sentence) < SHORTEST_PART:
            clauses.add(sentence)
        else:
            by_length[min(len(sentence), GRAM)].append(sentence)
    runs = {}
    for length, texts in by_length.items():
        # Sentences are set apart by a line feed: no run of a text of hanzi reaches over one.
        joined = "\n".join(texts)
        *_, (_, prints) = _fingerprints(joined, length)
        breaks = np.flatnonzero(_codes(joined) == ord("\n"))
        whole = np.ones(len(prints), bool)
        for place in breaks:
            whole[max(0, place - length + 1) : place + 1] = False
        runs[length] = np.unique(prints[whole])
    return Excluded(runs, frozenset(clauses))


def line_fingerprint(line: str) -> int:
    """64 bits that tell lines apart."""
    return int.from_bytes(hashlib.blake2b(line.encode(), digest_size=8).digest(), "little")


class SeenLines:
    """Fingerprints of all lines so far, in 8 bytes each (and as many again while they are merged).

    Sorted runs of about doubling size: each fingerprint is merged a logarithmic number of times.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, prints: np.ndarray) -> np.ndarray:
        """Take in fingerprints ((n,) uint64); which of them come for the first time: (n,) bool."""
        fresh = np.zeros(len(prints), bool)
        fresh[np.unique(prints, return_index=True)[1]] = True
        for run in self._runs:
            places = np.flatnonzero(fresh)
            fresh[places[_are_in(prints[places], run)]] = False
        new = np.sort(prints[fresh])
        while self._runs and len(self._runs[-1]) <= 2 * len(new):
            new = np.concatenate([self._runs.pop(), new])
            new.sort(kind="stable")  # both are sorted: a merge
        if len(new):
            self._runs.append(new)
        return fresh


def _codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def _fingerprints(text: str, longest: int) -> Iterable[tuple[int, np.ndarray]]:
    """For each length from 1 on, the fingerprints of all runs so long, by where they begin."""
    codes = (_codes(text).astype(np.uint64) + np.uint64(1)) * _MIX
    codes ^= codes >> np.uint64(29)
    prints = codes
    for length in range(1, min(longest, len(text)) + 1):
        if length > 1:
            prints = prints[:-1] * _BASE + codes[length - 1 :]
        yield length, prints


def _places(prints: np.ndarray) -> np.ndarray:
    return (prints * _MIX) >> np.uint64(64 - _TABLE_BITS)


def _are_in(prints: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Which fingerprints are in a sorted, non-empty array."""
    places = np.searchsorted(ordered, prints)
    return ordered[np.minimum(places, len(ordered) - 1)] == prints
