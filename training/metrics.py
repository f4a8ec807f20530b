"""Counts syllable and character errors of a batch on the device, by Levenshtein distance.

The counts equal those of :mod:`utils.metrics`, but are computed on any backend, in ``keras.ops``.
"""

import numpy as np
from keras import ops

from model_language.networks.loss import candidate_logits
from model_language.vocabulary.symbols import PAD_ID

NO_TOKEN = -1  # entry of a hypothesis that is ignored


def edit_distances(labels, label_lengths, tokens):
    """Levenshtein distance of each row (Wagner & Fischer, 1974).

    Args:
        labels: (B, L) int, the references, with any padding.
        label_lengths: (B,) int.
        tokens: (B, T) int, the hypotheses; entries of -1 are ignored, at any position.

    Returns:
        (B,) float32, whole numbers.
    """
    lengths = ops.arange(ops.shape(labels)[1] + 1, dtype="float32")  # (L + 1,): of prefixes of the reference
    gaps = lengths[:, None] - lengths[None, :]
    deletions = ops.where(gaps >= 0, gaps, np.inf)  # (L + 1, L + 1): from a shorter prefix to a longer one

    def add_token(index, distances):
        """Distances (B, L + 1) to all prefixes of the reference, for a hypothesis with one token more."""
        token = ops.take(tokens, index, axis=1)[:, None]  # (B, 1)
        matched = distances[:, :-1] + ops.cast(labels != token, "float32")
        without_deletions = ops.concatenate(
            [distances[:, :1] + 1, ops.minimum(distances[:, 1:] + 1, matched)], axis=1
        )
        longer = ops.min(without_deletions[:, None, :] + deletions[None], axis=2)
        return ops.where(token == NO_TOKEN, distances, longer)

    start = ops.zeros_like(ops.cast(label_lengths, "float32"))[:, None] + lengths[None, :]  # (B, L + 1)
    distances = ops.fori_loop(0, ops.shape(tokens)[1], add_token, start)
    return ops.take_along_axis(distances, ops.cast(label_lengths, "int32")[:, None], axis=1)[:, 0]


def syllable_errors(logits, labels, label_lengths, frames, blank: int):
    """Errors of greedy decoding: the best class of each frame, repeats merged, blanks removed.

    Args:
        logits: (B, T, C).
        labels: (B, L) int, with any padding.
        label_lengths: (B,) int.
        frames: (B,) int, valid frames of each row.
        blank: class of the blank.

    Returns:
        (B,) float32.
    """
    classes = ops.cast(ops.argmax(logits, axis=-1), "int32")  # (B, T)
    before = ops.concatenate([ops.full_like(classes[:, :1], NO_TOKEN), classes[:, :-1]], axis=1)
    valid = ops.arange(ops.shape(classes)[1], dtype="int32")[None, :] < frames[:, None]
    begins = ops.logical_and(ops.logical_and(classes != before, classes != blank), valid)
    return edit_distances(labels, label_lengths, ops.where(begins, classes, NO_TOKEN))


def character_errors(logits, syllables, targets, candidates: np.ndarray):
    """Errors of the best candidate of each syllable.

    Args:
        logits: (B, L, hanzi).
        syllables: (B, L) int32, 0 where padded.
        targets: (B, L) int32, ids of the hanzi.
        candidates: (syllables, K) hanzi ids, rows filled with 0.

    Returns:
        Errors, and number of hanzi, (B,) float32 and (B,) int32.
    """
    picked, rows = candidate_logits(logits, syllables, candidates)  # (B, L, K) each
    best = ops.take_along_axis(rows, ops.argmax(picked, axis=-1)[:, :, None], axis=-1)[:, :, 0]
    valid = syllables != PAD_ID
    lengths = ops.sum(ops.cast(valid, "int32"), axis=1)
    return edit_distances(targets, lengths, ops.where(valid, best, NO_TOKEN)), lengths
