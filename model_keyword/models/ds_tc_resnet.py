"""DS-TC-ResNet (MatchboxNet), separable convolutions over time: feature frames in, label logits out.

Majumdar and Ginsburg, "MatchboxNet: 1D Time-Channel Separable Convolutional Neural Network Architecture for
Speech Commands Recognition" (2020, arXiv:2004.08531), with the settings of Rybakov et al.
(arXiv:2005.06720): features are channels; each block convolves every channel over time, mixes the channels
and, if it is residual, adds its input. The default is the paper's 3 x 1 x 64: three residual blocks with one
convolution of 64 channels each, between one block without residual before and two after them. The papers pad
on both sides ("same"); the default here pads before the clip only, so that the model can stream.

77,342 parameters (the paper's 77 K) for 64 features and 30 labels, not counting the moving statistics of the
normalisation.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import KeptLength, LayerSettings
from model_keyword.layers.time_layers import (
    clip_mean,
    depthwise,
    label_logits,
    normalised_convolution,
    normalised_dense,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class DsTcResnetConfig(LayerSettings):
    """Settings of `build_ds_tc_resnet`; the lists have one entry for each block.

    Attributes:
        filters: channels of a block.
        repeats: number of separable convolutions in the block.
        kernels: their size in frames.
        strides: their stride over frames.
        dilations: their dilation over frames.
        residuals: whether the block adds its input, projected to its channels.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of values dropped after each activation.
    """

    name: str = "ds_tc_resnet"
    filters: tuple[Count, ...] = (128, 64, 64, 64, 128, 128)
    repeats: tuple[Count, ...] = (1,) * 6
    kernels: tuple[Count, ...] = (11, 13, 15, 17, 29, 1)
    strides: tuple[Count, ...] = (1,) * 6
    dilations: tuple[Count, ...] = (1, 1, 1, 1, 2, 1)
    residuals: tuple[bool, ...] = (False, True, True, True, False, False)
    padding: KeptLength = "causal"
    dropout: Fraction = 0.0


def build_ds_tc_resnet(config: DsTcResnetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32."""
    for index in range(len(config.filters)):
        x = _block(x, config, index)
    x = clip_mean(x, clip_fraction)  # (B, filters)
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
        x = normalised_dense(x, config.filters[index], name=f"{name}_mix_{repeat}", activation=None)
        if repeat < repeats:
            x = _activated(x, config, f"{name}_mix_{repeat}")
    if config.residuals[index]:
        x = layers.Add(name=f"{name}_add")([x, _shortcut(shortcut, config, index)])
    return _activated(x, config, name)


def _shortcut(x, config: DsTcResnetConfig, index: int):
    """The block's input, projected to its number of channels and frames."""
    name, stride = f"block_{index + 1}_shortcut", config.strides[index] ** config.repeats[index]
    return normalised_convolution(x, config.filters[index], 1, stride=stride, name=name, activation=None)


def _activated(x, config: DsTcResnetConfig, name: str):
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(layers.ReLU(name=f"{name}_act")(x))
