"""Xception over time: frames of features in, logits of the labels out.

Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions" (2016, arXiv:1610.02357), cut down
to keywords by Rybakov et al. (arXiv:2005.06720): blocks of separable convolutions over time around which
their input is added, and fewer frames after a block. The default are the settings of 31 K parameters
published with that paper. It pads on both sides ("same"); the default here pads before the clip only, so
that the model streams.

31,740 parameters for 30 features and 12 labels, without the statistics of the normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_equal_lengths, check_layers, check_value
from model_keyword.layers.time_layers import (
    KeptLength,
    clip_mean,
    convolution,
    depthwise,
    label_logits,
    max_pooling,
    normalised,
)

_POOL = 3  # frames of which the largest is kept, as in the papers


@dataclass(frozen=True)
class XceptionConfig:
    """Geometry of `build_xception`.

    Attributes:
        first_filters: channels of each convolution before the blocks.
        first_kernels: frames that each of them sees.
        first_stride: steps of the pooling after them; 1: no pooling.
        filters: channels of each separable convolution of each block.
        kernels: frames that each of them sees.
        strides: steps of the pooling after each block; 1: no pooling.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: share of values dropped after the activations.
        units: sizes of the dense layers.
    """

    name: str = "xception"
    first_filters: tuple[int, ...] = (16,)
    first_kernels: tuple[int, ...] = (5,)
    first_stride: int = 2
    filters: tuple[tuple[int, ...], ...] = ((32, 40), (64,), (100,))
    kernels: tuple[tuple[int, ...], ...] = ((5, 7), (7,), (11,))
    strides: tuple[int, ...] = (2, 1, 1)
    padding: KeptLength = "causal"
    dropout: float = 0.0
    units: tuple[int, ...] = (64,)

    def __post_init__(self):
        check_layers(self, first_filters="count", first_kernels="count")
        check_layers(self, filters="counts", kernels="counts", strides="count")
        check_equal_lengths(self, "filters", "kernels")
        check_layers(self, units="count")
        check_value(self, first_stride="count", padding="kept_length", dropout="share")


def build_xception(config: XceptionConfig, x, labels: int, clip_share: float = 1.0):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.
        clip_share: of the frames, how many make the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.
    """
    lists = (config.first_filters, config.first_kernels)
    for number, (filters, kernel) in enumerate(zip(*lists, strict=True), 1):
        name = f"conv_{number}"
        x = convolution(x, filters, kernel, padding=config.padding, use_bias=False, name=name)
        x = normalised(x, name, scale=False)
    x = max_pooling(x, _POOL, config.first_stride, padding=config.padding, name="conv_pool")
    lists = (config.filters, config.kernels, config.strides)
    for number, (filters, kernels, stride) in enumerate(zip(*lists, strict=True), 1):
        x = _block(x, filters, kernels, config, f"block_{number}")
        x = max_pooling(x, _POOL, stride, padding=config.padding, name=f"block_{number}_pool")
    x = clip_mean(x, clip_share)  # (B, filters)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    for number, units in enumerate(config.units, 1):
        x = layers.Dense(units, use_bias=False, name=f"dense_{number}")(x)
        x = normalised(x, f"dense_{number}", scale=False)
    return label_logits(x, labels)


def _block(x, filters: tuple[int, ...], kernels: tuple[int, ...], config: XceptionConfig, name: str):
    """Separable convolutions and what goes around them: (B, T, C) → (B, T, filters[-1])."""
    shortcut = layers.Dense(filters[-1], use_bias=False, name=f"{name}_shortcut")(x)
    shortcut = normalised(shortcut, f"{name}_shortcut", None, scale=False)
    for number, (size, kernel) in enumerate(zip(filters, kernels, strict=True), 1):
        layer = f"{name}_depthwise_{number}"
        x = depthwise(x, kernel, padding=config.padding, use_bias=False, name=layer)
        x = layers.Dense(size, use_bias=False, name=f"{name}_mix_{number}")(x)
        last = number == len(filters)
        x = normalised(x, f"{name}_mix_{number}", None if last else "relu", scale=False)
        x = x if last else layers.Dropout(config.dropout, name=f"{name}_dropout_{number}")(x)
    x = layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")([x, shortcut]))
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(x)
