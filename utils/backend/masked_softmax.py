"""Softmax of attention scores, with weight 0 at masked positions, that remains exact enough in int8."""

from keras import ops

_MARGIN = 20.0
"""How far the score of a masked position is set below the lowest score. Its weight is e^-20 of that of the
lowest score, too little to change the sum of the weights in float32."""


def masked_softmax(scores, valid):
    """Softmax over the last axis, with the weight 0 at masked positions (those that aren't valid).

    A masked position gets a score a little below all others, not -1e9: int8 quantisation divides the range of
    the scores into 255 steps, and in a range down to -1e9 all valid scores would be rounded to the same step.

    Args:
        scores: (…, positions) float32.
        valid: (…, positions) bool, of a shape that can be broadcast to that of the scores.

    Returns:
        (…, positions) float32; each row sums to 1, or to 0 if no position is valid.
    """
    masked = ops.stop_gradient(ops.min(scores, axis=-1, keepdims=True)) - _MARGIN
    weights = ops.softmax(ops.where(valid, scores, masked), axis=-1)
    return weights * ops.cast(valid, weights.dtype)  # exactly 0 at masked positions
