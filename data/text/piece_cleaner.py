"""Cleans one piece of raw text: returns usable clauses, their fingerprints, and counts of rejected clauses.

The worker processes of ``data.text.cleaning`` run this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from data.text.clauses import Clause, clauses
from data.text.deduplication import ExcludedSentences, line_fingerprint
from data.text.sources import decode

EVALUATION = "evaluation text"
NOT_UTF8 = "not UTF-8"
SAMPLES = 20  # rejected clauses per reason that the report shows

_GAP = Clause("", -1)  # replaces a rejected clause, so that its neighbours are not joined
_cleaners: list[Cleaner] = []  # of a worker process


@dataclass
class Tally:
    """Counts of what was read, kept and rejected, of one piece or of several.

    Attributes:
        lines, characters: numbers of lines and of characters that were read.
        clauses, hanzi: numbers of clauses and of their hanzi that were kept.
        rejected: reason → number of clauses; for ``NOT_UTF8`` of lines.
        rejected_characters: reason → number of their characters.
        samples: reason → the first clauses, up to ``SAMPLES``.
    """

    lines: int = 0
    characters: int = 0
    clauses: int = 0
    hanzi: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_characters: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[str]] = field(default_factory=dict)

    def reject(self, reason: str, texts: Sequence[str]) -> None:
        """Count clauses that were rejected for one reason."""
        if texts:
            self.rejected[reason] += len(texts)
            self.rejected_characters[reason] += sum(map(len, texts))
            self._keep(reason, texts)

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        for name in ("lines", "characters", "clauses", "hanzi", "rejected", "rejected_characters"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, texts in other.samples.items():
            self._keep(reason, texts)

    def _keep(self, reason: str, texts: Sequence[str]) -> None:
        self.samples[reason] = [*self.samples.get(reason, ()), *texts][:SAMPLES]


@dataclass(frozen=True)
class Cleaned:
    """A cleaned piece: its usable clauses, their fingerprints ((n,) uint64), and the counts."""

    texts: list[str]
    fingerprints: np.ndarray
    tally: Tally


@dataclass(frozen=True)
class Cleaner:
    """Cleans pieces; sent to every worker process once."""

    excluded: ExcludedSentences

    def clean(self, piece: bytes) -> Cleaned:
        """The usable clauses of a piece of UTF-8 text."""
        text, undecodable = decode(piece)
        tally = Tally(text.count("\n") + (not text.endswith("\n")), len(text))
        if undecodable:
            tally.rejected[NOT_UTF8] += undecodable
        usable: list[Clause] = []
        by_reason: dict[str, list[str]] = {}
        for clause in clauses(text):
            if clause.reason:
                by_reason.setdefault(clause.reason, []).append(clause.text)
                usable.append(_GAP)
            else:
                usable.append(clause)
        kept, evaluation = self._without_evaluation(usable)
        by_reason[EVALUATION] = evaluation
        for reason, texts in by_reason.items():
            tally.reject(reason, texts)
        return Cleaned(
            kept, fingerprints=np.fromiter(map(line_fingerprint, kept), np.uint64, len(kept)), tally=tally
        )

    def _without_evaluation(self, usable: Sequence[Clause]) -> tuple[list[str], list[str]]:
        """Clauses that share no text with evaluation sentences, and the others.

        Adjacent clauses of a line are examined as one text.
        """
        parts, starts, length, previous = [], [], 0, _GAP
        for clause in usable:
            gap = "\n" if clause.line != previous.line else ""
            starts.append(length + len(gap))
            parts.append(gap + clause.text)
            length += len(gap) + len(clause.text)
            previous = clause
        covered = np.concatenate([[0], np.cumsum(self.excluded.covered("".join(parts)))])
        kept: list[str] = []
        evaluation: list[str] = []
        for clause, start in zip(usable, starts, strict=True):
            if clause is not _GAP:
                shared = covered[start + len(clause.text)] > covered[start]
                excluded = shared or clause.text in self.excluded.clauses
                (evaluation if excluded else kept).append(clause.text)
        return kept, evaluation


def remember_cleaner(cleaner: Cleaner) -> None:
    """Prepare a worker process for :func:`clean_in_worker`."""
    _cleaners[:] = [cleaner]


def clean_in_worker(piece: bytes) -> Cleaned:
    """Clean a piece in a worker process."""
    return _cleaners[0].clean(piece)
