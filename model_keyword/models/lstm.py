"""LSTM for keywords: frames of features in, logits of the labels out.

Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers" (2017, arXiv:1711.07128); the default is
the paper's smallest basic LSTM of 118 units, whose state at the end of the clip decides. In a stream it has
heard more than the clip. Rybakov et al. (2020, arXiv:2005.06720) train 500 units with peepholes, projected
to 200; Keras's LSTM has neither, which is why it runs on every backend and in every runtime.

62,316 parameters for 10 features and 12 labels; the paper's 63.3 KB are a byte each, and the activations.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import hidden_layers, label_logits, last_state


@dataclass(frozen=True)
class LstmConfig:
    """Geometry of `build_lstm`.

    Attributes:
        recurrent_units: sizes of the recurrent layers, at least one.
        dropout: share of values dropped after the last of them.
        units: sizes of the dense layers.
        unit_activations: after each of them.
    """

    name: str = "lstm"
    recurrent_units: tuple[int, ...] = (118,)
    dropout: float = 0.1
    units: tuple[int, ...] = ()
    unit_activations: tuple[str, ...] = ()

    def __post_init__(self):
        check_layers(self, recurrent_units="count")
        check_value(self, recurrent_units="counts", dropout="share")
        check_layers(self, units="count", unit_activations="activation")


def build_lstm(config: LstmConfig, x, labels: int):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.

    Returns:
        logits (B, L) float32.
    """
    x = last_state(x, layers.LSTM, config.recurrent_units, "lstm")
    x = layers.Dropout(config.dropout, name="dropout")(x)  # (B, units)
    return label_logits(hidden_layers(x, config.units, config.unit_activations), labels)
