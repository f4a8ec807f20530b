"""Logits of one utterance and a token sequence in; how probable the search holds that sequence to be, out.

What a decoder looks for is the sequence with the highest of these scores: if the truth has a higher one than
the output, the search missed it, and no better model was needed. NumPy only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model_speech.ctc.shallow_fusion import Fusion
from utils.softmax import log_softmax


def sequence_score(
    logits: np.ndarray, tokens: Sequence[int], blank: int, fusion: Fusion | None = None
) -> float:
    """Natural-log probability of a sequence, summed over all its alignments; with fusion, what that adds too.

    The forward variable of Graves et al., "Connectionist Temporal Classification" (ICML 2006), equation 6.

    Args:
        logits: (T, C) float, of the frames that count.
        tokens: classes, without the blank.
        blank: class of the blank.
        fusion: as in the search.

    Returns:
        -inf for what has no alignment: the sequence is too long for its frames.
    """
    log_probabilities = log_softmax(logits)
    states = np.full(2 * len(tokens) + 1, blank)
    states[1::2] = tokens
    emitted = log_probabilities[:, states]  # (T, S)
    # A token may follow another one without a blank between them unless it repeats it.
    jumps = np.zeros(len(states), bool)
    jumps[3::2] = states[3::2] != states[1:-2:2]
    forward = np.full(len(states), -np.inf)
    forward[:2] = emitted[0, :2]
    for frame in emitted[1:]:
        stepped = np.concatenate([[-np.inf], forward[:-1]])
        jumped = np.where(jumps, np.concatenate([[-np.inf, -np.inf], forward[:-2]])[: len(states)], -np.inf)
        forward = np.logaddexp(np.logaddexp(forward, stepped), jumped) + frame
    score = float(np.logaddexp.reduce(forward[-2:]))
    return score + (_fused(tokens, fusion) if fusion else 0.0)


def _fused(tokens: Sequence[int], fusion: Fusion) -> float:
    """What the language model adds to a whole sequence."""
    history, total = np.zeros((1, 1, fusion.history), np.int64), 0.0
    for token in tokens:
        classes = np.array([token])
        total += float(fusion.gains(history[0], classes)[0])
        history = fusion.remember(history, classes[None])
    return total + float(fusion.ends(history)[0, 0])
