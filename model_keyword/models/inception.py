"""Inception, a keyword network of parallel convolutions over time: feature frames in, label logits out.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2015, arXiv:1512.00567), reduced
in size for keyword spotting by Rybakov et al. (arXiv:2005.06720): a block has three branches with zero, one
and two convolutions over time, and mixes their outputs. The default has the settings of the published model
with 30 K parameters. The paper pads on both sides ("same"); the default here pads before the clip only, so
that the model can stream.

30,234 parameters for 30 features and 12 labels, not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass
from typing import Any

from keras import layers

from model_keyword.layers.layer_settings import KeptLength, LayerSettings, each_layer
from model_keyword.layers.time_layers import (
    POOL,
    max_pooling,
    mean_head,
    normalised_convolution,
    pooled_convolutions,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class InceptionConfig(LayerSettings):
    """Settings of `build_inception`.

    Attributes:
        first_filters: channels of each convolution before the blocks.
        first_kernels: their sizes in frames.
        first_strides: stride of the pooling after each of them; 1: no pooling.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        branch_filters: channels of each of the three branches of each block.
        filters: channels after each block.
        kernels: sizes of its convolutions over time, in frames.
        strides: stride of the pooling after each block; 1: no pooling.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "inception"
    first_filters: tuple[Count, ...] = (32,)
    first_kernels: tuple[Count, ...] = (5,)
    first_strides: tuple[Count, ...] = (1,)
    padding: KeptLength = "causal"
    branch_filters: tuple[Count, ...] = (16, 16, 16)
    filters: tuple[Count, ...] = (32, 64, 70)
    kernels: tuple[Count, ...] = (3, 5, 5)
    strides: tuple[Count, ...] = (2, 2, 1)
    dropout: Fraction = 0.2


def build_inception(config: InceptionConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32."""
    settings = {"padding": config.padding, "scale": False}
    x = pooled_convolutions(x, config, settings)
    for number, branch, filters, kernel, stride in each_layer(
        config.branch_filters, config.filters, config.kernels, config.strides
    ):
        x = _block(x, branch, filters, kernel, f"block_{number}", settings)
        x = max_pooling(x, POOL, stride, padding=config.padding, name=f"block_{number}_pool")
    return mean_head(x, config, labels, clip_fraction)


def _block(x, branch: int, filters: int, kernel: int, name: str, settings: dict[str, Any]):
    """Three branches, concatenated and mixed: (B, T, C) → (B, T, filters)."""
    branches = []
    for windows in range(3):
        y = normalised_convolution(x, branch, 1, name=f"{name}_branch_{windows + 1}", **settings)
        for number in range(1, windows + 1):
            y = normalised_convolution(
                y, branch, kernel, name=f"{name}_branch_{windows + 1}_window_{number}", **settings
            )
        branches.append(y)
    x = layers.Concatenate(name=f"{name}_side_by_side")(branches)  # (B, T, 3 · branch)
    return normalised_convolution(x, filters, 1, name=f"{name}_mix", **settings)
