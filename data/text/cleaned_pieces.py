"""A piece of raw text in; its usable clauses, their fingerprints, and counts of the others out.

What every worker process of ``data.text.cleaning`` does.
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from data.text.clauses import Clause, Limits, clauses
from data.text.deduplication import Excluded, line_fingerprint
from data.text.sources import decode

EVALUATION = "evaluation text"
NOT_UTF8 = "not UTF-8"
SAMPLES = 20  # clauses of each reason that are kept to look at

_GAP = Clause("", -1)  # stands where a clause was rejected: its neighbours don't follow upon each other
_cleaners: list[Cleaner] = []  # of a worker process


@dataclass
class Tally:
    """What came in and what was left out; pieces are added up.

    Attributes:
        lines, characters: read.
        clauses, hanzi: kept.
        rejected: reason → clauses; lines for ``NOT_UTF8``.
        rejected_characters: reason → their characters.
        samples: reason → up to ``SAMPLES`` (rank, clause): those with the lowest ranks, as good as drawn
            by chance, but the same in any order.
    """

    lines: int = 0
    characters: int = 0
    clauses: int = 0
    hanzi: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_characters: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def reject(self, reason: str, texts: Sequence[str]) -> None:
        """Count clauses that were left out for one reason."""
        if texts:
            self.rejected[reason] += len(texts)
            self.rejected_characters[reason] += sum(map(len, texts))
            self._keep(reason, [(zlib.crc32(text.encode()), text) for text in texts])

    def add(self, other: Tally) -> None:
        """Take in another tally."""
        self.lines += other.lines
        self.characters += other.characters
        self.clauses += other.clauses
        self.hanzi += other.hanzi
        self.rejected.update(other.rejected)
        self.rejected_characters.update(other.rejected_characters)
        for reason, ranked in other.samples.items():
            self._keep(reason, ranked)

    def _keep(self, reason: str, ranked: list[tuple[int, str]]) -> None:
        self.samples[reason] = heapq.nsmallest(SAMPLES, {*ranked, *self.samples.get(reason, ())})


@dataclass(frozen=True)
class Cleaned:
    """A cleaned piece: its usable clauses, their fingerprints ((n,) uint64), and what was left out."""

    texts: list[str]
    prints: np.ndarray
    tally: Tally


@dataclass(frozen=True)
class Cleaner:
    """What every process has to know."""

    limits: Limits
    excluded: Excluded

    def clean(self, piece: bytes) -> Cleaned:
        """The clauses of a piece of UTF-8 text, but for those that can't be used."""
        text, undecodable = decode(piece)
        tally = Tally(text.count("\n") + (not text.endswith("\n")), len(text))
        if undecodable:
            tally.rejected[NOT_UTF8] += undecodable
        usable, by_reason = [], {}
        for clause in clauses(text, self.limits):
            if clause.reason:
                by_reason.setdefault(clause.reason, []).append(clause.text)
                usable.append(_GAP)
            else:
                usable.append(clause)
        kept, evaluation = self._without_evaluation(usable)
        by_reason[EVALUATION] = evaluation
        for reason, texts in by_reason.items():
            tally.reject(reason, texts)
        return Cleaned(kept, np.fromiter(map(line_fingerprint, kept), np.uint64, len(kept)), tally)

    def _without_evaluation(self, usable: Sequence[Clause]) -> tuple[list[str], list[str]]:
        """Clauses that share nothing with evaluation text, and the others.

        Clauses that follow each other in a line are looked at as one text.
        """
        parts, starts, length, before = [], [], 0, _GAP
        for clause in usable:
            gap = "\n" if clause.line != before.line else ""
            starts.append(length + len(gap))
            parts.append(gap + clause.text)
            length += len(gap) + len(clause.text)
            before = clause
        covered = np.concatenate([[0], np.cumsum(self.excluded.covered("".join(parts)))])
        kept: list[str] = []
        evaluation: list[str] = []
        for clause, start in zip(usable, starts, strict=True):
            if clause is not _GAP:
                held = (
                    covered[start + len(clause.text)] > covered[start] or clause.text in self.excluded.clauses
                )
                (evaluation if held else kept).append(clause.text)
        return kept, evaluation


def remember_cleaner(cleaner: Cleaner) -> None:
    """Prepare a worker process for :func:`clean_in_worker`."""
    _cleaners[:] = [cleaner]


def clean_in_worker(piece: bytes) -> Cleaned:
    """Clean a piece in a worker process."""
    return _cleaners[0].clean(piece)
