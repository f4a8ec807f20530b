"""SVDF, separate filters over features and over time: frames of features in, logits of the labels out.

Alvarez and Park, "End-to-end Streaming Keyword Spotting" (2018, arXiv:1812.02802): a filter over time and
frequency is approximated by the product of a filter over the features and one over the last frames (rank 1
of its singular value decomposition): a dense layer and a depthwise convolution. The default has the
32 K parameters of Rybakov et al. (arXiv:2005.06720). There is no padding: the last layer covers 49
frames, one second.

32,716 parameters for 40 features and 12 labels.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import Padding, depthwise, hidden_layers, label_logits


@dataclass(frozen=True)
class SvdfConfig:
    """Settings of `build_svdf`; `filters`, `memory`, `projections` and `activations` have one entry
    for each SVDF layer.

    Attributes:
        filters: filters of each layer.
        memory: number of frames that each layer filters, including the current one.
        projections: size of the dense layer after each; 0: none.
        activations: after the memory.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: fraction of values dropped before the dense layers.
        units: sizes of the dense layers.
        unit_activations: after each dense layer.
    """

    name: str = "svdf"
    filters: tuple[int, ...] = (16, 32, 32, 32, 64, 128)
    memory: tuple[int, ...] = (4, 10, 10, 10, 10, 10)
    projections: tuple[int, ...] = (40, 40, 64, 64, 64, 0)
    activations: tuple[str, ...] = ("relu",) * 6
    padding: Padding = "valid"
    dropout: float = 0.0
    units: tuple[int, ...] = ()
    unit_activations: tuple[str, ...] = ()

    def __post_init__(self):
        check_layers(self, filters="count", memory="count", projections="size", activations="activation")
        check_layers(self, units="count", unit_activations="activation")
        check_value(self, padding="padding", dropout="fraction")


def build_svdf(config: SvdfConfig, x, labels: int):
    """Build the network.

    Args:
        config: settings of the network.
        x: features (B, T, F).
        labels: L.

    Returns:
        logits (B, L) float32.

    Raises:
        ConfigError: the memory of a layer is longer than its input.
    """
    lists = (config.filters, config.memory, config.projections, config.activations)
    for number, (filters, memory, projection, activation) in enumerate(zip(*lists, strict=True), 1):
        name = f"svdf_{number}"
        x = svdf_layer(x, filters, memory, name=name, padding=config.padding)
        x = layers.Activation(activation, name=f"{name}_act")(x)
        if projection:
            x = layers.Dense(projection, name=f"{name}_projection")(x)
    x = layers.Flatten(name="clip")(x)  # (B, T' · filters)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    return label_logits(hidden_layers(x, config.units, config.unit_activations), labels)


def svdf_layer(x, filters: int, memory: int, *, name: str, padding: Padding, use_bias: bool = True):
    """Filters over the features, then over the last frames: (B, T, C) → (B, T', filters), linear."""
    x = layers.Dense(filters, use_bias=False, name=f"{name}_features")(x)
    return depthwise(x, memory, padding=padding, use_bias=use_bias, name=f"{name}_memory")
