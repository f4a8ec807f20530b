"""Compresses the numbers of a model: rounds floats to the levels of a code book, stores integers as steps."""

import numpy as np

LEVELS = 64
"""Levels of a code book; code 0 means that there is no value."""
_HISTOGRAM, _LLOYD_ROUNDS = 4096, 40  # Lloyd's algorithm: bins of the histogram that it reads, and rounds
_LOWEST = -30.0  # lower log-probabilities and log-weights are raised to this


def code_book(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise values with a code book of ``LEVELS`` levels.

    Lloyd, "Least squares quantization in PCM" (IEEE Transactions on Information Theory 28, 1982).

    Args:
        values: (n,) float.

    Returns:
        The levels, ascending, (LEVELS,) float32, the first unused, and the code of each value, (n,) uint8.
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
    levels = np.where(mass > 0, sums / np.maximum(mass, 1), levels)  # not of histogram bins
    return np.append(0.0, levels).astype(np.float32), (codes + 1).astype(np.uint8)


def group_steps(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Values that ascend within each group → the first value of each group, then the differences.

    Args:
        values: (n,) int, group after group.
        counts: (groups,) int, sizes of the groups.

    Returns:
        (n,) int64, small numbers that compress well.
    """
    steps = np.diff(values.astype(np.int64), prepend=0)
    first = (np.cumsum(counts) - counts)[counts > 0]
    steps[first] = values[first]
    return steps


def undo_group_steps(steps: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The inverse of :func:`group_steps`: steps (n,) and counts (groups,) → values (n,).

    They have the type of ``steps``, whose overflows cancel.
    """
    sums = np.cumsum(steps, dtype=steps.dtype)
    first = np.cumsum(counts, dtype=np.int32) - counts
    before = np.append(steps.dtype.type(0), sums).take(first)  # the sum of all earlier groups
    return sums - np.repeat(before, counts)
