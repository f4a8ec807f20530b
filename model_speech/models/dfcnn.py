"""DFCNN, a deep fully convolutional network: log spectrogram and lengths in, CTC logits every 80 ms out.

Each cell has two 3x3 convolutions, each followed by ReLU and batch normalisation; the first cells end with
2x2 max-pooling. Two dense layers per frame follow. The loss and the decoders compute the softmax.
"""

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import masked_inputs
from model_speech.layers.normalisation import MaskedBatchNormalization
from utils.errors import ConfigError, require
from utils.limits import Count, Fraction, Limited, Size


@dataclass(frozen=True)
class DfcnnConfig(Limited, section="model"):
    """Configuration of `build_dfcnn`; the defaults are those of the published model."""

    name: str = "dfcnn"
    filters: tuple[Count, ...] = (32, 64, 128, 128, 128)  # output channels of each cell's two convolutions
    pooled: Size = 3  # number of cells, from the first, that end with pooling
    dense: Count = 256
    dropout: Fraction = 0.2

    def __post_init__(self):
        super().__post_init__()
        require(
            self.pooled <= len(self.filters),
            f"model.pooled is {self.pooled}",
            hint=f"at most {len(self.filters)}, the number of cells in model.filters",
        )

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: each pooling halves the rate."""
        return 2**self.pooled


def build_dfcnn(config: DfcnnConfig, feature_bins: int, classes: int) -> keras.Model:
    """Features (B, T, F) → logits (B, ceil(T / time_stride), C); 200 bins in the published model.

    Padding has no influence on valid outputs, nor on the statistics of the batch normalisation.

    Raises:
        ConfigError: there are too few bins for the poolings.
    """
    if feature_bins < config.time_stride:  # each pooling halves time and bins
        raise ConfigError(
            f"{feature_bins} feature bins can't be halved model.pooled = {config.pooled} times",
            hint="more features.bins, or a smaller model.pooled",
        )
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    for cell, filters in enumerate(config.filters):
        x = _cell(x, f"cell_{cell + 1}", valid_at(2 ** min(cell, config.pooled)), filters)
        if cell < config.pooled:
            x = layers.MaxPooling2D(2, name=f"cell_{cell + 1}_pool")(x)  # (B, T / 2, F / 2, filters)
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]), name="flat")(x)  # (B, T / 8, 3200) as published
    x = layers.Dropout(config.dropout, name="flat_dropout")(x)
    x = layers.Dense(config.dense, activation="relu", kernel_initializer="he_normal", name="dense")(x)
    x = layers.Dropout(config.dropout, name="dense_dropout")(x)
    logits = layers.Dense(classes, kernel_initializer="he_normal", name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _cell(x, name: str, valid, filters: int):
    """Two convolutions: (B, T, F, D) → (B, T, F, filters), with zeroed padding."""
    settings = {"padding": "same", "activation": "relu", "kernel_initializer": "he_normal"}
    for index in (1, 2):
        x = layers.Conv2D(filters, 3, name=f"{name}_conv_{index}", **settings)(x)
        x = MaskedBatchNormalization(name=f"{name}_norm_{index}")(x, valid)
    return x
