"""Attention over a recurrent network: frames of features in, logits of the labels out.

de Andrade et al., "A neural attention model for speech command recognition" (2018, arXiv:1808.08929):
convolutions over time, LSTMs in both directions, and the frame in the middle of the clip asks which frames
to listen to. A network that hears the clip from its end can't stream. With ``bidirectional: false`` and
``padding: causal`` it can: then the clip's last frame asks, as the one that has heard the others.

200,455 parameters for 80 features and 12 labels; the paper's 202 K are for its own front end and 35 labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import (
    KeptLength,
    as_image,
    hidden_layers,
    image_convolutions,
    label_logits,
)

_CELLS = {"gru": layers.GRU, "lstm": layers.LSTM}


@dataclass(frozen=True)
class AttRnnConfig:
    """Geometry of `build_att_rnn`; lists that go together have an entry a layer.

    Attributes:
        filters: channels of each convolution.
        kernels: frames and features that it sees.
        dilations: distance between those frames, and between those features.
        strides: its steps over frames and features.
        activations: after each convolution.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        cell: of the recurrent layers.
        recurrent_units: their sizes, in each direction.
        bidirectional: whether they hear the clip from its end too.
        heads: questions asked.
        dropout: share of values dropped after the attention.
        units: sizes of the dense layers.
        unit_activations: after each of them.
    """

    name: str = "att_rnn"
    filters: tuple[int, ...] = (10, 1)
    kernels: tuple[tuple[int, int], ...] = ((5, 1), (5, 1))
    dilations: tuple[tuple[int, int], ...] = ((1, 1), (1, 1))
    strides: tuple[tuple[int, int], ...] = ((1, 1), (1, 1))
    activations: tuple[str, ...] = ("relu", "relu")
    padding: KeptLength = "same"
    cell: Literal["gru", "lstm"] = "lstm"
    recurrent_units: tuple[int, ...] = (64, 64)
    bidirectional: bool = True
    heads: int = 1
    dropout: float = 0.5
    units: tuple[int, ...] = (64, 32)
    unit_activations: tuple[str, ...] = ("relu", "linear")

    def __post_init__(self):
        check_layers(
            self, filters="count", kernels="pair", dilations="pair", strides="pair", activations="activation"
        )
        check_layers(self, recurrent_units="count")
        check_layers(self, units="count", unit_activations="activation")
        check_value(self, padding="kept_length", cell="cell", bidirectional="flag")
        check_value(self, heads="count", dropout="share")


def build_att_rnn(config: AttRnnConfig, x, labels: int):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.

    Returns:
        logits (B, L) float32.
    """
    x = image_convolutions(config, as_image(x), normalise=True)  # (B, T', F', C)
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]), name="all_channels")(x)
    for number, units in enumerate(config.recurrent_units, 1):
        recurrent = _CELLS[config.cell](units, return_sequences=True, name=f"{config.cell}_{number}")
        if config.bidirectional:
            recurrent = layers.Bidirectional(recurrent, name=f"both_ways_{number}")
        x = recurrent(x)  # (B, T', C)
    # From here on it is the whole clip's: a stream keeps the window of frames that the attention looks at.
    frames, values = x.shape[1:]
    x = layers.Reshape((frames, values), name="clip")(layers.Flatten(name="window")(x))
    x = _attend(x, config.heads, frames // 2 if config.bidirectional else frames - 1)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    return label_logits(hidden_layers(x, config.units, config.unit_activations), labels)


def _attend(x, heads: int, asking: int):
    """What the frame number ``asking`` asks of the clip: (B, T, C) → (B, heads · C).

    softmax(q · x(t)) are the weights of the frames x(t), with a query q a head and neither keys nor scale.
    """
    frames, values = x.shape[1:]
    query = layers.Cropping1D((asking, frames - 1 - asking), name="asking")(x)  # (B, 1, C)
    query = layers.Dense(heads * values, name="queries")(query)
    query = layers.Reshape((heads, values), name="heads")(query)
    x = layers.Attention(name="attention")([query, x])  # (B, heads, C)
    return layers.Flatten(name="attended")(x)
