"""SVDF layers with residuals and pooling: frames of features in, logits of the labels out.

Rybakov et al., "Streaming keyword spotting on mobile devices" (2020, arXiv:2005.06720): the layers of
`model_keyword.models.svdf` in residual blocks with batch normalisation, max pooling over time after a block,
and the mean over time. The default has the settings of about 33 K parameters published
with the paper.

33,568 parameters for 40 features and 12 labels, not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_equal_lengths, check_layers, check_value
from model_keyword.layers.time_layers import (
    KeptLength,
    clip_mean,
    hidden_layers,
    label_logits,
    max_pooling,
    normalised,
    normalised_dense,
)
from model_keyword.models.svdf import svdf_layer


@dataclass(frozen=True)
class SvdfResnetConfig:
    """Settings of `build_svdf_resnet`; `filters`, `memory` and `pools` have one entry for each block.

    Attributes:
        filters: of each SVDF layer of each block.
        memory: number of frames that each layer filters, including the current one.
        pools: size of the max pooling over time after each block; 1: no pooling.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: fraction of values dropped before the dense layers.
        units: sizes of the dense layers.
        unit_activations: after each dense layer.
    """

    name: str = "svdf_resnet"
    filters: tuple[tuple[int, ...], ...] = ((32,), (50,), (50, 128))
    memory: tuple[tuple[int, ...], ...] = ((7,), (7,), (11, 11))
    pools: tuple[int, ...] = (2, 2, 1)
    padding: KeptLength = "causal"
    dropout: float = 0.0
    units: tuple[int, ...] = (64,)
    unit_activations: tuple[str, ...] = ("relu",)

    def __post_init__(self):
        check_layers(self, filters="counts", memory="counts", pools="count")
        check_equal_lengths(self, "filters", "memory")
        check_layers(self, units="count", unit_activations="activation")
        check_value(self, padding="kept_length", dropout="fraction")


def build_svdf_resnet(config: SvdfResnetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Build the network.

    Args:
        config: settings of the network.
        x: features (B, T, F).
        labels: L.
        clip_fraction: fraction of the frames that belong to the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.

    Raises:
        ConfigError: the pooling is larger than its input.
    """
    lists = (config.filters, config.memory, config.pools)
    for number, (filters, memory, pool) in enumerate(zip(*lists, strict=True), 1):
        x = _block(x, filters, memory, config.padding, f"block_{number}")
        x = max_pooling(x, pool, pool, padding="valid", name=f"pool_{number}")
    x = clip_mean(x, clip_fraction)  # (B, filters)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    return label_logits(hidden_layers(x, config.units, config.unit_activations), labels)


def _block(x, filters: tuple[int, ...], memory: tuple[int, ...], padding: KeptLength, name: str):
    """SVDF layers with a residual connection: (B, T, C) → (B, T, filters[-1])."""
    shortcut = normalised_dense(x, filters[-1], name=f"{name}_shortcut", activation=None)
    for number, (size, frames) in enumerate(zip(filters, memory, strict=True), 1):
        layer = f"{name}_svdf_{number}"
        x = svdf_layer(x, size, frames, padding=padding, use_bias=False, name=layer)
        x = normalised(x, layer, "relu" if number < len(filters) else None)
    return layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")([x, shortcut]))
