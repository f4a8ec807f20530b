"""Counts which syllables an acoustic model confuses, inserts and deletes, from aligned test results.

The counts can be saved as a table and turned into probabilities of substitutions (``substitutions``). The
noisy-channel converter uses them, and the training of language models adds such errors. ``pinyin_noise.tsv``
has the counts of the project's own acoustic models; its first lines say how they were made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from utils.errors import CorpusError
from utils.files import write_text
from utils.mandarin.pinyin import is_syllable, normalise_syllable
from utils.mandarin.substitutions import (
    CHANGES,
    PARTS,
    PartCounts,
    changed_parts,
    split_parts,
    substitution_matrix,
)

STATISTICS = Path(__file__).with_name("pinyin_noise.tsv")
DELETION, INSERTION = "deletion", "insertion"

SYLLABLES, CHANGED, FREQUENCY = "syllables", "changed", "frequency"
COLUMNS = ("kind", "reference", "hypothesis", "count")
NO_FIELD, ZERO_INITIAL = "-", "∅"


@dataclass(frozen=True)
class ConfusionStatistics:
    """Counts of the substitutions, deletions and insertions of an acoustic model.

    Attributes:
        syllables: number of reference syllables.
        deletions, insertions: numbers of deletions and of insertions.
        changes: substitutions by the parts that they change (:data:`utils.mandarin.substitutions.CHANGES`).
        parts: counts of (reference, hypothesis) that differ, for ``initial``, ``final`` and ``tone``.
        frequencies: counts of each syllable in texts like the training texts of the model.
    """

    syllables: int
    deletions: int
    insertions: int
    changes: Mapping[str, int]
    parts: Mapping[str, PartCounts]
    frequencies: Mapping[str, int]

    @classmethod
    def count(
        cls, pairs: Iterable[tuple[str | None, str | None]], texts: Iterable[str] = ()
    ) -> ConfusionStatistics:
        """Count aligned pairs (reference, hypothesis); None on one side is an insertion or a deletion.

        Args:
            pairs: all pairs of the alignments, including correct ones. Tokens that are not syllables are
                ignored.
            texts: more syllables for the frequencies, besides those of the reference.

        Raises:
            CorpusError: no pair has a reference, or all pairs are correct.
        """
        totals, changes, frequencies = Counter[str](), Counter[str](), Counter(texts)
        parts = {part: Counter[tuple[str, str]]() for part in PARTS}
        for reference, hypothesis in pairs:
            if not all(token is None or is_syllable(token) for token in (reference, hypothesis)):
                continue
            if reference is not None:
                frequencies[reference] += 1
                totals[SYLLABLES] += 1
            if reference is None or hypothesis is None:
                totals[INSERTION if reference is None else DELETION] += 1
            elif reference != hypothesis:
                changes[changed_parts(reference, hypothesis)] += 1
                for part, *pair in zip(PARTS, split_parts(reference), split_parts(hypothesis), strict=True):
                    if pair[0] != pair[1]:
                        parts[part][tuple(pair)] += 1
        counted = cls(
            syllables=totals[SYLLABLES],
            deletions=totals[DELETION],
            insertions=totals[INSERTION],
            changes=dict(changes),
            parts={part: dict(counts) for part, counts in parts.items()},
            frequencies=dict(frequencies),
        )
        if not counted.syllables or not counted.errors:
            raise CorpusError(
                f"{counted.errors} errors among {counted.syllables} syllables: nothing to count",
                hint="give recognised texts with some errors, and their references",
            )
        return counted

    @property
    def substitutions(self) -> int:
        """Number of substitutions."""
        return sum(self.changes.values())

    @property
    def errors(self) -> int:
        """Number of errors."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def fractions(self) -> dict[str, float]:
        """The fraction of all errors for each set of changed parts, for deletions and for insertions."""
        counts = {name: self.changes.get(name, 0) for name in CHANGES}
        counts |= {DELETION: self.deletions, INSERTION: self.insertions}
        return {name: count / self.errors for name, count in counts.items()}

    def save(self, path: str | Path, notes: Sequence[str] = ()) -> None:
        """Write the counts as a table; ``notes`` are lines of comment at its beginning."""
        rows: list[tuple[object, ...]] = [
            (SYLLABLES, NO_FIELD, NO_FIELD, self.syllables),
            (DELETION, NO_FIELD, NO_FIELD, self.deletions),
            (INSERTION, NO_FIELD, NO_FIELD, self.insertions),
        ]
        rows += [(CHANGED, name, NO_FIELD, self.changes[name]) for name in CHANGES if name in self.changes]
        for part in PARTS:
            ordered = sorted(self.parts[part].items(), key=lambda item: (-item[1], item[0]))
            rows += [(part, *(label or ZERO_INITIAL for label in pair), n) for pair, n in ordered]
        rows += [(FREQUENCY, syllable, NO_FIELD, n) for syllable, n in sorted(self.frequencies.items())]
        head = [f"# {note}" for note in (*notes, " ".join(COLUMNS))]
        write_text(path, "\n".join([*head, *("\t".join(map(str, row)) for row in rows)]) + "\n")

    @classmethod
    def load(cls, path: str | Path = STATISTICS) -> ConfusionStatistics:
        """Read a file of :meth:`save`; without a path, the shipped statistics.

        Raises:
            CorpusError: a line does not have the format of :meth:`save`.
        """
        totals = {SYLLABLES: 0, DELETION: 0, INSERTION: 0}
        tables: dict[str, dict] = {name: {} for name in (CHANGED, FREQUENCY, *PARTS)}
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
            if line.startswith("#"):
                continue
            fields = line.split("\t")
            if len(fields) != len(COLUMNS) or not (fields[0] in totals or fields[0] in tables):
                raise _damaged(path, number, line)
            kind, reference, hypothesis, count = fields
            if not count.isdecimal() or (kind == CHANGED and reference not in CHANGES):
                raise _damaged(path, number, line)
            if kind in PARTS:
                pair = ("" if label == ZERO_INITIAL else label for label in (reference, hypothesis))
                tables[kind][tuple(pair)] = int(count)
            elif kind in tables:
                tables[kind][reference] = int(count)
            else:
                totals[kind] = int(count)
        return cls(
            syllables=totals[SYLLABLES],
            deletions=totals[DELETION],
            insertions=totals[INSERTION],
            changes=tables[CHANGED],
            parts={part: tables[part] for part in PARTS},
            frequencies=tables[FREQUENCY],
        )

    def matrix(self, references: Sequence[str]) -> np.ndarray:
        """P(hypothesis | reference, they differ): (references, inventory) float32, rows sum to 1."""
        return substitution_matrix(self.changes, self.parts, self.frequencies, references)


@cache
def shipped_statistics() -> ConfusionStatistics:
    """The shipped statistics; the file is read once."""
    return ConfusionStatistics.load()


def cumulative(probabilities: np.ndarray) -> np.ndarray:
    """Cumulative sums along the last axis, float64, scaled so that the last value is exactly 1."""
    sums = np.cumsum(probabilities, axis=-1, dtype=np.float64)
    return sums / sums[..., -1:]


def is_canonical(token: str) -> bool:
    """Whether a token is a syllable in canonical form."""
    return is_syllable(token) and normalise_syllable(token) == token


def _damaged(path: str | Path, number: int, line: str) -> CorpusError:
    return CorpusError(
        f"'{line}' is not a line of counts",
        where=f"{path}:{number}",
        hint=f"lines are {' '.join(COLUMNS)}, separated by tabs; copy the file from the repository again",
    )
