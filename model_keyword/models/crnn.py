"""CRNN for keywords, convolutions before a GRU: frames of features in, logits of the labels out.

Arik et al., "Convolutional Recurrent Neural Networks for Small-Footprint Keyword Spotting" (2017,
arXiv:1703.05390), with the settings of Rybakov et al., "Streaming keyword spotting on mobile devices"
(2020, arXiv:2005.06720): the convolutions hear what is near, the GRU the whole clip, and in a stream more
than the clip.

467,772 parameters (the paper's 467 K) for 20 features and 12 labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import (
    Padding,
    as_image,
    hidden_layers,
    image_convolutions,
    label_logits,
    last_state,
)


@dataclass(frozen=True)
class CrnnConfig:
    """Geometry of `build_crnn`; lists that go together have an entry a layer.

    Attributes:
        filters: channels of each convolution.
        kernels: frames and features that it sees.
        dilations: distance between those frames, and between those features.
        strides: its steps over frames and features.
        activations: after each convolution.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        recurrent_units: sizes of the GRUs, at least one.
        dropout: share of values dropped after the last of them.
        units: sizes of the dense layers.
        unit_activations: after each of them.
    """

    name: str = "crnn"
    filters: tuple[int, ...] = (16, 16)
    kernels: tuple[tuple[int, int], ...] = ((3, 3), (5, 3))
    dilations: tuple[tuple[int, int], ...] = ((1, 1), (1, 1))
    strides: tuple[tuple[int, int], ...] = ((1, 1), (1, 1))
    activations: tuple[str, ...] = ("relu", "relu")
    padding: Padding = "valid"
    recurrent_units: tuple[int, ...] = (256,)
    dropout: float = 0.1
    units: tuple[int, ...] = (128, 256)
    unit_activations: tuple[str, ...] = ("linear", "relu")

    def __post_init__(self):
        check_layers(
            self, filters="count", kernels="pair", dilations="pair", strides="pair", activations="activation"
        )
        check_layers(self, recurrent_units="count")
        check_layers(self, units="count", unit_activations="activation")
        check_value(self, recurrent_units="counts", padding="padding", dropout="share")


def build_crnn(config: CrnnConfig, x, labels: int):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.

    Returns:
        logits (B, L) float32.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    x = image_convolutions(config, as_image(x))  # (B, T', F', C)
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]), name="all_channels")(x)  # (B, T', F' · C)
    x = last_state(x, layers.GRU, config.recurrent_units, "gru")
    x = layers.Dropout(config.dropout, name="dropout")(x)  # (B, units)
    return label_logits(hidden_layers(x, config.units, config.unit_activations), labels)
