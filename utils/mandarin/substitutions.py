"""Computes the probability of each syllable substitution from counts of confused initials, finals and tones.

The model is factorised, so that pairs without counts get a sensible probability as well. If a syllable a is
recognised as another syllable b:

    P(b | a) = P(changed parts) · w(b | a) / Σ w(b' | a) over all b' that differ from a in exactly these parts
    w(b | a) = frequency(b)^0.75 · Π over the changed parts (initial, final, tone) of P(part of b | part of a)

The probabilities of a part are its counts plus half of the counts of the opposite confusion, smoothed towards
the frequencies of the parts. The constants maximise the likelihood of the errors of other acoustic models.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from utils.mandarin.pinyin import full_inventory, split_syllable

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


def split_parts(syllable: str) -> tuple[str, str, str]:
    """Initial, final and tone of a syllable, as text."""
    parts = split_syllable(syllable)
    return parts.initial, parts.final, str(parts.tone)


def changed_parts(reference: str, hypothesis: str) -> str:
    """The parts in which two syllables differ, one of :data:`CHANGES`; ``""`` if they are equal."""
    pairs = zip(PARTS, split_parts(reference), split_parts(hypothesis), strict=True)
    return "+".join(part for part, before, after in pairs if before != after)


def relative_frequencies(frequencies: Mapping[str, int], syllables: Sequence[str]) -> np.ndarray:
    """Smoothed relative frequencies of syllables: (syllables,) float64, sum 1."""
    counts = np.array([frequencies.get(syllable, 0) for syllable in syllables]) + UNSEEN
    return counts / counts.sum()


def substitution_matrix(
    changes: Mapping[str, int],
    parts: Mapping[str, PartCounts],
    frequencies: Mapping[str, int],
    references: Sequence[str],
) -> np.ndarray:
    """The probability of each hypothesis for each reference, given that they differ.

    Args:
        changes: counts of the sets of changed parts (:data:`CHANGES`).
        parts: counts of (reference, hypothesis) that differ, for each of :data:`PARTS`.
        frequencies: counts of syllables in texts.
        references: canonical syllables, in the inventory or not.

    Returns:
        (references, inventory) float32; rows sum to 1, and a syllable has probability 0 for itself.
    """
    hypotheses = full_inventory()
    frequency = relative_frequencies(frequencies, hypotheses)
    labels = _labels((*hypotheses, *references))
    rows, columns = _codes(references, labels), _codes(hypotheses, labels)  # (3, references), (3, inventory)
    tables = [
        _part_table(parts[part], labels[part], np.bincount(codes, frequency, len(labels[part])))
        for part, codes in zip(PARTS, columns, strict=True)
    ]
    change_weights = np.array([changes.get(name, 0) + CHANGE_SMOOTHING for name in CHANGES])
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
