"""Counts of which part of a syllable was heard for which in; how probably each is heard for each other, out.

A factorised model, so that pairs which were never counted get a sensible probability too. Given that a
syllable a is heard as another, b:

    P(b | a) = P(parts changed) · w(b | a) / Σ w(b' | a) over all b' that differ from a in just these parts
    w(b | a) = frequency(b)^0.75 · Π over the changed parts (initial, final, tone) of P(part of b | part of a)

A part's probabilities are its counts with half of those of the opposite confusion added, smoothed towards how
frequent the parts are. Constants by the likelihood of errors of other acoustic models than the counted one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from utils.mandarin.pinyin import full_inventory, split_syllable

PARTS = ("initial", "final", "tone")
# Which parts are changed in a substitution, by their bits: 1 the initial, 2 the final, 4 the tone.
CHANGES = tuple("+".join(part for bit, part in enumerate(PARTS) if code >> bit & 1) for code in range(1, 8))

SHARPNESS = 0.75  # of the frequencies: models prefer to write what is frequent
UNSEEN = 0.1  # occurrences, of a syllable that no text has
OPPOSITE = 0.5  # of a count: z for zh tells something of zh for z
SMOOTHING = 10.0  # counts, of each part
CHANGE_SMOOTHING = 0.5  # counts, of each set of changed parts
_BLOCK = 256  # rows at once: keeps the work arrays small

PartCounts = Mapping[tuple[str, str], int]


def split_parts(syllable: str) -> tuple[str, str, str]:
    """Initial, final and tone of a syllable, as they are counted."""
    parts = split_syllable(syllable)
    return parts.initial, parts.final, str(parts.tone)


def changed_parts(said: str, heard: str) -> str:
    """Which parts of two syllables differ, one of :data:`CHANGES`; ``""`` if they are equal."""
    pairs = zip(PARTS, split_parts(said), split_parts(heard), strict=True)
    return "+".join(part for part, one, other in pairs if one != other)


def relative_frequencies(frequencies: Mapping[str, int], syllables: Sequence[str]) -> np.ndarray:
    """Shares (syllables,) float64 of a text that these syllables have; unseen ones a little."""
    counts = np.array([frequencies.get(one, 0) for one in syllables]) + UNSEEN
    return counts / counts.sum()


def substitution_matrix(
    changes: Mapping[str, int],
    parts: Mapping[str, PartCounts],
    frequencies: Mapping[str, int],
    said: Sequence[str],
) -> np.ndarray:
    """How probably each syllable of the inventory is heard for these, given that another one is heard.

    Args:
        changes: how often which parts were changed (:data:`CHANGES`).
        parts: by :data:`PARTS`, how often (said, heard) was counted where they differ.
        frequencies: of syllables in texts.
        said: canonical syllables, of the inventory or not.

    Returns:
        (said, inventory) float32; rows sum to 1, and a syllable isn't heard for itself.
    """
    heard = full_inventory()
    share = relative_frequencies(frequencies, heard)
    labels = _labels((*heard, *said))
    rows, columns = _codes(said, labels), _codes(heard, labels)  # (3, said), (3, inventory)
    tables = [
        _part_table(parts[part], labels[part], np.bincount(codes, share, len(labels[part])))
        for part, codes in zip(PARTS, columns, strict=True)
    ]
    wanted = np.array([changes.get(name, 0) + CHANGE_SMOOTHING for name in CHANGES])
    matrix = np.empty((len(said), len(heard)), np.float32)
    for start in range(0, len(said), _BLOCK):
        block = rows[:, start : start + _BLOCK, None]  # (3, block, 1)
        weights = np.broadcast_to(share**SHARPNESS, (block.shape[1], len(heard))).copy()
        code = np.zeros(weights.shape, np.int8)
        for bit, table in enumerate(tables):
            weights *= table[block[bit], columns[bit]]
            code |= (block[bit] != columns[bit]).astype(np.int8) << bit
        matrix[start : start + _BLOCK] = _with_shares(weights, code, wanted)
    return matrix


def _with_shares(weights: np.ndarray, code: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Scale weights (rows, columns) so that each row gives each set of changed parts its share.

    A set that is impossible for a row (no other initial goes with er) leaves its share to the others.
    """
    scales = np.zeros((len(weights), len(wanted) + 1))  # the first: nothing changed
    for change, share in enumerate(wanted, start=1):
        sums = np.where(code == change, weights, 0.0).sum(axis=1)
        np.divide(share, sums, out=scales[:, change], where=sums > 0)
    scaled = weights * np.take_along_axis(scales, code.astype(np.intp), axis=1)
    return scaled / scaled.sum(axis=1, keepdims=True)


def _part_table(counts: PartCounts, labels: Sequence[str], share: np.ndarray) -> np.ndarray:
    """P(label of the column | label of the row, it isn't the same), and 1 for the same."""
    places = {label: place for place, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for (one, other), count in counts.items():
        if one in places and other in places:
            table[places[one], places[other]] += count
    table += OPPOSITE * table.T
    others = np.repeat(share[None], len(labels), axis=0)
    np.fill_diagonal(others, 0.0)
    table += SMOOTHING * others / others.sum(axis=1, keepdims=True)
    table /= table.sum(axis=1, keepdims=True)
    np.fill_diagonal(table, 1.0)
    return table


def _labels(syllables: Sequence[str]) -> dict[str, list[str]]:
    found = zip(*map(split_parts, syllables), strict=True)
    return {part: sorted(set(labels)) for part, labels in zip(PARTS, found, strict=True)}


def _codes(syllables: Sequence[str], labels: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Places of the syllables' parts among the labels, (3, syllables) int."""
    places = [{label: place for place, label in enumerate(labels[part])} for part in PARTS]
    codes = [[places[bit][label] for bit, label in enumerate(split_parts(one))] for one in syllables]
    return np.array(codes, np.intp).reshape(-1, len(PARTS)).T
