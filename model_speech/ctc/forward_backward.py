"""Computes the probability of a token sequence by CTC's forward and backward recursions.

Graves et al., "Connectionist Temporal Classification" (ICML 2006), section 4.1, for one utterance in NumPy.
(The training loss has its own batched, differentiable recursion in ``loss``.)
"""

from collections.abc import Sequence

import numpy as np

from model_speech.ctc.shallow_fusion import Fusion
from utils.arrays import log_softmax


def sequence_score(
    logits: np.ndarray, tokens: Sequence[int], blank: int, fusion: Fusion | None = None
) -> float:
    """Natural-log probability of a token sequence, summed over all its alignments.

    This is the score that the beam search maximises. If the reference has a higher score than the hypothesis,
    the search has missed it; otherwise the model is wrong.

    Args:
        logits: (T, C) float, valid frames only, T ≥ 1.
        tokens: classes, without the blank.
        blank: class of the blank.
        fusion: the language model of the search; its contribution is added.

    Returns:
        -inf if the sequence has no alignment, because it is too long for its frames.
    """
    log_alpha_blank, log_alpha_token = forward(log_softmax(logits), np.asarray(tokens, int), blank)
    score = float(np.logaddexp(log_alpha_blank[-1, -1], log_alpha_token[-1, -1]))
    return score + (fusion.sequence_gain(tokens) if fusion else 0.0)


def forward(log_probs: np.ndarray, tokens: np.ndarray, blank: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability that the first t frames emit the first i tokens.

    Args:
        log_probs: (T, C) float64.
        tokens: (L,) int, without the blank.
        blank: class of the blank.

    Returns:
        log_alpha_blank, log_alpha_token, (T + 1, L + 1) each: of the alignments whose frame t is a blank, and
        of those whose frame t is token i.
    """
    time, length = len(log_probs), len(tokens)
    log_alpha_blank, log_alpha_token = np.full((2, time + 1, length + 1), -np.inf)
    log_alpha_blank[0, 0] = 0.0
    repeated = np.zeros(length, bool)  # the token equals the one before it: a blank must separate them
    repeated[1:] = tokens[1:] == tokens[:-1]
    for t, frame in enumerate(log_probs):
        total = np.logaddexp(log_alpha_blank[t], log_alpha_token[t])
        log_alpha_blank[t + 1] = total + frame[blank]
        entering = np.where(repeated, log_alpha_blank[t, :-1], total[:-1])
        log_alpha_token[t + 1, 1:] = np.logaddexp(log_alpha_token[t, 1:], entering) + frame[tokens]
    return log_alpha_blank, log_alpha_token


def backward(log_probs: np.ndarray, tokens: np.ndarray, blank: int) -> np.ndarray:
    """Log-probability that the frames from t on emit the tokens from i on, with token i in frame t.

    Args:
        log_probs: (T, C) float64.
        tokens: (L,) int, without the blank.
        blank: class of the blank.

    Returns:
        log_beta, (T + 1, L + 1). The last column stands for no tokens: 0 after the last frame, -inf before.
    """
    time, length = len(log_probs), len(tokens)
    log_beta = np.full((time + 1, length + 1), -np.inf)
    log_beta[time, length] = 0.0
    repeated = np.zeros(length, bool)
    repeated[:-1] = tokens[1:] == tokens[:-1]
    in_token = np.full(length, -np.inf)  # of the frames from t on: frame t is token i
    in_blank = total = log_beta[time].copy()  # frame t is a blank before token i; either of the two
    for t in reversed(range(time)):
        leaving = np.where(repeated, in_blank[1:], total[1:])
        in_token = np.logaddexp(in_token, leaving) + log_probs[t, tokens]
        in_blank = total + log_probs[t, blank]
        log_beta[t, :length] = in_token
        total = np.logaddexp(in_blank, log_beta[t])
    return log_beta
