"""Softmax and log-softmax over the last axis in NumPy, in float64."""

import numpy as np


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
