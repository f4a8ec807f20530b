"""Our small acoustic model: log-mel features + lengths in, CTC logits every 80 ms out.

All of its work is done at the output's frame rate, with the operations that a CPU does best: matrix
products, and depthwise convolutions over time for the context. Eight frames are stacked and projected;
then come residual blocks of normalisation, depthwise convolution and pointwise layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.masking import FrameMask, MaskFrames, PadTime


@dataclass(frozen=True)
class CompactConfig:
    """Geometry of `build_compact`."""

    name: str = "compact"
    stack: int = 8  # frames that make one: 80 ms
    width: int = 256  # channels of the residual blocks
    blocks: int = 8
    kernel: int = 11  # stacked frames that a block's convolution sees
    dropout: float = 0.1

    @property
    def time_stride(self) -> int:
        """Input frames per output frame."""
        return self.stack


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
    padded = PadTime(config.stack)(features)
    x = MaskFrames()(padded, FrameMask()(padded, lengths))
    x = layers.Reshape((-1, config.stack * feature_bins))(x)  # (B, T', stack * F)
    x = layers.Dense(config.width, name="front")(x)
    valid = FrameMask(config.stack)(padded, lengths)
    for _ in range(config.blocks):
        x = _block(x, valid, config)
    x = _dropout(layers.RMSNormalization()(x), config)
    logits = layers.Dense(classes, name="logits", dtype="float32")(x)
    return keras.Model({"features": features, "lengths": lengths}, logits, name=config.name)


def _block(x, valid, config: CompactConfig):
    """Residual convolution over time: (B, T', width) → the same."""
    y = MaskFrames()(layers.RMSNormalization()(x), valid)
    y = layers.DepthwiseConv1D(config.kernel, padding="same")(y)
    y = layers.Dense(config.width, activation="relu")(y)
    return layers.Add()([x, _dropout(y, config)])


def _dropout(x, config: CompactConfig):
    """Drop whole channels of an utterance: as good, and a fraction of the random numbers."""
    return layers.Dropout(config.dropout, noise_shape=(None, 1, config.width))(x)
