"""MobileNet for keywords, separable convolutions over time: feature frames in, label logits out.

Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications" (2017,
arXiv:1704.04861), reduced in size for keyword spotting by Rybakov et al. (arXiv:2005.06720): features are
channels, and all convolutions are over time. The default has the settings of the published model with 35 K
parameters. That model pads on both sides ("same") where it doesn't halve the frames; the default here pads
before the clip only, so that it can stream.

35,084 parameters for 40 features and 12 labels, not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass

from model_keyword.layers.layer_settings import LayerSettings, Padding, each_layer
from model_keyword.layers.time_layers import (
    mean_head,
    normalised_convolution,
    normalised_dense,
    normalised_depthwise,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class MobilenetConfig(LayerSettings):
    """Settings of `build_mobilenet`; the lists have one entry for each block.

    Attributes:
        first_filters: channels of the first convolution.
        first_kernel: its size in frames.
        first_stride: its stride over frames.
        filters: channels after each block.
        kernels: size of the block's depthwise convolution, in frames.
        strides: stride of the same convolution, over frames.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "mobilenet"
    first_filters: Count = 32
    first_kernel: Count = 3
    first_stride: Count = 2
    filters: tuple[Count, ...] = (32, 64, 128, 128)
    kernels: tuple[Count, ...] = (3, 3, 3, 3)
    strides: tuple[Count, ...] = (2, 2, 1, 1)
    padding: Padding = "causal"
    dropout: Fraction = 0.2


def build_mobilenet(config: MobilenetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    settings = {"padding": config.padding, "activation": "relu6"}
    x = normalised_convolution(
        x, config.first_filters, config.first_kernel, stride=config.first_stride, name="conv", **settings
    )  # (B, T', first_filters)
    for number, filters, kernel, stride in each_layer(config.filters, config.kernels, config.strides):
        x = normalised_depthwise(x, kernel, stride=stride, name=f"block_{number}_depthwise", **settings)
        x = normalised_dense(x, filters, name=f"block_{number}_mix", activation="relu6")
    return mean_head(x, config, labels, clip_fraction)
