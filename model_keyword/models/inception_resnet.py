"""Inception-ResNet over time: frames of features in, logits of the labels out.

Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections on Learning" (2016,
arXiv:1602.07261), cut down to keywords by Rybakov et al. (arXiv:2005.06720): what two branches see is
brought to the channels of the block's input and added to it, a share of it only. The default are the
settings of 33 K parameters published with that paper. It pads on both sides ("same"); the default here pads
before the clip only, so that the model streams.

33,324 parameters for 30 features and 12 labels, without the statistics of the normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import (
    KeptLength,
    clip_mean,
    convolution,
    label_logits,
    max_pooling,
    normalised,
)

_POOL = 3  # frames of which the largest is kept, as in the papers


@dataclass(frozen=True)
class InceptionResnetConfig:
    """Geometry of `build_inception_resnet`.

    Attributes:
        first_filters: channels of each convolution before the blocks.
        first_kernels: frames that each of them sees.
        first_strides: steps of the pooling after each of them; 1: no pooling.
        scales: share of its branches that each block adds to its input.
        frame_filters: channels of what a block sees through one frame.
        window_filters: channels of what it sees through two windows after each other.
        filters: channels after each block.
        kernels: frames that its windows see.
        strides: steps of the pooling after each block; 1: no pooling.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: share of channels dropped before the logits.
    """

    name: str = "inception_resnet"
    first_filters: tuple[int, ...] = (32,)
    first_kernels: tuple[int, ...] = (5,)
    first_strides: tuple[int, ...] = (1,)
    scales: tuple[float, ...] = (0.2, 0.5, 1.0)
    frame_filters: tuple[int, ...] = (16, 16, 32)
    window_filters: tuple[int, ...] = (16, 16, 32)
    filters: tuple[int, ...] = (32, 32, 64)
    kernels: tuple[int, ...] = (3, 5, 5)
    strides: tuple[int, ...] = (2, 2, 1)
    padding: KeptLength = "causal"
    dropout: float = 0.2

    def __post_init__(self):
        check_layers(self, first_filters="count", first_kernels="count", first_strides="count")
        check_layers(
            self,
            scales="factor",
            frame_filters="count",
            window_filters="count",
            filters="count",
            kernels="count",
            strides="count",
        )
        check_value(self, padding="kept_length", dropout="share")


def build_inception_resnet(config: InceptionResnetConfig, x, labels: int, clip_share: float = 1.0):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.
        clip_share: of the frames, how many make the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.
    """
    lists = (config.first_filters, config.first_kernels, config.first_strides)
    for number, (filters, kernel, stride) in enumerate(zip(*lists, strict=True), 1):
        x = _convolved(x, filters, kernel, config, f"conv_{number}")
        x = max_pooling(x, _POOL, stride, padding=config.padding, name=f"conv_{number}_pool")
    for index, (filters, stride) in enumerate(zip(config.filters, config.strides, strict=True)):
        name = f"block_{index + 1}"
        x = _convolved(_block(x, config, index), filters, 1, config, f"{name}_out")
        x = max_pooling(x, _POOL, stride, padding=config.padding, name=f"{name}_pool")
    x = clip_mean(x, clip_share)  # (B, filters)
    return label_logits(layers.Dropout(config.dropout, name="dropout")(x), labels)


def _block(x, config: InceptionResnetConfig, index: int):
    """Two branches, a share of which is added to the input: (B, T, C) → (B, T, C)."""
    name, kernel = f"block_{index + 1}", config.kernels[index]
    frame = _convolved(x, config.frame_filters[index], 1, config, f"{name}_frame")
    window = _convolved(x, config.frame_filters[index], 1, config, f"{name}_window")
    for number in (1, 2):
        window = _convolved(window, config.window_filters[index], kernel, config, f"{name}_window_{number}")
    y = layers.Concatenate(name=f"{name}_side_by_side")([frame, window])
    y = normalised(layers.Dense(x.shape[-1], name=f"{name}_mix")(y), f"{name}_mix", None)
    y = layers.Rescaling(config.scales[index], name=f"{name}_share")(y)
    return layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")([x, y]))


def _convolved(x, filters: int, kernel: int, config: InceptionResnetConfig, name: str):
    x = convolution(x, filters, kernel, padding=config.padding, use_bias=False, name=name)
    return normalised(x, name)
