"""Restricts logits over all hanzi to the candidates of each syllable, and computes their cross-entropy.

Training (:func:`sequence_loss`) and conversion (:func:`candidate_logits`) use the same restricted softmax, in
which a syllable can only become a hanzi that the lexicon has for it.
"""

import numpy as np
from keras import ops

IMPOSSIBLE = -1e9
"""Logit of an empty column of candidates: its probability is 0, and no gradient becomes NaN."""


def candidate_logits(logits, syllables, candidates: np.ndarray):
    """Keep the logits of the candidates of each syllable.

    Args:
        logits: (B, L, hanzi) float32.
        syllables: (B, L) int32.
        candidates: (syllables, K) int32, hanzi ids, 0 in empty columns.

    Returns:
        (B, L, K) float32, :data:`IMPOSSIBLE` in empty columns, and the candidates, (B, L, K) int32.
    """
    rows = ops.take(candidates, syllables, axis=0)  # (B, L, K)
    batch, length, size = ops.shape(logits)
    # One flat gather takes half the time of ops.take_along_axis on a CPU, forward and backward together.
    starts = ops.reshape(ops.arange(batch * length, dtype="int32") * size, (batch, length, 1))
    picked = ops.take(ops.reshape(logits, (-1,)), starts + rows, axis=0)  # (B, L, K)
    return ops.where(rows > 0, picked, IMPOSSIBLE), rows


def sequence_loss(logits, syllables, targets, candidates: np.ndarray, label_smoothing: float = 0.0):
    """Cross-entropy of each position over the candidates of its syllable.

    Smoothing spreads ``label_smoothing`` evenly over these candidates (Szegedy et al. 2016, section 7).

    Args:
        logits: (B, L, hanzi) float32.
        syllables: (B, L) int32, 0 where padded.
        targets: (B, L) int32 hanzi ids, 0 where padded.
        candidates: (syllables, K) int32, hanzi ids, 0 in empty columns.
        label_smoothing: 0 to 1.

    Returns:
        Loss and weights, both (B, L) float32. A weight is 0 at padding and where the target is not a
        candidate, otherwise 1; the loss is 0 where the weight is 0.
    """
    picked, rows = candidate_logits(logits, syllables, candidates)
    log_probs = ops.log_softmax(picked, axis=-1)  # (B, L, K)
    used = ops.cast(rows > 0, "float32")  # (B, L, K), 0 in empty columns
    targets = ops.expand_dims(ops.cast(targets, "int32"), -1)
    hit = ops.cast(rows == targets, "float32") * used
    weights = ops.sum(hit, axis=-1)  # (B, L): 1 where the target is a candidate
    uniform = used / ops.sum(used, axis=-1, keepdims=True)
    smoothed = (1 - label_smoothing) * hit + label_smoothing * uniform
    return -weights * ops.sum(smoothed * log_probs, axis=-1), weights
