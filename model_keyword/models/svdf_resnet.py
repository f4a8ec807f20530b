"""SVDF-ResNet for keywords, SVDF layers with residuals and pooling: feature frames in, label logits out.

Rybakov et al., "Streaming keyword spotting on mobile devices" (2020, arXiv:2005.06720): the layers of
`model_keyword.models.svdf` in residual blocks with batch normalisation, max pooling over time
after a block, and the mean over time. The default has the settings of about 33 K parameters published with
the paper.

33,568 parameters for 40 features and 12 labels, not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import Activation, Counts, KeptLength, LayerSettings, each_layer
from model_keyword.layers.time_layers import (
    clip_mean,
    dense_head,
    max_pooling,
    normalised,
    normalised_dense,
)
from model_keyword.models.svdf import svdf_layer
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class SvdfResnetConfig(LayerSettings):
    """Settings of `build_svdf_resnet`; `filters`, `memory` and `pools` have one entry for each block.

    Attributes:
        filters: number of filters of each SVDF layer of each block.
        memory: number of frames that each layer filters, including the current one.
        pools: size of the max pooling over time after each block; 1: no pooling.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of values dropped before the dense layers.
        units: sizes of the dense layers.
        unit_activations: activation after each dense layer.
    """

    name: str = "svdf_resnet"
    filters: tuple[Counts, ...] = ((32,), (50,), (50, 128))
    memory: tuple[Counts, ...] = ((7,), (7,), (11, 11))
    pools: tuple[Count, ...] = (2, 2, 1)
    padding: KeptLength = "causal"
    dropout: Fraction = 0.0
    units: tuple[Count, ...] = (64,)
    unit_activations: tuple[Activation, ...] = ("relu",)


def build_svdf_resnet(config: SvdfResnetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32.

    Raises:
        ConfigError: the pooling is larger than its input.
    """
    for number, filters, memory, pool in each_layer(config.filters, config.memory, config.pools):
        x = _block(x, filters, memory, config.padding, f"block_{number}")
        x = max_pooling(x, pool, pool, padding="valid", name=f"pool_{number}")
    x = clip_mean(x, clip_fraction)  # (B, filters)
    return dense_head(x, config, labels)


def _block(x, filters: tuple[int, ...], memory: tuple[int, ...], padding: KeptLength, name: str):
    """SVDF layers with a residual connection: (B, T, C) → (B, T, filters[-1])."""
    shortcut = normalised_dense(x, filters[-1], name=f"{name}_shortcut", activation=None)
    for number, size, frames in each_layer(filters, memory):
        layer = f"{name}_svdf_{number}"
        x = svdf_layer(x, size, frames, padding=padding, use_bias=False, name=layer)
        x = normalised(x, layer, "relu" if number < len(filters) else None)
    return layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")([x, shortcut]))
