"""Syllable and character error rates as Keras metrics, computed on the device by Levenshtein distance.

They equal the results of :mod:`utils.metrics`, but run on any backend. They are registered with Keras, so
that a compiled model can be saved and loaded with them.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from model_language.networks.loss import candidate_logits
from model_language.vocabulary.symbols import PAD_ID
from training.losses import unpack_ctc_targets

NO_TOKEN = -1  # entry of a hypothesis that is ignored

_serializable = keras.saving.register_keras_serializable(package="training")


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


class _ErrorRate(keras.metrics.Metric):
    """Counts errors and reference tokens; the result is their ratio, or 0 without a token."""

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.errors = self.add_variable((), "zeros", name="errors")
        self.reference = self.add_variable((), "zeros", name="reference")

    def count(self, labels, label_lengths, tokens, sample_weight) -> None:
        """Add the utterances of a batch, see :func:`edit_distances`; weights are (B,), or None for 1 each."""
        weights = 1.0 if sample_weight is None else ops.cast(sample_weight, "float32")
        self.errors.assign_add(ops.sum(weights * edit_distances(labels, label_lengths, tokens)))
        self.reference.assign_add(ops.sum(weights * ops.cast(label_lengths, "float32")))

    def result(self):
        """Errors per reference token; can be above 1."""
        return self.errors / ops.maximum(self.reference, 1.0)


@_serializable
class SyllableErrorRate(_ErrorRate):
    """Syllable error rate of greedy decoding: the best class of each frame, repeats merged, blanks removed.

    Update: targets (B, 1 + L) of :func:`training.losses.pack_ctc_targets`, logits (B, T, C).
    """

    def __init__(self, blank: int, name: str = "syllable_error_rate", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.blank = blank

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch."""
        labels, label_lengths, frames = unpack_ctc_targets(y_true)
        classes = ops.cast(ops.argmax(y_pred, axis=-1), "int32")  # (B, T)
        before = ops.concatenate([ops.full_like(classes[:, :1], NO_TOKEN), classes[:, :-1]], axis=1)
        valid = ops.arange(ops.shape(classes)[1], dtype="int32")[None, :] < frames[:, None]
        begins = ops.logical_and(ops.logical_and(classes != before, classes != self.blank), valid)
        self.count(labels, label_lengths, ops.where(begins, classes, NO_TOKEN), sample_weight)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "blank": self.blank}


@_serializable
class CharacterErrorRate(_ErrorRate):
    """Character error rate of the best candidate of each syllable.

    Args:
        candidates: (syllables, K) hanzi ids, rows filled with 0.

    Update: targets (B, 2, L) of :func:`training.losses.pack_pairs`, logits (B, L, hanzi).
    """

    def __init__(
        self,
        candidates: np.ndarray | Sequence[Sequence[int]],
        name: str = "character_error_rate",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.candidates = np.asarray(candidates, np.int32)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch."""
        pairs = ops.cast(y_true, "int32")
        syllables, targets = pairs[:, 0], pairs[:, 1]
        picked, rows = candidate_logits(y_pred, syllables, self.candidates)  # (B, L, K) each
        best = ops.take_along_axis(rows, ops.argmax(picked, axis=-1)[:, :, None], axis=-1)[:, :, 0]
        valid = syllables != PAD_ID
        lengths = ops.sum(ops.cast(valid, "int32"), axis=1)
        self.count(targets, lengths, ops.where(valid, best, NO_TOKEN), sample_weight)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as JSON values."""
        return {**super().get_config(), "candidates": self.candidates.tolist()}
