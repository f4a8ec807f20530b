"""DNN for keywords, dense layers only: feature frames in, label logits out.

Chen, Parada and Heigold, "Small-footprint keyword spotting using deep neural networks" (ICASSP 2014), with
the settings of Rybakov et al., "Streaming keyword spotting on mobile devices" (2020, arXiv:2005.06720):
some layers for each frame, then all frames of the clip concatenated, a max pooling over neighbouring values,
and layers for the clip.

447,308 parameters (the paper's 447 K) for 49 frames of 20 features and 12 labels.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import Activation, LayerSettings, check_kernel_fits
from model_keyword.layers.time_layers import dense_head, hidden_layers
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class DnnConfig(LayerSettings):
    """Settings of `build_dnn`.

    Attributes:
        frame_units: sizes of the layers for each frame.
        frame_activations: activation after each of these layers.
        pool: size of the max pooling over the values of the clip; 1: no pooling.
        dropout: fraction of values dropped after the pooling.
        units: sizes of the layers for the clip.
        unit_activations: activation after each dense layer.
    """

    name: str = "dnn"
    frame_units: tuple[Count, ...] = (64, 128)
    frame_activations: tuple[Activation, ...] = ("relu", "relu")
    pool: Count = 2
    dropout: Fraction = 0.1
    units: tuple[Count, ...] = (128, 256)
    unit_activations: tuple[Activation, ...] = ("linear", "relu")


@dataclass(frozen=True)
class DnnRawConfig(DnnConfig):
    """Settings of the same network on the samples of each window, without a front end.

    Rybakov et al. (2020) train it on windows of the waveform: the first layer learns the filters. Needs
    ``features.kind: raw``. 486,988 parameters for 49 windows of 640 samples and 12 labels.
    """

    name: str = "dnn_raw"


def build_dnn(config: DnnConfig, x, labels: int):
    """Features (B, T, F), or the samples of each window, → logits (B, labels) float32.

    Raises:
        ConfigError: the pooling is larger than the clip.
    """
    x = hidden_layers(x, config.frame_units, config.frame_activations, "frame")  # (B, T, units)
    x = layers.Flatten(name="clip")(x)  # (B, T · units)
    if config.pool > 1:
        check_kernel_fits("pool", (x.shape[1],), (config.pool,))
        x = layers.Reshape((-1, 1), name="values")(x)
        x = layers.MaxPooling1D(config.pool, name="pool")(x)
        x = layers.Flatten(name="pooled")(x)  # (B, T · units / pool)
    return dense_head(x, config, labels)
