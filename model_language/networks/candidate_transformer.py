"""Transformer encoder for pinyin to hanzi that scores only the candidates of each syllable.

The blocks are those of :mod:`model_language.networks.transformer`; input, output and training rows are those
of the gated CNN (:mod:`model_language.networks.gated_cnn`).
"""

from dataclasses import dataclass, field
from typing import Annotated

import keras
from keras import layers, ops

from model_language.networks.candidates import CandidateTables
from model_language.networks.gated_cnn import CandidateLogits, RowsConfig, SyllableEmbedding
from model_language.networks.transformer import TransformerConfig, encode
from model_language.vocabulary.symbols import PAD_ID
from utils.limits import at_least

NAME = "candidate_transformer"


@dataclass(frozen=True)
class CandidateTransformerConfig(TransformerConfig):
    """Geometry of :func:`build_candidate_transformer` and its training rows.

    Attributes:
        choices: candidates of each syllable.
        rows: the training rows.
    """

    name: str = NAME
    choices: Annotated[int, at_least(2)] = 32
    rows: RowsConfig = field(default_factory=RowsConfig)


def build_candidate_transformer(
    config: CandidateTransformerConfig, tables: CandidateTables, hanzi_size: int
) -> keras.Model:
    """Build the model; arguments and result are those of ``gated_cnn.build_gated_cnn``."""
    syllables = keras.Input((None,), dtype="int32", name="syllables")
    present = ops.not_equal(syllables, PAD_ID)  # (B, L)
    x = SyllableEmbedding(tables.bases, config.width, name="embedding")(syllables)  # (B, L, width)
    x = layers.LayerNormalization(name="final_norm")(encode(x, present, config))
    logits = CandidateLogits(tables.candidates, tables.priors, hanzi_size, dtype="float32", name="logits")
    return keras.Model({"syllables": syllables}, logits(x, syllables), name=config.name)
