"""Conformer, the model for GPUs: log-mel features + lengths in, CTC logits every 40 ms out.

Gulati et al., "Conformer: Convolution-augmented Transformer for Speech Recognition" (2020, arXiv:2005.08100):
its encoder, with one dense layer to the CTC logits where the paper has a transducer. Attention finds what is
far, convolution what is near, half a feed-forward layer goes before and half after them.

Sizes of the paper: S (the defaults), M: width 256, L: width 512, heads 8, blocks 17. Its counts (10.3, 30.7
and 118.8 million) hold the transducer's decoder too; the encoders alone have 8.7, 27.3 and 115.1 million.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import MaskFrames, masked_inputs
from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.layers.relative_attention import RelativeAttention, RelativePositions
from utils.config import check_at_least, check_fraction
from utils.errors import ConfigError


@dataclass(frozen=True)
class ConformerConfig:
    """Geometry of `build_conformer`; the defaults are the paper's Conformer (S).

    Attributes:
        blocks: Conformer blocks.
        width: channels of every block's output, and of the subsampling; a multiple of ``heads``.
        heads: attention heads a block.
        feed_forward: inner size of the feed-forward modules, in widths.
        kernel: frames that a convolution module sees.
        dropout: share of activations dropped in training, at the end of every module.
    """

    name: str = "conformer"
    blocks: int = 16
    width: int = 144
    heads: int = 4
    feed_forward: int = 4
    kernel: int = 32
    dropout: float = 0.1

    def __post_init__(self):
        check_at_least(self, "model", blocks=0, width=1, heads=1, feed_forward=1, kernel=1)
        check_fraction(self, "model", "dropout")
        if self.width % self.heads:
            what = f"model.width {self.width} is not a multiple of model.heads {self.heads}"
            raise ConfigError(what, hint="each head gets an equal part of the width")

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: each of the two convolutions in front halves them."""
        return 4


def build_conformer(config: ConformerConfig, feature_bins: int, classes: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        feature_bins: F, bins of a feature frame (80 in the paper).
        classes: C, the blank included.

    Returns:
        model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits (B, ceil(T / 4), C).
        Frames beyond ``lengths`` have no influence, nor do they enter the statistics of the batch
        normalisation.
    """
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    for stride in (2, 4):
        x = layers.Conv2D(config.width, 3, strides=2, padding="same", activation="relu")(x)
        x = MaskFrames()(x, valid_at(stride))  # half of T and F
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]))(x)  # (B, T / 4, F / 4 · width)
    x = layers.Dropout(config.dropout)(layers.Dense(config.width)(x))
    valid, positions = valid_at(config.time_stride), RelativePositions()(x)
    for _ in range(config.blocks):
        x = _block(x, positions, valid, config)
    logits = layers.Dense(classes, name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _block(x, positions, valid, config: ConformerConfig):
    """A Conformer block (section 2.4, equation 1): (B, T', width) → the same."""
    x = x + 0.5 * _feed_forward(x, config)
    x = x + _attend(x, positions, valid, config)
    x = x + _convolve(x, valid, config)
    x = x + 0.5 * _feed_forward(x, config)
    return layers.LayerNormalization()(x)


def _feed_forward(x, config: ConformerConfig):
    """Feed-forward module (figure 4): (B, T', width) → the same."""
    y = layers.LayerNormalization()(x)
    y = layers.Dense(config.feed_forward * config.width, activation="swish")(y)
    y = layers.Dense(config.width)(layers.Dropout(config.dropout)(y))
    return layers.Dropout(config.dropout)(y)


def _attend(x, positions, valid, config: ConformerConfig):
    """Multi-headed self-attention module (figure 3): (B, T', width) → the same."""
    y = layers.LayerNormalization()(x)
    return layers.Dropout(config.dropout)(RelativeAttention(config.heads)(y, positions, valid))


def _convolve(x, valid, config: ConformerConfig):
    """Convolution module (figure 2): (B, T', width) → the same.

    The first pointwise convolution and its gated linear unit are two dense layers here.
    """
    y = layers.LayerNormalization()(x)
    y = layers.Dense(config.width)(y) * layers.Dense(config.width, activation="sigmoid")(y)
    y = MaskFrames()(y, valid)
    y = layers.DepthwiseConv1D(config.kernel, padding="same", use_bias=False)(y)
    y = layers.Activation("swish")(MaskedBatchNormalization()(y, valid))
    return layers.Dropout(config.dropout)(layers.Dense(config.width)(y))
