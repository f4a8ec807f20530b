"""CBHG network for pinyin to hanzi: convolution bank, highway network and bidirectional GRU, in Keras.

It computes logits over all hanzi for each syllable. It is the encoder of Tacotron (Wang et al. 2017,
arXiv:1703.10135, section 3.1 and table 1) with the sizes of a published recipe for pinyin to hanzi. Layer
normalisation, with the same number of weights, replaces batch normalisation: the other sentences of a batch
and the number of devices have no influence on a sentence. :mod:`model_language.networks.loss` restricts the
output to hanzi with the reading.
"""

from dataclasses import dataclass

import keras
from keras import layers, ops

from model_language.vocabulary.symbols import PAD_ID
from utils.limits import Count, Fraction, Limited, Size


@dataclass(frozen=True)
class CbhgConfig(Limited, section="model"):
    """Geometry of :func:`build_cbhg`; the defaults are those of a published recipe for pinyin to hanzi.

    Tacotron's own encoder is ``embedding=256 width=128 projection_kernel=3``.

    Attributes:
        embedding: size of the embeddings.
        width: channels of all following layers.
        bank: largest kernel of the convolution bank, which has kernels of 1, 2 … this many syllables.
        projection_kernel: kernel of the two convolutions after the bank, in syllables.
        highway: layers of the highway network.
        dropout: fraction of the pre-net's activations dropped in training.
        label_smoothing: probability spread over the other candidates in the training loss.
    """

    name: str = "cbhg"
    embedding: Count = 300
    width: Count = 150
    bank: Count = 16
    projection_kernel: Count = 5
    highway: Size = 4
    dropout: Fraction = 0.5
    label_smoothing: Fraction = 0.0


def build_cbhg(config: CbhgConfig, pinyin_size: int, hanzi_size: int) -> keras.Model:
    """Build the model of ``{"syllables": (B, L) int32}`` → logits (B, L, hanzi_size) float32.

    The sizes are those of the vocabularies; id 0 is padding, which has no influence on the other positions.
    """
    syllables = keras.Input((None,), dtype="int32", name="syllables")
    present = ops.not_equal(syllables, PAD_ID)  # (B, L)
    x = layers.Embedding(pinyin_size, config.embedding, name="embedding")(syllables)  # (B, L, embedding)
    for number, size in enumerate((config.embedding, config.width), 1):
        x = layers.Dense(size, activation="relu", name=f"pre_net_{number}")(x)
        x = layers.Dropout(config.dropout)(x)
    x = x + _project(_bank(x, present, config), present, config)  # (B, L, width)
    for number in range(1, config.highway + 1):
        x = _highway(x, config, number)
    recurrent = layers.GRU(config.width, return_sequences=True)
    x = layers.Bidirectional(recurrent, name="gru")(x, mask=present)  # (B, L, 2 · width)
    x = _present_only(x, present)  # also ends Keras's own mask
    logits = layers.Dense(hanzi_size, dtype="float32", name="logits")(x)
    return keras.Model({"syllables": syllables}, logits, name=config.name)


def _bank(x, present, config: CbhgConfig):
    """Parallel convolutions of every size up to ``bank``, then max pooling over two neighbours.

    (B, L, width) → (B, L, bank · width), zero at padding. Zero is also the lowest output of the ReLU, so the
    pooling at the last syllable of a sentence gives the same maximum with and without padding.
    """
    x = _present_only(x, present)
    outputs = [_convolution(config, size, f"bank_{size}")(x) for size in range(1, config.bank + 1)]
    y = layers.LayerNormalization(name="bank_norm")(layers.Concatenate()(outputs))
    y = _present_only(layers.ReLU()(y), present)
    return layers.MaxPooling1D(2, strides=1, padding="same")(y)


def _project(x, present, config: CbhgConfig):
    """Two convolutions back to the width: (B, L, bank · width) → (B, L, width)."""
    y = _convolution(config, config.projection_kernel, "projection_1")(x)
    y = layers.ReLU()(layers.LayerNormalization(name="projection_norm_1")(y))
    y = _convolution(config, config.projection_kernel, "projection_2")(_present_only(y, present))
    return layers.LayerNormalization(name="projection_norm_2")(y)


def _highway(x, config: CbhgConfig, number: int):
    """y = H(x) · T(x) + x · (1 - T(x)) (Srivastava et al. 2015, equation 3): (B, L, width) → the same."""
    transformed = layers.Dense(config.width, activation="relu", name=f"highway_{number}")(x)
    # With a negative bias the gate starts nearly closed and passes the input on (section 2.2 there).
    closed = keras.initializers.Constant(-1)
    gate = layers.Dense(
        config.width, activation="sigmoid", bias_initializer=closed, name=f"highway_gate_{number}"
    )(x)
    return transformed * gate + x * (1.0 - gate)


def _convolution(config: CbhgConfig, size: int, name: str) -> layers.Conv1D:
    return layers.Conv1D(config.width, size, padding="same", use_bias=False, name=name)


def _present_only(x, present):
    """Set padding to zero, so that no convolution reads it: (B, L, D), (B, L) → (B, L, D)."""
    return x * ops.cast(ops.expand_dims(present, -1), x.dtype)
