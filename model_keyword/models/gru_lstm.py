"""GRU and LSTM for keywords: feature frames in, label logits out.

Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers" (2017, arXiv:1711.07128): the state at the
end of the clip is classified. In a stream the state also depends on the sound before the clip.

* `GruConfig`: the largest GRU of the paper has 400 units; two dense layers follow, as in Rybakov et al.,
  "Streaming keyword spotting on mobile devices" (2020, arXiv:2005.06720). 593,836 parameters (the paper's
  593 K) for 20 features and 12 labels.
* `LstmConfig`: the paper's smallest basic LSTM, 118 units. Rybakov et al. train 500 units with peepholes,
  projected to 200; Keras's LSTM has neither, and runs on every backend and in every runtime. 62,316
  parameters for 10 features and 12 labels; the paper's 63.3 KB are one byte for each, and the activations.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import Activation, Counts, LayerSettings
from model_keyword.layers.time_layers import dense_head, last_state
from utils.limits import Count, Fraction

_CELLS = {"gru": layers.GRU, "lstm": layers.LSTM}


@dataclass(frozen=True)
class GruConfig(LayerSettings):
    """Settings of a GRU, see `build_recurrent`.

    Attributes:
        recurrent_units: sizes of the recurrent layers, at least one.
        dropout: fraction of values dropped after the last recurrent layer.
        units: sizes of the dense layers.
        unit_activations: activation after each dense layer.
    """

    name: str = "gru"
    recurrent_units: Counts = (400,)
    dropout: Fraction = 0.1
    units: tuple[Count, ...] = (128, 256)
    unit_activations: tuple[Activation, ...] = ("linear", "relu")


@dataclass(frozen=True)
class LstmConfig(GruConfig):
    """Settings of an LSTM; the fields are those of `GruConfig`."""

    name: str = "lstm"
    recurrent_units: Counts = (118,)
    units: tuple[Count, ...] = ()
    unit_activations: tuple[Activation, ...] = ()


def build_recurrent(config: GruConfig, x, labels: int):
    """Features (B, T, F) → logits (B, labels) float32, with the cell that ``config.name`` names."""
    x = last_state(x, _CELLS[config.name], config.recurrent_units, config.name)
    return dense_head(x, config, labels)
