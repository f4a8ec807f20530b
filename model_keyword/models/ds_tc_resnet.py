"""DS-TC-ResNet (MatchboxNet), separable convolutions over time with residuals: frames in, label logits out.

Majumdar and Ginsburg, "MatchboxNet: 1D Time-Channel Separable Convolutional Neural Network Architecture for
Speech Commands Recognition" (2020, arXiv:2004.08531), with the settings of Rybakov et al.
(arXiv:2005.06720): features are channels, each block convolves every channel over time, mixes them, and
adds its own input. The default is the paper's 3 x 1 x 64. The papers pad on both sides ("same"); the
default here pads before the clip only, so that the model streams.

77,342 parameters (the paper's 77 K) for 64 features and 30 labels, without the statistics of the
normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import (
    KeptLength,
    clip_mean,
    convolution,
    depthwise,
    label_logits,
    normalised,
)


@dataclass(frozen=True)
class DsTcResnetConfig:
    """Geometry of `build_ds_tc_resnet`; the lists have an entry a block.

    Attributes:
        filters: channels of a block.
        repeats: separable convolutions in it.
        kernels: frames that each sees.
        strides: steps of each over the frames.
        dilations: distance between the frames that each sees.
        residuals: whether the block adds its input, brought to its channels.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: share of values dropped after each activation.
    """

    name: str = "ds_tc_resnet"
    filters: tuple[int, ...] = (128, 64, 64, 64, 128, 128)
    repeats: tuple[int, ...] = (1,) * 6
    kernels: tuple[int, ...] = (11, 13, 15, 17, 29, 1)
    strides: tuple[int, ...] = (1,) * 6
    dilations: tuple[int, ...] = (1, 1, 1, 1, 2, 1)
    residuals: tuple[bool, ...] = (False, True, True, True, False, False)
    padding: KeptLength = "causal"
    dropout: float = 0.0

    def __post_init__(self):
        check_layers(
            self,
            filters="count",
            repeats="count",
            kernels="count",
            strides="count",
            dilations="count",
            residuals="flag",
        )
        check_value(self, padding="kept_length", dropout="share")


def build_ds_tc_resnet(config: DsTcResnetConfig, x, labels: int, clip_share: float = 1.0):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.
        clip_share: of the frames, how many make the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.
    """
    for index in range(len(config.filters)):
        x = _block(x, config, index)
    x = clip_mean(x, clip_share)  # (B, filters)
    return label_logits(x, labels)


def _block(x, config: DsTcResnetConfig, index: int):
    """One block: (B, T, C) → (B, T', filters)."""
    shortcut, name, repeats = x, f"block_{index + 1}", config.repeats[index]
    for repeat in range(1, repeats + 1):
        x = depthwise(
            x,
            config.kernels[index],
            stride=config.strides[index],
            dilation=config.dilations[index],
            padding=config.padding,
            use_bias=False,
            name=f"{name}_depthwise_{repeat}",
        )
        x = layers.Dense(config.filters[index], use_bias=False, name=f"{name}_mix_{repeat}")(x)
        if repeat < repeats:
            x = _activated(normalised(x, f"{name}_mix_{repeat}", None), config, f"{name}_mix_{repeat}")
    x = normalised(x, f"{name}_mix_{repeats}", None)
    if config.residuals[index]:
        x = layers.Add(name=f"{name}_add")([x, _shortcut(shortcut, config, index)])
    return _activated(x, config, name)


def _shortcut(x, config: DsTcResnetConfig, index: int):
    """The block's input, brought to its channels and its frames."""
    name, stride = f"block_{index + 1}_shortcut", config.strides[index] ** config.repeats[index]
    x = convolution(x, config.filters[index], 1, stride=stride, use_bias=False, name=name)
    return normalised(x, name, None)


def _activated(x, config: DsTcResnetConfig, name: str):
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(layers.ReLU(name=f"{name}_act")(x))
