"""DFCNN, the deep fully convolutional reference: log spectrogram + lengths in, CTC logits every 80 ms out.

Cells of two 3x3 convolutions, each followed by ReLU and batch normalisation; the first cells end in 2x2
max-pooling; then two dense layers frame by frame. The softmax belongs to the loss and to the decoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import masked_inputs
from model_speech.layers.normalisation import MaskedBatchNormalization
from utils.config import check_at_least, check_fraction
from utils.errors import ConfigError


@dataclass(frozen=True)
class DfcnnConfig:
    """Geometry of `build_dfcnn`; the defaults are the published model's."""

    name: str = "dfcnn"
    filters: tuple[int, ...] = (32, 64, 128, 128, 128)  # one cell of two convolutions each
    pooled: int = 3  # how many of the cells, from the first, end in pooling
    dense: int = 256
    dropout: float = 0.2

    def __post_init__(self):
        check_at_least(self, "model", filters=1, pooled=0, dense=1)
        check_fraction(self, "model", "dropout")
        if self.pooled > len(self.filters):
            hint = f"at most {len(self.filters)}, the number of cells in model.filters"
            raise ConfigError(f"model.pooled is {self.pooled}", hint=hint)

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: each pooling halves."""
        return 2**self.pooled


def build_dfcnn(config: DfcnnConfig, feature_bins: int, classes: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        feature_bins: F, bins of a feature frame (200 in the published model).
        classes: C, the blank included.

    Returns:
        model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits
        (B, ceil(T / time_stride), C). Frames beyond ``lengths`` have no influence, nor do they enter the
        statistics of the batch normalisation.

    Raises:
        ConfigError: the poolings leave nothing of so few bins.
    """
    if feature_bins < config.time_stride:  # each pooling halves time and bins alike
        what = f"{feature_bins} feature bins can't be halved model.pooled = {config.pooled} times"
        raise ConfigError(what, hint="more features.bins, or a smaller model.pooled")
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    for cell, filters in enumerate(config.filters):
        x = _cell(x, valid_at(2 ** min(cell, config.pooled)), filters)
        if cell < config.pooled:
            x = layers.MaxPooling2D(2)(x)  # (B, T / 2, F / 2, filters)
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]))(x)  # (B, T / 8, 3200) in the published model
    x = layers.Dropout(config.dropout)(x)
    x = layers.Dense(config.dense, activation="relu", kernel_initializer="he_normal")(x)
    x = layers.Dropout(config.dropout)(x)
    logits = layers.Dense(classes, kernel_initializer="he_normal", name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _cell(x, valid, filters: int):
    """Two convolutions: (B, T, F, D) → (B, T, F, filters), padding zero again at the end."""
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x)
        x = MaskedBatchNormalization()(x, valid)
    return x
