"""Scores of an attention, some of them of padding, in; weights that leave padding out, in 8 bits too, out."""

from keras import ops

_MARGIN = 20.0
"""How far a missing position lies below the lowest score: it takes nothing from the others in float32."""


def masked_softmax(scores, valid):
    """Softmax over the last axis, where positions that aren't valid get the weight 0.

    A missing position gets a score a little below all others, not -1e9: in 8 bits the range of the scores
    is cut into 255 steps, and a range down to -1e9 would leave all true scores on one step.

    Args:
        scores: (…, positions) float32.
        valid: (…, positions) bool, of a shape that is broadcast to that of the scores.

    Returns:
        (…, positions) float32; a row sums to 1, one without a valid position to 0.
    """
    missing = ops.stop_gradient(ops.min(scores, axis=-1, keepdims=True)) - _MARGIN
    weights = ops.softmax(ops.where(valid, scores, missing), axis=-1)
    return weights * ops.cast(valid, weights.dtype)  # e^-20 times the lowest weight at most, and now 0
