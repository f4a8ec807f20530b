"""GRU for keywords: frames of features in, logits of the labels out.

Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers" (2017, arXiv:1711.07128), whose largest GRU
has 400 units, followed by two dense layers in Rybakov et al., "Streaming keyword spotting on mobile
devices" (2020, arXiv:2005.06720): what the GRU knows at the end of the clip decides. In a stream it has
heard more than the clip.

593,836 parameters (the paper's 593 K) for 20 features and 12 labels.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import hidden_layers, label_logits, last_state


@dataclass(frozen=True)
class GruConfig:
    """Geometry of `build_gru`.

    Attributes:
        recurrent_units: sizes of the recurrent layers, at least one.
        dropout: share of values dropped after the last of them.
        units: sizes of the dense layers.
        unit_activations: after each of them.
    """

    name: str = "gru"
    recurrent_units: tuple[int, ...] = (400,)
    dropout: float = 0.1
    units: tuple[int, ...] = (128, 256)
    unit_activations: tuple[str, ...] = ("linear", "relu")

    def __post_init__(self):
        check_layers(self, recurrent_units="count")
        check_value(self, recurrent_units="counts", dropout="share")
        check_layers(self, units="count", unit_activations="activation")


def build_gru(config: GruConfig, x, labels: int):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.

    Returns:
        logits (B, L) float32.
    """
    x = last_state(x, layers.GRU, config.recurrent_units, "gru")
    x = layers.Dropout(config.dropout, name="dropout")(x)  # (B, units)
    return label_logits(hidden_layers(x, config.units, config.unit_activations), labels)
