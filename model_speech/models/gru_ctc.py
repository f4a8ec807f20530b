"""GRU CTC, the recurrent reference: log spectrogram + lengths in, CTC logits out.

Two dense layers frame by frame, three layers of gated recurrent units (Cho et al. 2014, arXiv:1406.1078) that
read the utterance in both directions and add what they found, one more dense layer. Bidirectional recurrence
under CTC is that of Graves et al. (ICML 2006). The softmax belongs to the loss and to the decoder.

The tutorial's model of this name adds the two directions without turning the second one around again, so that
the first frame meets the last one; here frame meets frame. It also makes an output every 10 ms and tells CTC
of T / 8 of them; here ``stack`` says how many frames share an output.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import ReverseFrames, masked_inputs
from utils.config import check_at_least, check_fraction


@dataclass(frozen=True)
class GruCtcConfig:
    """Geometry of `build_gru_ctc`; the defaults are the reference's.

    Attributes:
        stack: feature frames put side by side before the first layer, and so the time stride.
        width: units of every layer.
        dense: dense layers before the recurrent ones.
        recurrent: bidirectional layers.
        dropout: share of activations dropped before each layer in training.
    """

    name: str = "gru_ctc"
    stack: int = 1
    width: int = 512
    dense: int = 2
    recurrent: int = 3
    dropout: float = 0.2

    def __post_init__(self):
        check_at_least(self, "model", stack=1, width=1, dense=0, recurrent=0)
        check_fraction(self, "model", "dropout")

    @property
    def time_stride(self) -> int:
        """Input frames per output frame."""
        return self.stack


def build_gru_ctc(config: GruCtcConfig, feature_bins: int, classes: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        feature_bins: F, bins of a feature frame (200 in the reference).
        classes: C, the blank included.

    Returns:
        model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits
        (B, ceil(T / stack), C). Frames beyond ``lengths`` have no influence: the layers that read backwards
        begin at an utterance's own last frame.
    """
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    x = layers.Reshape((-1, config.stack * feature_bins))(x)  # (B, T', stack · F)
    for _ in range(config.dense):
        x = _dense(x, config)  # (B, T', width)
    for layer in range(1, config.recurrent + 1):
        x = _both_directions(x, valid_at(config.time_stride), config, layer)
    x = layers.Dropout(config.dropout)(_dense(x, config))
    logits = layers.Dense(classes, kernel_initializer="he_normal", name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _dense(x, config: GruCtcConfig):
    """Dropout, then a dense layer: (B, T', D) → (B, T', width)."""
    x = layers.Dropout(config.dropout)(x)
    return layers.Dense(config.width, activation="relu", kernel_initializer="he_normal")(x)


def _both_directions(x, valid, config: GruCtcConfig, layer: int):
    """Dropout, then two recurrent layers, one of them from the end: (B, T', D) → (B, T', width).

    Neither gets a mask: padding comes last for both, and a masked layer would lose cuDNN's fast loop on the
    JAX and PyTorch backends.
    """
    x = layers.Dropout(config.dropout)(x)
    settings = {"return_sequences": True, "kernel_initializer": "he_normal"}
    forward = layers.GRU(config.width, name=f"forward_{layer}", **settings)(x)
    turned = layers.GRU(config.width, name=f"backward_{layer}", **settings)(ReverseFrames()(x, valid))
    return layers.Add()([forward, ReverseFrames()(turned, valid)])
