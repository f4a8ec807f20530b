"""Many numbers in; a few levels that stand for them, and which of these each is, out."""

from __future__ import annotations

import numpy as np

LEVELS = 64
"""Of a code book; level 0 is nothing."""
_HISTOGRAM, _LLOYD_ROUNDS = 4096, 40
_LOWEST = -30.0  # of log-probabilities and weights; a weight of 0 has none


def code_book(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """LEVELS levels (the first isn't used) that lie as near to the values as Lloyd's algorithm brings them.

    Lloyd, "Least squares quantization in PCM" (IEEE Transactions on Information Theory 28, 1982).

    Returns:
        the levels, ascending, (LEVELS,) float32, and the number of each value's, (n,) uint8.
    """
    if not len(values):
        return np.zeros(LEVELS, np.float32), np.zeros(0, np.uint8)
    values = np.maximum(values, _LOWEST)
    counts, edges = np.histogram(values, _HISTOGRAM)
    centres = (edges[:-1] + edges[1:]) / 2
    levels = np.linspace(edges[0], edges[-1], LEVELS - 1)
    for _ in range(_LLOYD_ROUNDS):
        nearest = np.searchsorted((levels[:-1] + levels[1:]) / 2, centres)
        mass = np.bincount(nearest, counts, minlength=len(levels))
        sums = np.bincount(nearest, counts * centres, minlength=len(levels))
        levels = np.where(mass > 0, sums / np.maximum(mass, 1), levels)
    codes = np.searchsorted((levels[:-1] + levels[1:]) / 2, values)
    mass, sums = (np.bincount(codes, weights, minlength=len(levels)) for weights in (None, values))
    levels = np.where(mass > 0, sums / np.maximum(mass, 1), levels)  # of the values, not of bins
    return np.append(0.0, levels).astype(np.float32), (codes + 1).astype(np.uint8)
