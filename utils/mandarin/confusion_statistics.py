"""Counts which syllables an acoustic model confuses, inserts and deletes, from aligned test results.

The counts can be saved as a table and turned into probabilities of substitutions. The noisy-channel converter
uses them, and the training of language models adds such errors. ``pinyin_noise.tsv`` has the counts of the
project's own acoustic models; its first lines say how they were made.

The model of substitutions is factorised, so that pairs without counts get a sensible probability as well. If
a syllable a is recognised as another syllable b:

    P(b | a) = P(changed parts) · w(b | a) / Σ w(b' | a) over all b' that differ from a in exactly these parts
    w(b | a) = frequency(b)^0.75 · Π over the changed parts (initial, final, tone) of P(part of b | part of a)

The probabilities of a part are its counts plus half of the counts of the opposite confusion, smoothed towards
the frequencies of the parts. The constants maximise the likelihood of the errors of other acoustic models.
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
from utils.mandarin.pinyin import full_inventory, is_syllable, normalise_syllable, split_syllable

STATISTICS = Path(__file__).with_name("pinyin_noise.tsv")
DELETION, INSERTION = "deletion", "insertion"

SYLLABLES, CHANGED, FREQUENCY = "syllables", "changed", "frequency"
COLUMNS = ("kind", "reference", "hypothesis", "count")
NO_FIELD, ZERO_INITIAL = "-", "∅"
PARTS = ("initial", "final", "tone")
# Sets of changed parts, by bits: 1 the initial, 2 the final, 4 the tone.
CHANGES = tuple("+".join(part for bit, part in enumerate(PARTS) if code >> bit & 1) for code in range(1, 8))

SHARPNESS = 0.75  # exponent of the frequencies: models prefer frequent syllables
UNSEEN = 0.1  # count of a syllable that is in no text
OPPOSITE = 0.5  # weight of the opposite confusion: counts of z for zh also support zh for z
SMOOTHING = 10.0  # counts added for each part
CHANGE_SMOOTHING = 0.5  # counts added for each set of changed parts
_BLOCK = 256  # rows computed together, to keep the work arrays small

PartCounts = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class ConfusionStatistics:
    """Counts of the substitutions, deletions and insertions of an acoustic model.

    Attributes:
        syllables: number of reference syllables.
        deletions, insertions: numbers of deletions and of insertions.
        changes: substitutions by the parts that they change (:data:`CHANGES`).
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
                pairs_of_parts = zip(split_parts(reference), split_parts(hypothesis), strict=True)
                changed = {
                    part: pair for part, pair in zip(PARTS, pairs_of_parts, strict=True) if pair[0] != pair[1]
                }
                changes["+".join(changed)] += 1
                for part, pair in changed.items():
                    parts[part][pair] += 1
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
        """P(hypothesis | reference, they differ): (references, inventory) float32; rows sum to 1.

        The references are canonical syllables, in the inventory or not.
        """
        hypotheses = full_inventory()
        frequency = relative_frequencies(self.frequencies, hypotheses)
        labels = _labels((*hypotheses, *references))
        rows, columns = (
            _codes(references, labels),
            _codes(hypotheses, labels),
        )  # (3, references), (3, inventory)
        tables = [
            _part_table(self.parts[part], labels[part], np.bincount(codes, frequency, len(labels[part])))
            for part, codes in zip(PARTS, columns, strict=True)
        ]
        change_weights = np.array([self.changes.get(name, 0) + CHANGE_SMOOTHING for name in CHANGES])
        matrix = np.empty((len(references), len(hypotheses)), np.float32)
        for start in range(0, len(references), _BLOCK):
            block = rows[:, start : start + _BLOCK, None]  # (3, block, 1)
            weights = np.broadcast_to(frequency**SHARPNESS, (block.shape[1], len(hypotheses))).copy()
            change = np.zeros(weights.shape, np.int8)
            for bit, table in enumerate(tables):
                weights *= table[block[bit], columns[bit]]
                change |= (block[bit] != columns[bit]).astype(np.int8) << bit
            matrix[start : start + _BLOCK] = _scale_changes(weights, change, change_weights)
        return matrix


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


def split_parts(syllable: str) -> tuple[str, str, str]:
    """Initial, final and tone of a syllable, as text."""
    parts = split_syllable(syllable)
    return parts.initial, parts.final, str(parts.tone)


def relative_frequencies(frequencies: Mapping[str, int], syllables: Sequence[str]) -> np.ndarray:
    """Smoothed relative frequencies of syllables: (syllables,) float64, sum 1."""
    counts = np.array([frequencies.get(syllable, 0) for syllable in syllables]) + UNSEEN
    return counts / counts.sum()


def _scale_changes(weights: np.ndarray, change: np.ndarray, change_weights: np.ndarray) -> np.ndarray:
    """Scale weights (rows, columns) so that in each row each set of changed parts has its proportion.

    A set that is impossible for a row (er has no other initial) leaves its proportion to the other sets.
    """
    scales = np.zeros((len(weights), len(change_weights) + 1))  # column 0: nothing changed
    for number, weight in enumerate(change_weights, start=1):
        sums = np.where(change == number, weights, 0.0).sum(axis=1)
        np.divide(weight, sums, out=scales[:, number], where=sums > 0)
    scaled = weights * np.take_along_axis(scales, change.astype(np.intp), axis=1)
    return scaled / scaled.sum(axis=1, keepdims=True)


def _part_table(counts: PartCounts, labels: Sequence[str], frequency: np.ndarray) -> np.ndarray:
    """P(column's label | row's label, they differ), and 1 on the diagonal."""
    indices = {label: index for index, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for (reference, hypothesis), count in counts.items():
        if reference in indices and hypothesis in indices:
            table[indices[reference], indices[hypothesis]] += count
    table += OPPOSITE * table.T
    others = np.repeat(frequency[None], len(labels), axis=0)
    np.fill_diagonal(others, 0.0)
    table += SMOOTHING * others / others.sum(axis=1, keepdims=True)
    table /= table.sum(axis=1, keepdims=True)
    np.fill_diagonal(table, 1.0)
    return table


def _labels(syllables: Sequence[str]) -> dict[str, list[str]]:
    columns = zip(*map(split_parts, syllables), strict=True)
    return {part: sorted(set(labels)) for part, labels in zip(PARTS, columns, strict=True)}


def _codes(syllables: Sequence[str], labels: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Indices of the syllables' parts among the labels: (3, syllables) int."""
    indices = [{label: index for index, label in enumerate(labels[part])} for part in PARTS]
    codes = [[index[part] for index, part in zip(indices, split_parts(s), strict=True)] for s in syllables]
    return np.array(codes, np.intp).reshape(-1, len(PARTS)).T
