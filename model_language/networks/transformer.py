"""Transformer encoder (pre-norm) for pinyin to hanzi, in Keras: logits over all hanzi for each syllable.

The default size is that of a published recipe (6 blocks, 8 heads, 512 wide), but padding is masked, and
positions enter as a learned bias on relative distance (Raffel et al. 2020, section 2.1; here clipped rather
than bucketed), so that a sentence may have any length. :mod:`model_language.networks.loss` restricts the
output to hanzi with the reading.
"""

from dataclasses import dataclass

import keras
import numpy as np
from keras import layers, ops

from model_language.batching import LONGEST_WINDOW
from model_language.vocabulary.symbols import PAD_ID
from utils.backend.masked_softmax import masked_softmax
from utils.backend.prediction import predict, prepare_prediction
from utils.errors import CorpusError, RunError, require
from utils.limits import Count, Fraction, Limited, Size, check_multiple

_serializable = keras.saving.register_keras_serializable(package="model_language")


@dataclass(frozen=True)
class EncoderConfig(Limited, section="model"):
    """Geometry of a transformer encoder; the defaults are those of a published recipe.

    Attributes:
        width: size of the embeddings and of every block's output; a multiple of ``heads``.
        blocks: number of attention layers.
        heads: attention heads of a block.
        feed_forward: size of the inner feed-forward layer, in widths.
        dropout: fraction of activations dropped in training.
        label_smoothing: probability spread over the other candidates in the training loss.
    """

    name: str = ""
    width: Count = 512
    blocks: Size = 6
    heads: Count = 8
    feed_forward: Count = 4
    dropout: Fraction = 0.2
    label_smoothing: Fraction = 0.1

    def __post_init__(self):
        super().__post_init__()
        check_multiple(self, "model", "width", "heads", hint="each head gets an equal part of the width")


@dataclass(frozen=True)
class TransformerConfig(EncoderConfig):
    """Geometry of :func:`build_transformer`, see also :class:`EncoderConfig`.

    Attributes:
        reach: relative distances beyond this many syllables share one bias.
    """

    name: str = "transformer"
    reach: Size = 32


def build_transformer(config: TransformerConfig, pinyin_size: int, hanzi_size: int) -> keras.Model:
    """Build the model of ``{"syllables": (B, L) int32}`` → logits (B, L, hanzi_size) float32.

    The sizes are those of the vocabularies; id 0 is padding, which has no influence on the other positions.
    The attention weights of block 1 … are the outputs (B, heads, L, L) of the layers ``attention_1`` ….
    """
    syllables = keras.Input((None,), dtype="int32", name="syllables")
    present = ops.not_equal(syllables, PAD_ID)  # (B, L)
    x = layers.Embedding(pinyin_size, config.width, name="embedding")(syllables)  # (B, L, width)
    x = layers.LayerNormalization(name="final_norm")(encode(x, present, config))
    logits = layers.Dense(hanzi_size, dtype="float32", name="logits")(x)
    return keras.Model({"syllables": syllables}, logits, name=config.name)


def encode(x, present, config: TransformerConfig):
    """The blocks: embeddings (B, L, width) and which positions are present, (B, L) bool → (B, L, width)."""
    x = layers.Dropout(config.dropout)(x)
    for block in range(1, config.blocks + 1):
        x = layers.Add()([x, _attend(x, present, config, block)])
        x = layers.Add()([x, _feed_forward(x, config, block)])
    return x


def _attend(x, present, config: TransformerConfig, block: int):
    """Self-attention with dropout: (B, L, width) → the same."""
    normed = layers.LayerNormalization(name=f"attention_norm_{block}")(x)
    weights = AttentionWeights(config.heads, config.reach, name=f"attention_{block}")(normed, present)
    weights = layers.Dropout(config.dropout)(weights)
    y = AttentionMix(config.heads, name=f"mix_{block}")(normed, weights)
    return layers.Dropout(config.dropout)(y)


def _feed_forward(x, config: TransformerConfig, block: int):
    """Position-wise two-layer network: (B, L, width) → the same."""
    inner = config.feed_forward * config.width
    y = layers.LayerNormalization(name=f"feed_forward_norm_{block}")(x)
    y = layers.Dense(inner, activation="gelu", name=f"feed_forward_inner_{block}")(y)
    y = layers.Dropout(config.dropout)(y)
    y = layers.Dense(config.width, name=f"feed_forward_outer_{block}")(y)
    return layers.Dropout(config.dropout)(y)


@_serializable
class AttentionWeights(layers.Layer):
    """Attention weights of each position (Vaswani et al. 2017, equation 1, without the values).

    They are the output of a layer, so that they can be inspected.

    Args:
        heads: number of heads; it divides the width.
        reach: largest relative distance with a bias of its own; None: no bias.
        activation: activation of the query and key projections, such as ``relu``; None: linear.

    Call:
        x (B, L, width), present (B, L) bool → (B, heads, L, L); a row sums to 1 over the positions present.
    """

    def __init__(self, heads: int, reach: int | None, activation: str | None = None, **kwargs):
        super().__init__(**kwargs)
        self.heads, self.reach, self.activation = heads, reach, activation

    def build(self, x_shape, present_shape=None):
        """Create the query and key projections and the bias, (2 · reach + 1, heads)."""
        self.query = _projection(self, x_shape, "query")
        self.key = _projection(self, x_shape, "key")
        if self.reach is not None:
            shape = (2 * self.reach + 1, self.heads)
            self.distance_bias = self.add_weight(shape=shape, initializer="zeros", name="distance_bias")

    def call(self, x, present):
        """See the class."""
        query = _split_heads(self.query(x), self.heads)  # (B, heads, L, width / heads)
        key = _split_heads(self.key(x), self.heads)
        scale = float(query.shape[-1]) ** -0.5
        scores = ops.cast(ops.matmul(query * scale, ops.swapaxes(key, 2, 3)), "float32")  # (B, heads, L, L)
        if self.reach is not None:
            scores = scores + ops.cast(self._bias(ops.shape(x)[1]), "float32")
        return ops.cast(masked_softmax(scores, present[:, None, None, :]), self.compute_dtype)

    def compute_output_shape(self, x_shape, present_shape=None):
        """(B, L, width) → (B, heads, L, L)."""
        return (x_shape[0], self.heads, x_shape[1], x_shape[1])

    def multiply_accumulates(self, rows: int) -> int:
        """For ``rows`` of weights, one for each head and position: two projections, and the scores."""
        length, width = rows // self.heads, self.query.units
        return 2 * length * width**2 + length**2 * width

    def _bias(self, length):
        assert self.reach is not None
        positions = ops.arange(length, dtype="int32")
        distance = positions[None, :] - positions[:, None]  # (L, L): key - query
        distance = ops.clip(distance, -self.reach, self.reach)
        bias = ops.take(self.distance_bias, distance + self.reach, axis=0)  # (L, L, heads)
        return ops.transpose(bias, (2, 0, 1))


@_serializable
class AttentionMix(layers.Layer):
    """Mix the values by attention weights (Vaswani et al. 2017, section 3.2.2) and project them.

    Args:
        heads: number of heads; it divides the width.
        activation: activation of the value projection, such as ``relu``; None: linear.
        projected: add a linear output projection.

    Call:
        x (B, L, width), weights (B, heads, L, L) → (B, L, width).
    """

    def __init__(self, heads: int, activation: str | None = None, projected: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.heads, self.activation, self.projected = heads, activation, projected

    def build(self, x_shape, weights_shape=None):
        """Create the value and output projections."""
        self.value = _projection(self, x_shape, "value")
        if self.projected:
            self.projection = layers.Dense(x_shape[-1], name="projection", dtype=self.dtype_policy)
            self.projection.build(x_shape)

    def call(self, x, weights):
        """See the class."""
        mixed = ops.matmul(weights, _split_heads(self.value(x), self.heads))  # (B, heads, L, width / heads)
        mixed = ops.transpose(mixed, (0, 2, 1, 3))  # (B, L, heads, width / heads)
        mixed = ops.reshape(mixed, ops.shape(x))
        return self.projection(mixed) if self.projected else mixed

    def compute_output_shape(self, x_shape, weights_shape=None):
        """(B, L, width) → the same."""
        return x_shape

    def multiply_accumulates(self, length: int) -> int:
        """For one sentence: the projection of the values, their weighted sum, the output projection."""
        width = self.value.units
        return (2 if self.projected else 1) * length * width**2 + length**2 * width


def _projection(layer: AttentionWeights | AttentionMix, x_shape, name: str) -> layers.Dense:
    """A built dense layer of the input's width, with the activation of ``layer``."""
    dense = layers.Dense(x_shape[-1], layer.activation, name=name, dtype=layer.dtype_policy)
    dense.build(x_shape)
    return dense


def _split_heads(x, heads: int):
    """(B, L, width) → (B, heads, L, width / heads)."""
    # -1 for L: tf2onnx wrongly merges a dense layer's reshape with one that copies both sizes.
    x = ops.reshape(x, (ops.shape(x)[0], -1, heads, x.shape[-1] // heads))
    return ops.transpose(x, (0, 2, 1, 3))


@dataclass(frozen=True)
class Attention:
    """The attention of a transformer for one sentence of L syllables.

    Attributes:
        weights: (blocks, heads, L, L) float32; row i is the attention of position i and sums to 1.
        logits: output of the same forward pass, (L, hanzi) float32.
    """

    weights: np.ndarray
    logits: np.ndarray


def attend(model: keras.Model, syllables: np.ndarray) -> Attention:
    """Run the model on one sentence and return its attention.

    Args:
        model: result of ``build_transformer`` or ``build_published_transformer``.
        syllables: ids, (L,) int32, without padding, L ≥ 1.

    Raises:
        RunError: the model has no attention layers.
        CorpusError: the sentence has more than ``LONGEST_WINDOW`` syllables, the most that converters
            compute at once: the memory grows with the square of the length.
    """
    require(
        len(syllables) <= LONGEST_WINDOW,
        f"the sentence has {len(syllables):,} syllables, the limit is {LONGEST_WINDOW}",
        hint="give a part of it",
        error=CorpusError,
    )
    layers = [layer for layer in model.layers if isinstance(layer, AttentionWeights)]
    if not layers:
        raise RunError(
            f"the model '{model.name}' has no attention layers",
            hint="give a run of a transformer with at least one block",
        )
    outputs = {"logits": model.output, **{layer.name: layer.output for layer in layers}}
    observed = keras.Model(model.input, outputs)
    prepare_prediction(observed)
    found = predict(observed, {"syllables": np.asarray(syllables, np.int32)[None]})
    length = len(syllables)  # some backends pad the input
    weights = [np.asarray(found[layer.name], np.float32)[0, :, :length, :length] for layer in layers]
    return Attention(np.stack(weights), np.asarray(found["logits"], np.float32)[0, :length])
