"""Inception-ResNet, inception blocks with residuals, for keywords: feature frames in, label logits out.

Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections on Learning" (2016,
arXiv:1602.07261), reduced in size for keyword spotting by Rybakov et al. (arXiv:2005.06720): the outputs of
two branches are projected to the channels of the block's input, scaled, and added to it. The default has the
settings of the published model with 33 K parameters. The paper pads on both sides ("same"); the default here
pads before the clip only, so that the model can stream.

33,324 parameters for 30 features and 12 labels, not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import KeptLength, LayerSettings
from model_keyword.layers.time_layers import (
    POOL,
    max_pooling,
    mean_head,
    normalised,
    normalised_convolution,
    pooled_convolutions,
)
from utils.limits import Count, Fraction, Positive


@dataclass(frozen=True)
class InceptionResnetConfig(LayerSettings):
    """Settings of `build_inception_resnet`.

    Attributes:
        first_filters: channels of each convolution before the blocks.
        first_kernels: their sizes in frames.
        first_strides: stride of the pooling after each of them; 1: no pooling.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        scales: factor for the branches of each block before they are added to its input.
        frame_filters: channels of the branch without a convolution over time.
        window_filters: channels of the branch with two convolutions over time.
        filters: channels after each block.
        kernels: sizes of its convolutions over time, in frames.
        strides: stride of the pooling after each block; 1: no pooling.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "inception_resnet"
    first_filters: tuple[Count, ...] = (32,)
    first_kernels: tuple[Count, ...] = (5,)
    first_strides: tuple[Count, ...] = (1,)
    padding: KeptLength = "causal"
    scales: tuple[Positive, ...] = (0.2, 0.5, 1.0)
    frame_filters: tuple[Count, ...] = (16, 16, 32)
    window_filters: tuple[Count, ...] = (16, 16, 32)
    filters: tuple[Count, ...] = (32, 32, 64)
    kernels: tuple[Count, ...] = (3, 5, 5)
    strides: tuple[Count, ...] = (2, 2, 1)
    dropout: Fraction = 0.2


def build_inception_resnet(config: InceptionResnetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32."""
    settings = {"padding": config.padding}
    x = pooled_convolutions(x, config, settings)
    for index, (filters, stride) in enumerate(zip(config.filters, config.strides, strict=True)):
        name = f"block_{index + 1}"
        x = normalised_convolution(_block(x, config, index), filters, 1, name=f"{name}_out", **settings)
        x = max_pooling(x, POOL, stride, padding=config.padding, name=f"{name}_pool")
    return mean_head(x, config, labels, clip_fraction)


def _block(x, config: InceptionResnetConfig, index: int):
    """Two branches, scaled and added to the input: (B, T, C) → (B, T, C)."""
    name, kernel, settings = f"block_{index + 1}", config.kernels[index], {"padding": config.padding}
    frame = normalised_convolution(x, config.frame_filters[index], 1, name=f"{name}_frame", **settings)
    window = normalised_convolution(x, config.frame_filters[index], 1, name=f"{name}_window", **settings)
    for number in (1, 2):
        window = normalised_convolution(
            window, config.window_filters[index], kernel, name=f"{name}_window_{number}", **settings
        )
    y = layers.Concatenate(name=f"{name}_side_by_side")([frame, window])
    y = normalised(layers.Dense(x.shape[-1], name=f"{name}_mix")(y), f"{name}_mix", None)
    y = layers.Rescaling(config.scales[index], name=f"{name}_share")(y)
    return layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")([x, y]))
