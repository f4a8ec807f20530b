"""SVDF, separate filters over features and over time: feature frames in, label logits out.

Alvarez and Park, "End-to-end Streaming Keyword Spotting" (2018, arXiv:1812.02802): a filter over time and
frequency is approximated by the product of a filter over the features and one over the last frames (rank 1
of its singular value decomposition): a dense layer and a depthwise convolution. The default has the 32 K
parameters of Rybakov et al. (arXiv:2005.06720). There is no padding: the last layer covers 49 frames, one
second.

32,716 parameters for 40 features and 12 labels.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import Activation, LayerSettings, Padding, each_layer
from model_keyword.layers.time_layers import dense_head, depthwise
from utils.limits import Count, Fraction, Size


@dataclass(frozen=True)
class SvdfConfig(LayerSettings):
    """Settings of `build_svdf`; `filters`, `memory`, `projections` and `activations` have one entry
    for each SVDF layer.

    Attributes:
        filters: number of filters of each layer.
        memory: number of frames that each layer filters, including the current one.
        projections: size of the dense layer after each; 0: none.
        activations: activation after the filter over time.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of values dropped before the dense layers.
        units: sizes of the dense layers.
        unit_activations: activation after each dense layer.
    """

    name: str = "svdf"
    filters: tuple[Count, ...] = (16, 32, 32, 32, 64, 128)
    memory: tuple[Count, ...] = (4, 10, 10, 10, 10, 10)
    projections: tuple[Size, ...] = (40, 40, 64, 64, 64, 0)
    activations: tuple[Activation, ...] = ("relu",) * 6
    padding: Padding = "valid"
    dropout: Fraction = 0.0
    units: tuple[Count, ...] = ()
    unit_activations: tuple[Activation, ...] = ()


def build_svdf(config: SvdfConfig, x, labels: int):
    """Features (B, T, F) → logits (B, labels) float32.

    Raises:
        ConfigError: the memory of a layer is longer than its input.
    """
    for number, filters, memory, projection, activation in each_layer(
        config.filters, config.memory, config.projections, config.activations
    ):
        name = f"svdf_{number}"
        x = svdf_layer(x, filters, memory, name=name, padding=config.padding)
        x = layers.Activation(activation, name=f"{name}_act")(x)
        if projection:
            x = layers.Dense(projection, name=f"{name}_projection")(x)
    x = layers.Flatten(name="clip")(x)  # (B, T' · filters)
    return dense_head(x, config, labels)


def svdf_layer(x, filters: int, memory: int, *, name: str, padding: Padding, use_bias: bool = True):
    """Filters over the features, then over the last frames: (B, T, C) → (B, T', filters), linear."""
    x = layers.Dense(filters, use_bias=False, name=f"{name}_features")(x)
    return depthwise(x, memory, padding=padding, use_bias=use_bias, name=f"{name}_memory")
