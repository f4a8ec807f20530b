"""Our small acoustic model: log-mel features + lengths in, CTC logits every 80 ms out."""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.masking import FrameMask, MaskFrames, PadTime


@dataclass(frozen=True)
class CompactConfig:
    """Geometry of `build_compact`."""

    name: str = "compact"
    front_filters: tuple[int, ...] = (32, 64)  # one 3x3 convolution of stride 2 x 2 each
    width: int = 256  # channels of the residual blocks
    blocks: int = 6
    kernel: int = 5  # frames that a block's convolution sees
    dropout: float = 0.1

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: every front convolution halves, and the projection after them."""
        return 2 ** (len(self.front_filters) + 1)


def build_compact(config: CompactConfig, feature_bins: int, classes: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        feature_bins: F, bins of a feature frame.
        classes: C, the blank included.

    Returns:
        model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits
        (B, ceil(T / time_stride), C); frames beyond ``lengths`` have no influence.
    """
    features = keras.Input((None, feature_bins), name="features")
    lengths = keras.Input((), dtype="int32", name="lengths")
    padded = PadTime(config.time_stride)(features)
    x = MaskFrames()(padded, FrameMask()(padded, lengths))
    x = layers.Reshape((-1, feature_bins, 1))(x)
    for index, filters in enumerate(config.front_filters):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
        x = MaskFrames()(x, FrameMask(2 ** (index + 1))(padded, lengths))
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]))(x)
    x = layers.Conv1D(config.width, 2, strides=2, padding="same")(x)
    valid = FrameMask(config.time_stride)(padded, lengths)
    for _ in range(config.blocks):
        x = _block(x, valid, config)
    x = layers.Dropout(config.dropout)(layers.LayerNormalization()(x))
    logits = layers.Dense(classes, name="logits", dtype="float32")(x)
    return keras.Model({"features": features, "lengths": lengths}, logits, name=config.name)


def _block(x, valid, config: CompactConfig):
    """Residual convolution over time: (B, T', width) → the same."""
    y = MaskFrames()(layers.LayerNormalization()(x), valid)
    y = layers.Conv1D(config.width, config.kernel, padding="same", activation="relu")(y)
    return layers.Add()([x, layers.Dropout(config.dropout)(y)])
