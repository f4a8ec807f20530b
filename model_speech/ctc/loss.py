"""Connectionist temporal classification: padded labels + logits in, negative log-likelihood out.

Between the acoustic model and the optimiser: `frames_needed` tells before training what can't be aligned,
`ctc_loss` is the loss. Graves et al., "Connectionist Temporal Classification" (ICML 2006); equations below
are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from keras import ops

# log(0) of the recursions: far below any log-probability, yet finite: inf - inf would be NaN.
LOG_ZERO = -1e30


def output_lengths(lengths, time_stride: int):
    """Output frames of a model of this stride: ceil(lengths / time_stride), of the type of ``lengths``."""
    return (lengths + time_stride - 1) // time_stride


def frames_needed(labels: Sequence[int] | np.ndarray) -> int:
    """Fewest output frames that carry ``labels`` (L,): one each, a blank between two equal neighbours."""
    labels = np.asarray(labels)
    return len(labels) + int((labels[1:] == labels[:-1]).sum())


def ctc_loss(labels, logits, label_lengths, logit_lengths, blank: int):
    """Negative log-likelihood of each target, exact in value and gradient.

    The forward and the backward variable are computed without differentiation, in one scan over time;
    the posterior of every label position then enters as a constant weight, which gives the gradient of
    equation 16 and leaves nothing for automatic differentiation to unroll.

    Args:
        labels: (B, L) int, padded with any class.
        logits: (B, T, C) float; the softmax is in here, in float32 whatever the logits' type.
        label_lengths: (B,) int, at most L; 0 is allowed.
        logit_lengths: (B,) int, at most T; frames beyond have no influence and get no gradient.
        blank: class of the blank.

    Returns:
        (B,) float32. A target that no alignment reaches (see `check_targets`, which refuses it with its
        name before training) has likelihood 0; it gets loss 0 and gradient 0 here, so that inf never
        enters a batch's mean.
    """
    labels, label_lengths, logit_lengths = (
        ops.cast(x, "int32") for x in (labels, label_lengths, logit_lengths)
    )
    logits = ops.cast(logits, "float32")
    log_total = ops.logsumexp(logits, axis=-1)  # (B, T)
    states = _states(labels, blank)  # (B, S)
    emitted = ops.take_along_axis(logits, states[:, None, :], axis=2)  # (B, T, S)

    feasible = ops.cast(_frames_needed(labels, label_lengths) <= logit_lengths, "float32")  # (B,)
    valid = ops.arange(ops.shape(logits)[1])[None, :] < logit_lengths[:, None]  # (B, T)
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

    States are: start, blank, label 1, blank, label 2, …, blank, end; start and end emit nothing (their
    class here is a placeholder). For a target of n < L labels state 2n + 2 is its end.
    """
    labels = ops.pad(labels, ((0, 0), (0, 1)))  # (B, L + 1): the last is the placeholder of the end
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

    # A step of two states (from label to label, over the blank) ends in a label that differs from the one
    # before; start and end differ from every label.
    changes = ops.concatenate([ops.zeros_like(inside[:, :2]), states[:, 2:] != states[:, :-2]], axis=1)
    edges = ops.logical_or(position == 2, position == end)
    may_skip = ops.logical_and(ops.logical_or(changes, edges), position % 2 == 0)
    no_skip = ops.zeros_like(may_skip[:, :2])
    may_skip_back = ops.flip(ops.concatenate([may_skip[:, 2:], no_skip], axis=1), axis=1)

    # The backward recursion is the forward one with time and states flipped: both run in one scan.
    both = ops.concatenate(
        [log_probabilities, ops.flip(log_probabilities, axis=(1, 2))], axis=0
    )  # (2B, T, S)
    start = ops.concatenate(
        [ops.broadcast_to(position == 0, ops.shape(states)), ops.flip(position == end, axis=1)], axis=0
    )
    before, after = _scan(
        ops.transpose(both, (1, 0, 2)),
        ops.transpose(ops.concatenate([valid, ops.flip(valid, axis=1)], axis=0)),
        ops.where(start, 0.0, LOG_ZERO),
        ops.where(ops.concatenate([may_skip, may_skip_back], axis=0), 0.0, LOG_ZERO),
    )
    batch = ops.shape(states)[0]
    final = ops.logical_and(position >= end - 2, position < end)
    likelihood = ops.logsumexp(ops.where(final, after[:batch], LOG_ZERO), axis=1)  # (B,)
    forward = ops.transpose(before[:, :batch], (1, 0, 2))  # (B, T, S)
    backward = ops.flip(ops.transpose(before[:, batch:], (1, 0, 2)), axis=(1, 2))
    joint = forward + backward - log_probabilities - likelihood[:, None, None]
    kept = ops.logical_and(inside[:, None, :], valid[:, :, None])
    # exp is kept from frames and states where LOG_ZERO - LOG_ZERO would make nonsense.
    return likelihood, ops.where(kept, ops.exp(ops.minimum(ops.where(kept, joint, LOG_ZERO), 0.0)), 0.0)


def _scan(emissions, valid, start, skip):
    """The recursion of equations 6-7, over time.

    Args:
        emissions: (T, N, S) log-probabilities.
        valid: (T, N) bool; a frame that isn't valid leaves the variables as they are.
        start: (N, S) log-probabilities before the first frame.
        skip: (N, S), 0 where a state may be entered from two states before, else LOG_ZERO.

    Returns:
        the variables after each frame (T, N, S), and after the last (N, S).
    """

    def step(previous, frame):
        emission, counts = frame[:, :-1], frame[:, -1:] > 0
        padded = ops.pad(previous, ((0, 0), (2, 0)), constant_values=LOG_ZERO)  # (N, S + 2)
        one, two = padded[:, 1:-1], padded[:, :-2] + skip
        best = ops.maximum(ops.maximum(previous, one), two)
        total = best + ops.log(ops.exp(previous - best) + ops.exp(one - best) + ops.exp(two - best))
        reached = ops.where(counts, total + emission, previous)
        return reached, reached

    # One tensor, not a pair: Keras's scan over several fails on TensorFlow where T is not known beforehand.
    frames = ops.concatenate([emissions, ops.cast(valid, "float32")[:, :, None]], axis=2)  # (T, N, S + 1)
    after, before = ops.scan(step, start, frames)
    return before, after
