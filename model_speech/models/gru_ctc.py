"""GRU-CTC, a bidirectional recurrent network: log spectrogram and lengths in, CTC logits out.

Two dense layers per frame, three layers of gated recurrent units (Cho et al. 2014, arXiv:1406.1078) that
process the utterance in both directions and add the results, and one more dense layer. Bidirectional
recurrence with CTC is that of Graves et al. (ICML 2006). The loss and the decoders compute the softmax.

A published tutorial has a model of this name. It adds the two directions without reversing the second one
again, so that the first frame is added to the last one. It also gives an output every 10 ms, of which the
loss uses the first T / 8. Here the frames match, and ``stack`` is the number of frames per output.
"""

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import ReverseFrames, masked_inputs
from utils.limits import Count, Fraction, Limited, Size


@dataclass(frozen=True)
class GruCtcConfig(Limited, section="model"):
    """Configuration of `build_gru_ctc`; the defaults are those of the tutorial.

    Attributes:
        stack: feature frames that are concatenated before the first layer; this is the time stride.
        width: units of every layer.
        dense: number of dense layers before the recurrent ones.
        recurrent: number of bidirectional layers.
        dropout: fraction of activations dropped before each layer in training.
    """

    name: str = "gru_ctc"
    stack: Count = 1
    width: Count = 512
    dense: Size = 2
    recurrent: Size = 3
    dropout: Fraction = 0.2

    @property
    def time_stride(self) -> int:
        """Input frames per output frame."""
        return self.stack


def build_gru_ctc(config: GruCtcConfig, feature_bins: int, classes: int) -> keras.Model:
    """Features (B, T, F) → logits (B, ceil(T / stack), C); 200 bins in the tutorial.

    The backward layers start at the last valid frame of each utterance.
    """
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    x = layers.Reshape((-1, config.stack * feature_bins), name="stack")(x)  # (B, T', stack · F)
    for index in range(1, config.dense + 1):
        x = _dense(x, f"dense_{index}", config)  # (B, T', width)
    for index in range(1, config.recurrent + 1):
        x = _bidirectional(x, index, valid_at(config.time_stride), config)
    x = layers.Dropout(config.dropout, name="logits_dropout")(_dense(x, "top", config))
    logits = layers.Dense(classes, kernel_initializer="he_normal", name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _dense(x, name: str, config: GruCtcConfig):
    """Dropout, then a dense layer: (B, T', D) → (B, T', width)."""
    x = layers.Dropout(config.dropout, name=f"{name}_dropout")(x)
    return layers.Dense(config.width, activation="relu", kernel_initializer="he_normal", name=name)(x)


def _bidirectional(x, index: int, valid, config: GruCtcConfig):
    """Dropout, then a forward and a backward recurrent layer: (B, T', D) → (B, T', width).

    Neither gets a mask: padding comes last for both, and with a mask the JAX and PyTorch backends couldn't
    use cuDNN's fast loop.
    """
    x = layers.Dropout(config.dropout, name=f"recurrent_{index}_dropout")(x)
    settings = {"return_sequences": True, "kernel_initializer": "he_normal"}
    forward = layers.GRU(config.width, name=f"forward_{index}", **settings)(x)
    reversed_x = ReverseFrames(name=f"backward_{index}_input")(x, valid)
    backward = layers.GRU(config.width, name=f"backward_{index}", **settings)(reversed_x)
    backward = ReverseFrames(name=f"backward_{index}_output")(backward, valid)
    return layers.Add(name=f"recurrent_{index}")([forward, backward])
