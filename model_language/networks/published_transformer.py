"""Transformer of published projects for pinyin to hanzi: logits over all hanzi for each syllable.

It exists for their published weights (:mod:`model_language.legacy_import`); to train a new network, use
:mod:`model_language.networks.transformer`. Differences: 100 learned positions; queries, keys and values pass
a ReLU; attention has no output projection; layer normalisation follows each residual sum; a single
feed-forward network follows the last block.
"""

from dataclasses import dataclass

import keras
from keras import layers, ops

from model_language.networks.transformer import AttentionMix, AttentionWeights, EncoderConfig
from model_language.vocabulary.symbols import PAD_ID
from utils.limits import Count

NAME = "published_transformer"
_EPSILON = 1e-8  # added to the variance in the layer normalisations, as in the original
_serializable = keras.saving.register_keras_serializable(package="model_language")


@dataclass(frozen=True)
class PublishedTransformerConfig(EncoderConfig):
    """Geometry of :func:`build_published_transformer`, see also :class:`EncoderConfig`.

    Attributes:
        positions: number of learned positions; later syllables share the last one.
    """

    name: str = NAME
    positions: Count = 100


def build_published_transformer(
    config: PublishedTransformerConfig, pinyin_size: int, hanzi_size: int
) -> keras.Model:
    """As :func:`model_language.networks.transformer.build_transformer`, with the published layers."""
    syllables = keras.Input((None,), dtype="int32", name="syllables")
    present = ops.not_equal(syllables, PAD_ID)  # (B, L)
    x = layers.Embedding(pinyin_size, config.width, name="embedding")(syllables)  # (B, L, width)
    x = layers.Rescaling(config.width**0.5, name="embedding_scale")(x)
    x = LearnedPositions(config.positions, name="positions")(x)
    x = layers.Dropout(config.dropout)(x)
    for block in range(1, config.blocks + 1):
        weights = AttentionWeights(config.heads, None, "relu", name=f"attention_{block}")(x, present)
        weights = layers.Dropout(config.dropout)(weights)
        mixed = AttentionMix(config.heads, "relu", projected=False, name=f"mix_{block}")(x, weights)
        x = layers.Add()([x, mixed])
        x = layers.LayerNormalization(epsilon=_EPSILON, name=f"attention_norm_{block}")(x)
    inner = layers.Dense(config.feed_forward * config.width, "relu", name="feed_forward_inner")(x)
    x = layers.Add()([x, layers.Dense(config.width, name="feed_forward_outer")(inner)])
    x = layers.LayerNormalization(epsilon=_EPSILON, name="feed_forward_norm")(x)
    logits = layers.Dense(hanzi_size, dtype="float32", name="logits")(x)
    return keras.Model({"syllables": syllables}, logits, name=config.name)


@_serializable
class LearnedPositions(layers.Layer):
    """Add the learned vector of its position to each frame.

    Args:
        positions: number of learned vectors; frames beyond the last one share its vector.

    Call:
        x (B, L, width) → the same.
    """

    def __init__(self, positions: int, **kwargs):
        super().__init__(**kwargs)
        self.positions = positions

    def build(self, x_shape):
        """Create the vectors, (positions, width)."""
        self.vectors = self.add_weight(shape=(self.positions, x_shape[-1]), name="vectors")

    def call(self, x):
        """See the class."""
        index = ops.minimum(ops.arange(ops.shape(x)[1], dtype="int32"), self.positions - 1)
        return x + ops.cast(ops.take(self.vectors, index, axis=0), x.dtype)

    def compute_output_shape(self, x_shape):
        """(B, L, width) → the same."""
        return x_shape

    def multiply_accumulates(self, length: int) -> int:
        """None: the vectors are added."""
        return 0
