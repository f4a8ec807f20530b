"""Keras layers for self-attention with relative positions, for `conformer`.

Dai et al., "Transformer-XL" (2019, arXiv:1901.02860), section 3.3: the attention of frame i to frame k
depends on their contents and on the distance i - k only, so that an utterance may have any length.
"""

import math

import keras
from keras import layers, ops

from model_speech.layers.self_attention import split_heads
from utils.backend.masked_softmax import masked_softmax

_MAX_WAVELENGTH = 10_000.0  # Vaswani et al. 2017, section 3.5

_serializable = keras.saving.register_keras_serializable(package="model_speech")


@_serializable
class RelativePositions(layers.Layer):
    """Sinusoidal encodings of the distances T-1 … 1-T: (B, T, width) → (1, 2T - 1, width)."""

    def call(self, x):
        """Sines of all wavelengths, then cosines (Vaswani et al. 2017, section 3.5)."""
        frames, width = ops.shape(x)[1], x.shape[-1]
        distance = ops.cast(frames - 1 - ops.arange(2 * frames - 1, dtype="int32"), "float32")
        wave = ops.exp(ops.arange(0, width, 2, dtype="float32") * (-math.log(_MAX_WAVELENGTH) / width))
        angle = distance[:, None] * wave[None, :]  # (2T - 1, width / 2, rounded up)
        table = ops.concatenate([ops.sin(angle), ops.cos(angle)], axis=1)[:, :width]
        return ops.cast(table, self.compute_dtype)[None]

    def compute_output_shape(self, x_shape):
        """(B, T, width) → (1, 2T - 1, width)."""
        return (1, None if x_shape[1] is None else 2 * x_shape[1] - 1, x_shape[2])


@_serializable
class RelativeAttention(layers.Layer):
    """Multi-head self-attention with relative positions.

    Args:
        heads: number of heads; it divides the width.

    Call:
        x (B, T, width), positions (1, 2T - 1, width) of `RelativePositions`, valid (B, T) bool →
        (B, T, width). Padding gets no attention.
    """

    def __init__(self, heads: int, **kwargs):
        super().__init__(**kwargs)
        self.heads = heads

    def build(self, x_shape, positions_shape, valid_shape):
        """Create the projections and the biases u and v, (heads, 1, width / heads) each."""
        width = x_shape[-1]
        for name in ("query", "key", "value", "position", "projection"):
            dense = layers.Dense(width, use_bias=name != "position", name=name, dtype=self.dtype_policy)
            dense.build(x_shape)
            setattr(self, name, dense)
        shape = (self.heads, 1, width // self.heads)
        self.content_bias = self.add_weight(shape=shape, initializer="zeros", name="content_bias")
        self.position_bias = self.add_weight(shape=shape, initializer="zeros", name="position_bias")

    def call(self, x, positions, valid):
        """Scores (q + u) · k + (q + v) · r of Dai et al., scaled; softmax; weighted sum of the values."""
        query, key, value = (
            split_heads(project(x), self.heads) for project in (self.query, self.key, self.value)
        )
        position = split_heads(self.position(positions), self.heads)  # (1, heads, 2T - 1, width / heads)
        scale = float(query.shape[-1]) ** -0.5
        by_content = ops.matmul((query + self.content_bias) * scale, ops.swapaxes(key, 2, 3))
        by_position = ops.matmul((query + self.position_bias) * scale, ops.swapaxes(position, 2, 3))
        scores = ops.cast(by_content + shift(by_position), "float32")  # (B, heads, T, T)
        weights = masked_softmax(scores, valid[:, None, None, :])
        mixed = ops.matmul(ops.cast(weights, self.compute_dtype), value)  # (B, heads, T, width / heads)
        return self.projection(ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), ops.shape(x)))

    def compute_output_shape(self, x_shape, positions_shape, valid_shape):
        """(B, T, width) → the same."""
        return x_shape

    def multiply_accumulates(self, frames: int) -> int:
        """For one utterance: projections, scores by content and by position, weighted sum."""
        width, distances = self.projection.units, 2 * frames - 1
        return width * (width * (4 * frames + distances) + frames * (2 * frames + distances))


def shift(by_distance):
    """Scores by distance → scores by frame: (B, heads, T, 2T - 1) → (B, heads, T, T).

    Row i holds the distances T-1 … 1-T; frame k is at distance i - k, in column T - 1 - i + k. Padding each
    row by one value and reshaping to rows of T selects them without a gather (Dai et al., appendix B).
    """
    batch, heads, frames = ops.shape(by_distance)[:3]
    padded = ops.pad(by_distance, ((0, 0), (0, 0), (0, 0), (1, 0)))  # (B, heads, T, 2T)
    moved = ops.reshape(padded, (batch, heads, 2 * frames, frames))[:, :, 1:]
    return ops.reshape(moved, (batch, heads, frames, 2 * frames - 1))[..., :frames]
