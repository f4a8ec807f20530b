"""MobileNetV2 for keywords, inverted residuals over time: feature frames in, label logits out.

Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (2018, arXiv:1801.04381), reduced in
size for keyword spotting by Rybakov et al. (arXiv:2005.06720): a block expands its input to more channels,
convolves every channel over time, mixes the channels without an activation (the linear bottleneck), and adds
its input if the shape is the same. The default has the settings of the published model with 28 K parameters,
with one exception: that model pads on both sides ("same"), the default here pads before the clip only, so
that it can stream.

28,316 parameters for 30 features and 12 labels, not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import KeptLength, LayerSettings
from model_keyword.layers.time_layers import (
    mean_head,
    normalised_convolution,
    normalised_dense,
    normalised_depthwise,
)
from utils.limits import Count, Fraction, Positive


@dataclass(frozen=True)
class MobilenetV2Config(LayerSettings):
    """Settings of `build_mobilenet_v2`; the lists have one entry for each block.

    Attributes:
        first_filters: channels of the first convolution.
        first_kernel: its size in frames.
        first_stride: its stride over frames.
        filters: channels after each block.
        kernels: size of the block's depthwise convolution, in frames.
        strides: stride of the same convolution, over frames.
        expansions: channels inside the block, as a multiple of those of its input.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "mobilenet_v2"
    first_filters: Count = 32
    first_kernel: Count = 3
    first_stride: Count = 2
    filters: tuple[Count, ...] = (32, 32, 64, 64)
    kernels: tuple[Count, ...] = (3, 3, 3, 3)
    strides: tuple[Count, ...] = (1, 2, 1, 1)
    expansions: tuple[Positive, ...] = (1.5, 1.5, 1.5, 1.5)
    padding: KeptLength = "causal"
    dropout: Fraction = 0.2


def build_mobilenet_v2(config: MobilenetV2Config, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32."""
    x = normalised_convolution(
        x,
        config.first_filters,
        config.first_kernel,
        stride=config.first_stride,
        padding=config.padding,
        activation="relu6",
        scale=False,
        name="conv",
    )  # (B, T', first_filters)
    for index in range(len(config.filters)):
        x = _block(x, config, index)
    return mean_head(x, config, labels, clip_fraction)


def _block(x, config: MobilenetV2Config, index: int):
    """Inverted residual: (B, T, C) → (B, T / stride, filters)."""
    name, filters, stride = f"block_{index + 1}", config.filters[index], config.strides[index]
    wide = max(1, round(config.expansions[index] * x.shape[-1]))
    settings = {"activation": "relu6", "scale": False}
    y = normalised_dense(x, wide, name=f"{name}_widen", **settings)
    y = normalised_depthwise(
        y,
        config.kernels[index],
        stride=stride,
        padding=config.padding,
        name=f"{name}_depthwise",
        **settings,
    )
    y = normalised_dense(y, filters, name=f"{name}_narrow", activation=None)
    if stride > 1 or x.shape[-1] != filters:
        return y
    return layers.Add(name=f"{name}_add")([x, y])
