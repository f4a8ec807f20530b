"""CRNN for keywords, convolutions before a GRU: feature frames in, label logits out.

Arik et al., "Convolutional Recurrent Neural Networks for Small-Footprint Keyword Spotting" (2017,
arXiv:1703.05390), with the settings of Rybakov et al., "Streaming keyword spotting on mobile devices"
(2020, arXiv:2005.06720). The convolutions cover a few frames, the state of the GRU the whole clip, and in a
stream also the sound before it.

467,772 parameters (the paper's 467 K) for 20 features and 12 labels.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import Activation, Counts, LayerSettings, Padding, Pair
from model_keyword.layers.time_layers import (
    as_image,
    dense_head,
    image_convolutions,
    last_state,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class CrnnConfig(LayerSettings):
    """Settings of `build_crnn`; lists of one kind of layer have one entry for each layer.

    Attributes:
        filters: channels of each convolution.
        kernels: their sizes over frames and features.
        dilations: their dilations over frames and features.
        strides: their strides over frames and features.
        activations: activation after each convolution.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        recurrent_units: sizes of the GRUs, at least one.
        dropout: fraction of values dropped after the last GRU.
        units: sizes of the dense layers.
        unit_activations: activation after each dense layer.
    """

    name: str = "crnn"
    filters: tuple[Count, ...] = (16, 16)
    kernels: tuple[Pair, ...] = ((3, 3), (5, 3))
    dilations: tuple[Pair, ...] = ((1, 1), (1, 1))
    strides: tuple[Pair, ...] = ((1, 1), (1, 1))
    activations: tuple[Activation, ...] = ("relu", "relu")
    padding: Padding = "valid"
    recurrent_units: Counts = (256,)
    dropout: Fraction = 0.1
    units: tuple[Count, ...] = (128, 256)
    unit_activations: tuple[Activation, ...] = ("linear", "relu")


def build_crnn(config: CrnnConfig, x, labels: int):
    """Features (B, T, F) → logits (B, labels) float32.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    x = image_convolutions(config, as_image(x))  # (B, T', F', C)
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]), name="all_channels")(x)  # (B, T', F' · C)
    x = last_state(x, layers.GRU, config.recurrent_units, "gru")
    return dense_head(x, config, labels)
