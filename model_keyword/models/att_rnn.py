"""Att-RNN, a keyword network with attention over recurrent layers: feature frames in, label logits out.

de Andrade et al., "A neural attention model for speech command recognition" (2018, arXiv:1808.08929):
convolutions over time, bidirectional LSTMs, and attention whose query is the frame in the middle of the clip.
A bidirectional network cannot stream. With ``bidirectional: false`` and ``padding: causal`` it can: the query
is then the last frame of the clip, whose state depends on all others.

200,455 parameters for 80 features and 12 labels; the paper counts 202 K with its front end and 35 labels.
"""

from dataclasses import dataclass
from typing import Literal

from keras import layers

from model_keyword.layers.layer_settings import Activation, KeptLength, LayerSettings, Pair
from model_keyword.layers.time_layers import (
    as_image,
    dense_head,
    image_convolutions,
)
from utils.limits import Count, Fraction

_CELLS = {"gru": layers.GRU, "lstm": layers.LSTM}


@dataclass(frozen=True)
class AttRnnConfig(LayerSettings):
    """Settings of `build_att_rnn`; lists of one kind of layer have one entry for each layer.

    Attributes:
        filters: channels of each convolution.
        kernels: their sizes over frames and features.
        dilations: their dilations over frames and features.
        strides: their strides over frames and features.
        activations: activation after each convolution.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        cell: cell of the recurrent layers.
        recurrent_units: their sizes, in each direction.
        bidirectional: whether they also run backwards in time.
        heads: number of attention heads.
        dropout: fraction of values dropped after the attention.
        units: sizes of the dense layers.
        unit_activations: activation after each dense layer.
    """

    name: str = "att_rnn"
    filters: tuple[Count, ...] = (10, 1)
    kernels: tuple[Pair, ...] = ((5, 1), (5, 1))
    dilations: tuple[Pair, ...] = ((1, 1), (1, 1))
    strides: tuple[Pair, ...] = ((1, 1), (1, 1))
    activations: tuple[Activation, ...] = ("relu", "relu")
    padding: KeptLength = "same"
    cell: Literal["gru", "lstm"] = "lstm"
    recurrent_units: tuple[Count, ...] = (64, 64)
    bidirectional: bool = True
    heads: Count = 1
    dropout: Fraction = 0.5
    units: tuple[Count, ...] = (64, 32)
    unit_activations: tuple[Activation, ...] = ("relu", "linear")


@dataclass(frozen=True)
class AttMhRnnConfig(AttRnnConfig):
    """Settings of the model with four attention heads over GRUs (Rybakov et al. 2020, arXiv:2005.06720).

    The best model of that paper is bidirectional, pads on both sides and cannot stream. The default here runs
    in one direction, and can. The paper's is ``bidirectional: true`` with ``padding: same``. For 20 features
    and 12 labels it has 743,047 parameters (the paper's 743 K), the default 258,183.
    """

    name: str = "att_mh_rnn"
    padding: KeptLength = "causal"
    cell: Literal["gru", "lstm"] = "gru"
    recurrent_units: tuple[Count, ...] = (128, 128)
    bidirectional: bool = False
    heads: Count = 4
    dropout: Fraction = 0.2


def build_att_rnn(config: AttRnnConfig, x, labels: int):
    """Features (B, T, F) → logits (B, labels) float32."""
    x = image_convolutions(config, as_image(x), normalise=True)  # (B, T', F', C)
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]), name="all_channels")(x)
    for number, units in enumerate(config.recurrent_units, 1):
        recurrent = _CELLS[config.cell](units, return_sequences=True, name=f"{config.cell}_{number}")
        if config.bidirectional:
            recurrent = layers.Bidirectional(recurrent, name=f"both_ways_{number}")
        x = recurrent(x)  # (B, T', C)
    # From here on the layers see the whole clip: a stream keeps the frames that the attention covers.
    frames, values = x.shape[1:]
    x = layers.Reshape((frames, values), name="clip")(layers.Flatten(name="window")(x))
    x = _attend(x, config.heads, frames // 2 if config.bidirectional else frames - 1)
    return dense_head(x, config, labels)


def _attend(x, heads: int, query_frame: int):
    """Attention over the frames of the clip, with the query from one frame: (B, T, C) → (B, heads · C).

    The weights of the frames x(t) are softmax(q · x(t)), with one query q for each head; no keys, no scale.
    """
    frames, values = x.shape[1:]
    query = layers.Cropping1D((query_frame, frames - 1 - query_frame), name="asking")(x)  # (B, 1, C)
    query = layers.Dense(heads * values, name="queries")(query)
    query = layers.Reshape((heads, values), name="heads")(query)
    x = layers.Attention(name="attention")([query, x])  # (B, heads, C)
    return layers.Flatten(name="attended")(x)
