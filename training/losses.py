"""Losses as Keras objects: CTC for acoustic models, cross-entropy over candidates for language models.

They are registered with Keras, so that a compiled model can be saved and loaded with them. Keras passes one
array of targets to a loss, so lengths are packed with the labels (`pack_ctc_targets`, `pack_pairs`). The
result is the loss of each utterance.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from model_language.networks.loss import sequence_loss
from model_speech.ctc.loss import ctc_loss

PADDING = -1  # of packed labels

_serializable = keras.saving.register_keras_serializable(package="training")


def pack_ctc_targets(labels, label_lengths, logit_lengths):
    """Pack labels and lengths for CTC, one row for each utterance.

    Args:
        labels: (B, L) int, padded with anything.
        label_lengths: (B,) int.
        logit_lengths: (B,) int, number of output frames.

    Returns:
        (B, 1 + L) int32: number of output frames, then the labels, padded with -1.
    """
    labels, label_lengths, logit_lengths = (
        ops.cast(array, "int32") for array in (labels, label_lengths, logit_lengths)
    )
    valid = ops.arange(ops.shape(labels)[1], dtype="int32")[None, :] < label_lengths[:, None]
    return ops.concatenate([logit_lengths[:, None], ops.where(valid, labels, PADDING)], axis=1)


def unpack_ctc_targets(packed):
    """Return ``labels`` (B, L) padded with class 0, ``label_lengths`` (B,), ``logit_lengths`` (B,), int32."""
    packed = ops.cast(packed, "int32")
    labels = packed[:, 1:]
    label_lengths = ops.sum(ops.cast(labels != PADDING, "int32"), axis=1)
    return ops.maximum(labels, 0), label_lengths, packed[:, 0]


def pack_pairs(syllables, targets):
    """Pack syllables and hanzi ids, (B, L) int each, into (B, 2, L)."""
    return ops.stack([ops.cast(array, "int32") for array in (syllables, targets)], axis=1)


@_serializable
class CtcLoss(keras.losses.Loss):
    """CTC (see :func:`model_speech.ctc.loss.ctc_loss`) of logits (B, T, C), in nats for each utterance.

    Call: targets (B, 1 + L) of :func:`pack_ctc_targets`, logits (B, T, C).
    """

    def __init__(self, blank: int, name: str = "ctc_loss", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.blank = blank

    def call(self, y_true, y_pred):
        """(B,) float32, unreduced."""
        labels, label_lengths, logit_lengths = unpack_ctc_targets(y_true)
        return ctc_loss(labels, y_pred, label_lengths, logit_lengths, self.blank)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "blank": self.blank}


@_serializable
class CandidateLoss(keras.losses.Loss):
    """Cross-entropy over the candidates of each syllable, summed over a sentence, in nats.

    Args:
        candidates: (syllables, K) hanzi ids, rows filled with 0.
        label_smoothing: see :func:`model_language.networks.loss.sequence_loss`.

    Call: targets (B, 2, L) of :func:`pack_pairs`, logits (B, L, hanzi).
    """

    def __init__(
        self,
        candidates: np.ndarray | Sequence[Sequence[int]],
        label_smoothing: float = 0.0,
        name: str = "candidate_loss",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.candidates = np.asarray(candidates, np.int32)
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        """(B,) float32, unreduced."""
        pairs = ops.cast(y_true, "int32")
        losses, _ = sequence_loss(
            y_pred, pairs[:, 0], pairs[:, 1], self.candidates, self.label_smoothing
        )  # (B, L)
        return ops.sum(losses, axis=1)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as JSON values."""
        return {
            **super().get_config(),
            "candidates": self.candidates.tolist(),
            "label_smoothing": self.label_smoothing,
        }
