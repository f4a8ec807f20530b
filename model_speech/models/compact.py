"""Our small acoustic model: log-mel features + lengths in, CTC logits every 80 ms out.

Two strided convolutions over time and frequency, as few as a CPU can bear, make it indifferent to where a
sound falls between frames and bins; everything after them runs at the output's frame rate, with the
operations that a CPU does best: matrix products, and depthwise convolutions over time for the context.
A gate in each block hears the whole utterance, so that the speaker and the room weigh the channels (squeeze
and excitation: Hu et al., arXiv:1709.01507; in speech ContextNet: Han et al., arXiv:2005.03191).
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import MeanFrame, masked_inputs
from model_speech.layers.normalisation import MaskedBatchNormalization
from utils.config import check_at_least, check_fraction

# Runs are short, some thousand steps: Keras's usual 0.99 would still remember the first epoch.
_MOMENTUM = 0.97


@dataclass(frozen=True)
class CompactConfig:
    """Geometry of `build_compact`.

    Attributes:
        front_filters: one 3 x 3 convolution of stride 2 x 2 each.
        width: channels of the residual blocks.
        blocks: residual blocks.
        kernel: output frames that a block's convolution sees.
        gate: values that a block's gate boils the utterance down to; 0 for no gates: a gate needs all of the
            utterance before its first output frame.
        dropout: share of channels dropped in training, for a whole utterance.
    """

    name: str = "compact"
    front_filters: tuple[int, ...] = (16, 32)
    width: int = 256
    blocks: int = 8
    kernel: int = 7
    gate: int = 64
    dropout: float = 0.1

    def __post_init__(self):
        check_at_least(self, "model", front_filters=1, width=1, blocks=0, kernel=1, gate=0)
        check_fraction(self, "model", "dropout")

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: every front convolution halves them, and so does the projection."""
        return 2 ** (len(self.front_filters) + 1)


def build_compact(config: CompactConfig, feature_bins: int, classes: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        feature_bins: F, bins of a feature frame.
        classes: C, the blank included.

    Returns:
        model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits
        (B, ceil(T / time_stride), C). Frames beyond ``lengths`` have no influence, nor do they enter the
        statistics of the batch normalisation.
    """
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    for index, filters in enumerate(config.front_filters):
        x = _front(x, valid_at(2 ** (index + 1)), filters)  # half of T and F
    x = layers.Reshape((-1, 2 * x.shape[2] * x.shape[3]))(x)  # two frames side by side
    x = layers.Dense(config.width, use_bias=False, name="front")(x)  # (B, T', width); padding stays zero
    valid = valid_at(config.time_stride)
    for _ in range(config.blocks):
        x = _block(x, valid, config)
    logits = layers.Dense(classes, name="logits", dtype="float32")(_dropout(x, config))
    return keras.Model(inputs, logits, name=config.name)


def _front(x, valid, filters: int):
    """Strided convolution: (B, T, F, D) → (B, T / 2, F / 2, filters), padding zero again at the end."""
    y = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False, kernel_initializer="he_normal")(
        x
    )
    return layers.ReLU()(MaskedBatchNormalization(momentum=_MOMENTUM)(y, valid))


def _block(x, valid, config: CompactConfig):
    """Residual convolution over time: (B, T', width) → the same, padding zero as before."""
    y = layers.DepthwiseConv1D(config.kernel, padding="same", use_bias=False)(x)
    y = layers.Dense(config.width, use_bias=False)(y)
    y = layers.ReLU()(MaskedBatchNormalization(momentum=_MOMENTUM)(y, valid))
    if config.gate:
        y = layers.Multiply()([y, _gate(y, valid, config)])
    return layers.Add()([x, _dropout(y, config)])


def _gate(x, valid, config: CompactConfig):
    """How much of each channel this utterance needs: (B, T', width) → (B, 1, width) from 0 to 1."""
    y = layers.Dense(config.gate, activation="relu")(MeanFrame()(x, valid))
    # Open to three quarters at the beginning: a closed gate would keep the blocks from learning.
    y = layers.Dense(config.width, activation="sigmoid", bias_initializer="ones")(y)
    return layers.Reshape((1, config.width))(y)


def _dropout(x, config: CompactConfig):
    """Drop whole channels of an utterance: as good, and a fraction of the random numbers."""
    return layers.Dropout(config.dropout, noise_shape=(None, 1, config.width))(x)
