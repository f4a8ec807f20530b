"""Xception for keywords, residual separable convolutions over time: feature frames in, label logits out.

Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions" (2016, arXiv:1610.02357), reduced in
size for keyword spotting by Rybakov et al. (arXiv:2005.06720): residual blocks of separable convolutions over
time, with pooling over time after a block. The default has the settings of the published model with 31 K
parameters. That model pads on both sides ("same"); the default here pads before the clip only, so that it can
stream.

31,740 parameters for 30 features and 12 labels, not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import Counts, KeptLength, LayerSettings, each_layer
from model_keyword.layers.time_layers import (
    POOL,
    clip_mean,
    depthwise,
    label_logits,
    max_pooling,
    normalised_convolution,
    normalised_dense,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class XceptionConfig(LayerSettings):
    """Settings of `build_xception`.

    Attributes:
        first_filters: channels of each convolution before the blocks.
        first_kernels: their sizes in frames.
        first_stride: stride of the pooling after them; 1: no pooling.
        filters: channels of each separable convolution of each block.
        kernels: their sizes in frames.
        strides: stride of the pooling after each block; 1: no pooling.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of values dropped after the activations.
        units: sizes of the dense layers.
    """

    name: str = "xception"
    first_filters: tuple[Count, ...] = (16,)
    first_kernels: tuple[Count, ...] = (5,)
    first_stride: Count = 2
    filters: tuple[Counts, ...] = ((32, 40), (64,), (100,))
    kernels: tuple[Counts, ...] = ((5, 7), (7,), (11,))
    strides: tuple[Count, ...] = (2, 1, 1)
    padding: KeptLength = "causal"
    dropout: Fraction = 0.0
    units: tuple[Count, ...] = (64,)


def build_xception(config: XceptionConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32."""
    for number, filters, kernel in each_layer(config.first_filters, config.first_kernels):
        settings = {"padding": config.padding, "scale": False}
        x = normalised_convolution(x, filters, kernel, name=f"conv_{number}", **settings)
    x = max_pooling(x, POOL, config.first_stride, padding=config.padding, name="conv_pool")
    for number, filters, kernels, stride in each_layer(config.filters, config.kernels, config.strides):
        x = _block(x, filters, kernels, config, f"block_{number}")
        x = max_pooling(x, POOL, stride, padding=config.padding, name=f"block_{number}_pool")
    x = clip_mean(x, clip_fraction)  # (B, filters)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    for number, units in enumerate(config.units, 1):
        x = normalised_dense(x, units, name=f"dense_{number}", scale=False)
    return label_logits(x, labels)


def _block(x, filters: tuple[int, ...], kernels: tuple[int, ...], config: XceptionConfig, name: str):
    """Separable convolutions with a residual connection: (B, T, C) → (B, T, filters[-1])."""
    shortcut = normalised_dense(x, filters[-1], name=f"{name}_shortcut", activation=None, scale=False)
    for number, size, kernel in each_layer(filters, kernels):
        layer = f"{name}_depthwise_{number}"
        x = depthwise(x, kernel, padding=config.padding, use_bias=False, name=layer)
        last = number == len(filters)
        activation = None if last else "relu"
        x = normalised_dense(x, size, name=f"{name}_mix_{number}", activation=activation, scale=False)
        x = x if last else layers.Dropout(config.dropout, name=f"{name}_dropout_{number}")(x)
    x = layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")([x, shortcut]))
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(x)
