"""CNN for keywords: feature frames in, label logits out.

Convolutions over time and frequency and three dense layers, after Sainath and Parada, "Convolutional neural
networks for small-footprint keyword spotting" (Interspeech 2015), with the settings of Rybakov et al.,
"Streaming keyword spotting on mobile devices" (2020, arXiv:2005.06720). There is no padding: with dilated
kernels the last layer covers all 49 frames of a second, and moves by one with each new frame.

607,246 parameters for 49 frames of 20 features and 14 labels; 606,732 (the paper's 606 K) for its 12.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import Activation, LayerSettings, Padding, Pair
from model_keyword.layers.time_layers import (
    as_image,
    dense_head,
    image_convolutions,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class CnnConfig(LayerSettings):
    """Settings of `build_cnn`; lists of one kind of layer have one entry for each layer.

    Attributes:
        filters: channels of each convolution.
        kernels: their sizes over frames and features.
        dilations: their dilations over frames and features.
        strides: their strides over frames and features.
        activations: activation after each convolution.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of values dropped before the dense layers.
        units: sizes of the dense layers.
        unit_activations: activation after each dense layer.
    """

    name: str = "cnn"
    filters: tuple[Count, ...] = (64, 64, 64, 64, 128, 64, 128)
    kernels: tuple[Pair, ...] = ((3, 3), (5, 3), (5, 3), (5, 3), (5, 2), (5, 1), (10, 1))
    dilations: tuple[Pair, ...] = ((1, 1), (1, 1), (2, 1), (1, 1), (2, 1), (1, 1), (2, 1))
    strides: tuple[Pair, ...] = ((1, 1),) * 7
    activations: tuple[Activation, ...] = ("relu",) * 7
    padding: Padding = "valid"
    dropout: Fraction = 0.5
    units: tuple[Count, ...] = (128, 256)
    unit_activations: tuple[Activation, ...] = ("linear", "relu")


def build_cnn(config: CnnConfig, x, labels: int):
    """Features (B, T, F) → logits (B, labels) float32.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    x = image_convolutions(config, as_image(x))  # (B, T', F', C)
    x = layers.Flatten(name="clip")(x)  # (B, T' · F' · C)
    return dense_head(x, config, labels)
