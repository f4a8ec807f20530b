"""Stacks sequences of different lengths into one padded NumPy array; softmax in float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


def pad_rows(
    rows: Sequence[Any],
    length: int = 1,
    *,
    multiple: int = 1,
    fill: float = 0,
    dtype: DTypeLike = np.int32,
    inner: tuple[int, ...] = (),
) -> np.ndarray:
    """Stack rows of different lengths.

    Args:
        rows: N arrays or sequences, (L, *inner) each.
        length: lowest length of the result.
        multiple: the length is rounded up to a multiple of this.
        fill: value after the end of a row.
        dtype: type of the result.
        inner: shape of each entry of a row.

    Returns:
        (N, padded length, *inner).
    """
    longest = max([length, *map(len, rows)])
    padded = np.full((len(rows), -(-longest // multiple) * multiple, *inner), fill, dtype)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities: (…, classes) → (…, classes) float64, the last axis sums to 1."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Natural logarithms of the probabilities: (…, classes) → (…, classes) float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Sum over the last axis, (B, T, C) → (B, T) float64; one utterance at a time, to fit into the cache."""
    result = np.empty(logits.shape[:2])
    for row, utterance in zip(result, logits, strict=True):
        highest = utterance.max(axis=-1, keepdims=True, initial=-np.inf)
        row[:] = highest[:, 0] + np.log(np.exp(utterance - highest).sum(axis=-1).astype(np.float64))
    return result
