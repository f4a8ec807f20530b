"""Punctuation network, in Keras: logits of the mark after each hanzi, from the hanzi and the pauses.

Layers of gated convolutions as in :mod:`model_language.networks.gated_cnn`. Those of ``dilations`` see both
sides, so that a mark depends on at most their sum of hanzi behind it; those of ``history`` see the past only.
"""

import keras
from keras import layers, ops

from model_language.networks.gated_cnn import GatedNeighbours
from model_language.networks.punctuation_config import PunctuationConfig
from model_language.vocabulary.symbols import PAD_ID
from utils.mandarin.punctuation import MARKS, PAUSES


def build_punctuation(config: PunctuationConfig, hanzi_size: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        hanzi_size: tokens of the vocabulary.

    Returns:
        Model of ``{"hanzi": (B, L) int32, "pauses": (B, L) int32}`` → logits (B, L, marks) float32, see
        :data:`utils.mandarin.punctuation.MARKS`. Padding (id 0) has no influence on the other positions.
    """
    hanzi = keras.Input((None,), dtype="int32", name="hanzi")
    pauses = keras.Input((None,), dtype="int32", name="pauses")
    present = ops.expand_dims(ops.not_equal(hanzi, PAD_ID), -1)  # (B, L, 1)
    x = layers.Embedding(hanzi_size, config.width, name="embedding")(hanzi)
    x = layers.Dropout(config.dropout, name="dropout")(x)
    x = x + layers.Embedding(PAUSES, config.width, name="pause_embedding")(pauses)
    x = x * ops.cast(present, x.dtype)
    for number, dilation in enumerate(config.dilations, start=1):
        x = GatedNeighbours(dilation, name=f"neighbours_{number}")(x, present)
    for number, dilation in enumerate(config.history, start=1):
        x = GatedNeighbours(dilation, causal=True, name=f"history_{number}")(x, present)
    x = layers.LayerNormalization(name="final_norm")(x)
    logits = layers.Dense(len(MARKS), dtype="float32", name="logits")(x)
    return keras.Model({"hanzi": hanzi, "pauses": pauses}, logits, name=config.name)
