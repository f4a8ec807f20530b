"""Greedy CTC decoding: finds the tokens of the best path through the logits. Defines :class:`Hypothesis`.

The best path takes the most probable class of each frame; equal neighbours are merged, then blanks are
dropped.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Hypothesis:
    """One decoded token sequence of an utterance.

    Attributes:
        tokens: classes, without the blank.
        score: natural-log probability: of the best path (greedy decoding), or of all alignments in the beam
            (beam search), including the language model's contribution if there is one.
        frames: output frame in which each token peaks.
        posteriors: the acoustic model's probability of each token in that frame.
    """

    tokens: tuple[int, ...]
    score: float
    frames: tuple[int, ...]
    posteriors: tuple[float, ...]


def greedy_decode(logits: np.ndarray, lengths: np.ndarray, blank: int) -> list[Hypothesis]:
    """Decode a batch of utterances.

    Args:
        logits: (B, T, C) float; log-probabilities work as well.
        lengths: (B,) int, number of valid output frames.
        blank: class of the blank.

    Returns:
        B hypotheses.
    """
    classes, scores = _best_path(logits)
    return [
        _collapse(row[:length], score[:length], blank)
        for row, score, length in zip(classes, scores, np.asarray(lengths), strict=True)
    ]


def best_tokens(logits: np.ndarray, lengths: np.ndarray, blank: int) -> list[list[int]]:
    """The tokens of :func:`greedy_decode` alone, without scores and frames, in less time."""
    paths = (row[:length] for row, length in zip(logits.argmax(axis=-1), lengths, strict=True))
    return [path[(np.diff(path, prepend=-1) != 0) & (path != blank)].tolist() for path in paths]


def log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Sum over the last axis, (B, T, C) → (B, T) float64; one utterance at a time, to fit into the cache."""
    result = np.empty(logits.shape[:2])
    for row, utterance in zip(result, logits, strict=True):
        highest = utterance.max(axis=-1, keepdims=True, initial=-np.inf)
        row[:] = highest[:, 0] + np.log(np.exp(utterance - highest).sum(axis=-1).astype(np.float64))
    return result


def _best_path(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best class of each frame and its log-probability: (B, T, C) → (B, T) int, (B, T) float64."""
    classes = logits.argmax(axis=-1)
    best = np.take_along_axis(logits, classes[..., None], axis=-1)[..., 0].astype(np.float64)
    return classes, best - log_sum_exp(logits)


def _collapse(classes: np.ndarray, scores: np.ndarray, blank: int) -> Hypothesis:
    """A path (T,) of one class per frame, with the log-probability of each, as a hypothesis."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    starts_and_end = np.append(starts, len(classes))
    peaks = [
        int(start + scores[start:end].argmax())
        for start, end in zip(starts, starts_and_end[1:], strict=True)
        if classes[start] != blank
    ]
    posteriors = tuple(np.exp(scores[peaks]).tolist())
    return Hypothesis(tuple(classes[peaks].tolist()), float(scores.sum()), tuple(peaks), posteriors)
