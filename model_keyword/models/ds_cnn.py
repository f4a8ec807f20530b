"""DS-CNN, a depthwise separable CNN for keywords: frames of features in, logits of the labels out.

Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers" (2017, arXiv:1711.07128): one convolution
over time and frequency, depthwise separable layers (a depthwise and a 1 x 1 convolution), and the mean over
time and frequency. The default is the paper's smallest, DS-CNN-S. The paper pads
on both sides ("same"); the default here pads before the clip only, so that the model can stream.

The paper counts bytes: one for each weight and each value of the two largest neighbouring activations. With
49 frames of 10 features and 12 labels, 38.6 KB are 22,604 weights (batch normalisation folded into the
convolutions) and two activations of 25 x 5 x 64. Before folding, the weights are 24,908 parameters.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import (
    Padding,
    as_image,
    clip_mean,
    convolution,
    depthwise,
    label_logits,
    normalised,
)


@dataclass(frozen=True)
class DsCnnConfig:
    """Settings of `build_ds_cnn`; the lists have one entry for each depthwise separable layer.

    Attributes:
        first_filters: channels of the first convolution.
        first_kernel: its size over frames and features.
        first_stride: its stride over frames and features.
        first_dilation: its dilation over frames and features.
        filters: channels after each separable layer.
        kernels: their sizes over frames and features.
        strides: its steps, the same over frames and features.
        dilations: distance between what it sees.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "ds_cnn"
    first_filters: int = 64
    first_kernel: tuple[int, int] = (10, 4)
    first_stride: tuple[int, int] = (2, 2)
    first_dilation: tuple[int, int] = (1, 1)
    filters: tuple[int, ...] = (64,) * 4
    kernels: tuple[tuple[int, int], ...] = ((3, 3),) * 4
    strides: tuple[tuple[int, int], ...] = ((1, 1),) * 4
    dilations: tuple[tuple[int, int], ...] = ((1, 1),) * 4
    padding: Padding = "causal"
    dropout: float = 0.2

    def __post_init__(self):
        check_value(self, first_filters="count", first_kernel="pair", first_stride="pair")
        check_value(self, first_dilation="pair", padding="padding", dropout="fraction")
        check_layers(self, filters="count", kernels="pair", strides="pair", dilations="pair")


def build_ds_cnn(config: DsCnnConfig, x, labels: int, clip_fraction: float = 1.0):
    """Build the network.

    Args:
        config: settings of the network.
        x: features (B, T, F).
        labels: L.
        clip_fraction: fraction of the frames that belong to the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.

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
    lists = (config.filters, config.kernels, config.strides, config.dilations)
    for number, (filters, kernel, stride, dilation) in enumerate(zip(*lists, strict=True), 1):
        name = f"depthwise_{number}"
        x = depthwise(x, kernel, stride=stride, dilation=dilation, padding=config.padding, name=name)
        x = normalised(x, name)
        x = convolution(x, filters, 1, name=f"pointwise_{number}")
        x = normalised(x, f"pointwise_{number}")
    x = clip_mean(x, clip_fraction)  # (B, filters)
    return label_logits(layers.Dropout(config.dropout, name="dropout")(x), labels)
