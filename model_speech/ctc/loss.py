"""The CTC loss for every Keras backend: negative log-likelihood of padded labels, given logits.

`ctc_loss` is the training loss; `frames_needed` gives the frames that a target needs, so that utterances that
are too short can be found before training starts. Equations are those of Graves et al., "Connectionist
Temporal Classification" (ICML 2006).
"""

from collections.abc import Sequence

import numpy as np
from keras import ops

# log(0) in the recursions: far below any log-probability, but finite, because inf - inf is NaN.
LOG_ZERO = -1e30


def output_lengths(lengths, time_stride: int):
    """Output frames of a model with this stride: ceil(lengths / time_stride), of the type of ``lengths``."""
    return (lengths + time_stride - 1) // time_stride


def valid_frames(logit_lengths, frames: int):
    """Mask of the frames within ``logit_lengths`` (B,): (B, frames) bool."""
    return ops.arange(frames)[None, :] < logit_lengths[:, None]


def frames_needed(labels: Sequence[int] | np.ndarray) -> int:
    """Minimum number of output frames for ``labels`` (L,): one each, and a blank between equal neighbours."""
    labels = np.asarray(labels)
    return len(labels) + int((labels[1:] == labels[:-1]).sum())


def ctc_loss(labels, logits, label_lengths, logit_lengths, blank: int):
    """Negative log-likelihood of each target, exact in value and gradient; 0 for targets that are too long.

    The forward and backward variables are computed without differentiation, in one scan over time. The
    posterior of every label position then enters as a constant weight. This gives the gradient of equation
    16, and automatic differentiation has no recursion to unroll.

    Args:
        labels: (B, L) int, padded with any class.
        logits: (B, T, C) float; the softmax is computed here, in float32 for any type of logits.
        label_lengths: (B,) int, at most L; 0 is allowed.
        logit_lengths: (B,) int, at most T; later frames have no influence and get no gradient.
        blank: class of the blank.

    Returns:
        (B,) float32. A target that is too long for its frames has likelihood 0; its loss and gradient are
        set to 0, so that inf never enters the mean of a batch. (Training refuses such targets beforehand.)
    """
    labels, label_lengths, logit_lengths = (
        ops.cast(x, "int32") for x in (labels, label_lengths, logit_lengths)
    )
    logits = ops.cast(logits, "float32")
    log_total = ops.logsumexp(logits, axis=-1)  # (B, T)
    states = _states(labels, blank)  # (B, S)
    emitted = ops.take_along_axis(logits, states[:, None, :], axis=2)  # (B, T, S)

    feasible = ops.cast(_frames_needed(labels, label_lengths) <= logit_lengths, "float32")  # (B,)
    valid = valid_frames(logit_lengths, ops.shape(logits)[1])
    log_probabilities = ops.stop_gradient(emitted - log_total[:, :, None])
    likelihood, posterior = _align(log_probabilities, states, label_lengths, valid)
    posterior = ops.stop_gradient(posterior * feasible[:, None, None])
    loss = ops.stop_gradient(-likelihood * feasible)

    weight = ops.sum(posterior, axis=-1)  # (B, T): 1 on valid frames of feasible targets, else 0
    surrogate = ops.sum(weight * log_total - ops.sum(posterior * emitted, axis=-1), axis=-1)
    return surrogate + ops.stop_gradient(loss - surrogate)


def _frames_needed(labels, label_lengths):
    """`frames_needed` of each row of ``labels`` (B, L), of which ``label_lengths`` count; (B,) int32."""
    equal = labels[:, 1:] == labels[:, :-1]  # (B, L - 1)
    repeats = ops.logical_and(equal, ops.arange(ops.shape(equal)[1])[None, :] + 1 < label_lengths[:, None])
    return label_lengths + ops.sum(ops.cast(repeats, "int32"), axis=1)


def _states(labels, blank: int):
    """Class emitted by each state of the alignment graph, (B, 2L + 3).

    The states are: start, blank, label 1, blank, label 2, …, blank, end. Start and end emit nothing (their
    class is a placeholder). For a target of n < L labels state 2n + 2 is its end.
    """
    labels = ops.pad(labels, ((0, 0), (0, 1)))  # (B, L + 1): the last one stands for the end
    blanks = ops.full_like(labels, blank)
    pairs = ops.reshape(ops.stack([blanks, labels], axis=2), (ops.shape(labels)[0], -1))  # (B, 2L + 2)
    return ops.concatenate([blanks[:, :1], pairs], axis=1)


def _align(log_probabilities, states, label_lengths, valid):
    """Forward-backward over the alignment graph.

    Args:
        log_probabilities: (B, T, S) of each state's class.
        states: (B, S) classes, see `_states`.
        label_lengths: (B,) int.
        valid: (B, T) bool.

    Returns:
        log-likelihood (B,), posterior of each state in each frame (B, T, S); 0 on invalid frames.
    """
    position = ops.arange(ops.shape(states)[1])[None, :]  # (1, S)
    end = (2 * label_lengths + 2)[:, None]  # (B, 1)
    inside = ops.logical_and(position >= 1, position < end)
    log_probabilities = ops.where(inside[:, None, :], log_probabilities, LOG_ZERO)

    # A step of two states, from label to label over the blank, needs two different labels; start and end
    # differ from every label.
    changes = ops.concatenate([ops.zeros_like(inside[:, :2]), states[:, 2:] != states[:, :-2]], axis=1)
    edges = ops.logical_or(position == 2, position == end)
    may_skip = ops.logical_and(ops.logical_or(changes, edges), position % 2 == 0)
    no_skip = ops.zeros_like(may_skip[:, :2])
    may_skip_back = ops.flip(ops.concatenate([may_skip[:, 2:], no_skip], axis=1), axis=1)

    # The backward recursion is the forward one with time and states reversed: both run in one scan.
    both = ops.concatenate(
        [log_probabilities, ops.flip(log_probabilities, axis=(1, 2))], axis=0
    )  # (2B, T, S)
    start = ops.concatenate(
        [ops.broadcast_to(position == 0, ops.shape(states)), ops.flip(position == end, axis=1)], axis=0
    )
    # As float32: TensorFlow prints an error message when it transposes booleans, although it can.
    in_utterance = ops.cast(valid, "float32")
    variables, last = _scan(
        ops.transpose(both, (1, 0, 2)),
        ops.transpose(ops.concatenate([in_utterance, ops.flip(in_utterance, axis=1)], axis=0)),
        ops.where(start, 0.0, LOG_ZERO),
        ops.where(ops.concatenate([may_skip, may_skip_back], axis=0), 0.0, LOG_ZERO),
    )
    batch = ops.shape(states)[0]
    final = ops.logical_and(position >= end - 2, position < end)
    likelihood = ops.logsumexp(ops.where(final, last[:batch], LOG_ZERO), axis=1)  # (B,)
    forward = ops.transpose(variables[:, :batch], (1, 0, 2))  # (B, T, S)
    backward = ops.flip(ops.transpose(variables[:, batch:], (1, 0, 2)), axis=(1, 2))
    joint = forward + backward - log_probabilities - likelihood[:, None, None]
    kept = ops.logical_and(inside[:, None, :], valid[:, :, None])
    # Exclude frames and states for which LOG_ZERO - LOG_ZERO would give meaningless values.
    return likelihood, ops.where(kept, ops.exp(ops.minimum(ops.where(kept, joint, LOG_ZERO), 0.0)), 0.0)


def _scan(emissions, valid, start, skip):
    """The recursion of equations 6-7, over time.

    Args:
        emissions: (T, N, S) log-probabilities.
        valid: (T, N) float32, 1 or 0; padding frames, with 0, leave the variables unchanged.
        start: (N, S) log-probabilities before the first frame.
        skip: (N, S), 0 where a state may be entered from two states before, else LOG_ZERO.

    Returns:
        the variables after each frame (T, N, S), and after the last (N, S).
    """

    def step(previous, frame):
        emission, is_valid = frame[:, :-1], frame[:, -1:] > 0
        padded = ops.pad(previous, ((0, 0), (2, 0)), constant_values=LOG_ZERO)  # (N, S + 2)
        advanced, skipped = padded[:, 1:-1], padded[:, :-2] + skip
        best = ops.maximum(ops.maximum(previous, advanced), skipped)
        total = ops.exp(previous - best) + ops.exp(advanced - best) + ops.exp(skipped - best)
        current = ops.where(is_valid, best + ops.log(total) + emission, previous)
        return current, current

    # One tensor, not a pair: on TensorFlow, Keras's scan over several tensors fails if T is unknown.
    frames = ops.concatenate([emissions, valid[:, :, None]], axis=2)  # (T, N, S + 1)
    last, variables = ops.scan(step, start, frames)
    return variables, last
