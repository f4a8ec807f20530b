"""DS-CNN, a depthwise separable CNN for keywords: feature frames in, label logits out.

Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers" (2017, arXiv:1711.07128): one convolution
over time and frequency, depthwise separable layers (a depthwise and a 1 x 1 convolution), and the mean over
time and frequency. The default is the paper's smallest, DS-CNN-S. The paper pads on both sides ("same"); the
default here pads before the clip only, so that the model can stream.

The paper counts bytes: one for each weight and each value of the two largest neighbouring activations. With
49 frames of 10 features and 12 labels, 38.6 KB are 22,604 weights (batch normalisation folded into the
convolutions) and two activations of 25 x 5 x 64. Before folding, the weights are 24,908 parameters.
"""

from dataclasses import dataclass

from model_keyword.layers.layer_settings import LayerSettings, Padding, Pair, each_layer
from model_keyword.layers.time_layers import (
    as_image,
    convolution,
    depthwise,
    mean_head,
    normalised,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class DsCnnConfig(LayerSettings):
    """Settings of `build_ds_cnn`; the lists have one entry for each depthwise separable layer.

    Attributes:
        first_filters: channels of the first convolution.
        first_kernel: its size over frames and features.
        first_stride: its stride over frames and features.
        first_dilation: its dilation over frames and features.
        filters: channels after each separable layer.
        kernels: sizes of the depthwise convolutions over frames and features.
        strides: their strides, the same over frames and features.
        dilations: their dilations over frames and features.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "ds_cnn"
    first_filters: Count = 64
    first_kernel: Pair = (10, 4)
    first_stride: Pair = (2, 2)
    first_dilation: Pair = (1, 1)
    filters: tuple[Count, ...] = (64,) * 4
    kernels: tuple[Pair, ...] = ((3, 3),) * 4
    strides: tuple[Pair, ...] = ((1, 1),) * 4
    dilations: tuple[Pair, ...] = ((1, 1),) * 4
    padding: Padding = "causal"
    dropout: Fraction = 0.2


def build_ds_cnn(config: DsCnnConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    x = convolution(
        as_image(x),
        config.first_filters,
        config.first_kernel,
        stride=config.first_stride,
        dilation=config.first_dilation,
        padding=config.padding,
        name="conv",
    )
    x = normalised(x, "conv")  # (B, T', F', first_filters)
    for number, filters, kernel, stride, dilation in each_layer(
        config.filters, config.kernels, config.strides, config.dilations
    ):
        name = f"depthwise_{number}"
        x = depthwise(x, kernel, stride=stride, dilation=dilation, padding=config.padding, name=name)
        x = normalised(x, name)
        x = convolution(x, filters, 1, name=f"pointwise_{number}")
        x = normalised(x, f"pointwise_{number}")
    return mean_head(x, config, labels, clip_fraction)
