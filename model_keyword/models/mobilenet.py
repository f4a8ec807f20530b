"""MobileNet over time: frames of features in, logits of the labels out.

Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications" (2017,
arXiv:1704.04861), cut down to keywords by Rybakov et al. (arXiv:2005.06720): features are channels, and
every convolution is one over time. The default are the settings of 35 K parameters published with that
paper. It pads on both sides ("same") where it doesn't halve the frames; the default here pads before the
clip only, so that the model streams.

35,084 parameters for 40 features and 12 labels, without the statistics of the normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import (
    Padding,
    clip_mean,
    convolution,
    depthwise,
    label_logits,
    normalised,
)


@dataclass(frozen=True)
class MobilenetConfig:
    """Geometry of `build_mobilenet`; the lists have an entry a block.

    Attributes:
        first_filters: channels of the first convolution.
        first_kernel: frames that it sees.
        first_stride: its steps over the frames.
        filters: channels after each block.
        kernels: frames that its depthwise convolution sees.
        strides: steps of that over the frames.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: share of channels dropped before the logits.
    """

    name: str = "mobilenet"
    first_filters: int = 32
    first_kernel: int = 3
    first_stride: int = 2
    filters: tuple[int, ...] = (32, 64, 128, 128)
    kernels: tuple[int, ...] = (3, 3, 3, 3)
    strides: tuple[int, ...] = (2, 2, 1, 1)
    padding: Padding = "causal"
    dropout: float = 0.2

    def __post_init__(self):
        check_value(self, first_filters="count", first_kernel="count", first_stride="count")
        check_value(self, padding="padding", dropout="share")
        check_layers(self, filters="count", kernels="count", strides="count")


def build_mobilenet(config: MobilenetConfig, x, labels: int, clip_share: float = 1.0):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.
        clip_share: of the frames, how many make the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    x = convolution(
        x,
        config.first_filters,
        config.first_kernel,
        stride=config.first_stride,
        padding=config.padding,
        use_bias=False,
        name="conv",
    )
    x = normalised(x, "conv", "relu6")  # (B, T', first_filters)
    lists = (config.filters, config.kernels, config.strides)
    for number, (filters, kernel, stride) in enumerate(zip(*lists, strict=True), 1):
        name = f"block_{number}_depthwise"
        x = depthwise(x, kernel, stride=stride, padding=config.padding, use_bias=False, name=name)
        x = normalised(x, name, "relu6")
        x = layers.Dense(filters, use_bias=False, name=f"block_{number}_mix")(x)
        x = normalised(x, f"block_{number}_mix", "relu6")
    x = clip_mean(x, clip_share)  # (B, filters)
    return label_logits(layers.Dropout(config.dropout, name="dropout")(x), labels)
