"""Keras layers for self-attention with fixed sinusoidal positions, for `whisper`.

Vaswani et al., "Attention is all you need" (2017, arXiv:1706.03762), sections 3.2.2 and 3.5, in the form of
Radford et al. (2022, arXiv:2212.04356): the projection of the keys has no bias.
"""

import math

import keras
from keras import layers, ops

from utils.backend.masked_softmax import masked_softmax

_MAX_WAVELENGTH = 10_000.0

_serializable = keras.saving.register_keras_serializable(package="model_speech")


@_serializable
class SinusoidalPositions(layers.Layer):
    """Add the encoding of each frame's position, first sines, then cosines: (B, T, width) → the same."""

    def call(self, x):
        """The wavelengths form a geometric series up to 10,000 · 2π, which the last one reaches."""
        frames, half = ops.shape(x)[1], x.shape[-1] // 2
        step = math.log(_MAX_WAVELENGTH) / (half - 1)
        wave = ops.exp(ops.arange(half, dtype="float32") * -step)  # (width / 2,)
        angle = ops.cast(ops.arange(frames), "float32")[:, None] * wave  # (T, width / 2)
        return x + ops.cast(ops.concatenate([ops.sin(angle), ops.cos(angle)], axis=1), x.dtype)

    def compute_output_shape(self, shape):
        """(B, T, width) → the same."""
        return shape


@_serializable
class SelfAttention(layers.Layer):
    """Multi-head self-attention.

    Args:
        heads: number of heads; it divides the width.

    Call:
        x (B, T, width), valid (B, T) bool → (B, T, width). Padding gets no attention.
    """

    def __init__(self, heads: int, **kwargs):
        super().__init__(**kwargs)
        self.heads = heads

    def build(self, x_shape, valid_shape):
        """Create the four projections."""
        width = x_shape[-1]
        for name in ("query", "key", "value", "projection"):
            dense = layers.Dense(width, use_bias=name != "key", name=name, dtype=self.dtype_policy)
            dense.build(x_shape)
            setattr(self, name, dense)

    def call(self, x, valid):
        """Softmax of q · k / √(width / heads), weighted sum of the values, projection."""
        query, key, value = (
            split_heads(project(x), self.heads) for project in (self.query, self.key, self.value)
        )
        scale = float(query.shape[-1]) ** -0.5
        scores = ops.matmul(query * scale, ops.swapaxes(key, 2, 3))  # (B, heads, T, T)
        weights = masked_softmax(ops.cast(scores, "float32"), valid[:, None, None, :])
        mixed = ops.matmul(ops.cast(weights, self.compute_dtype), value)  # (B, heads, T, width / heads)
        return self.projection(ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), ops.shape(x)))

    def compute_output_shape(self, x_shape, valid_shape):
        """(B, T, width) → the same."""
        return x_shape

    def multiply_accumulates(self, frames: int) -> int:
        """For one utterance: four projections, scores, weighted sum."""
        width = self.projection.units
        return 4 * frames * width * width + 2 * frames * frames * width

    def get_config(self):
        """The constructor's arguments."""
        return {**super().get_config(), "heads": self.heads}


def split_heads(x, heads: int):
    """(B, T, width) → (B, heads, T, width / heads)."""
    # -1 for T: tf2onnx wrongly merges a dense layer's reshape with one that copies both sizes.
    x = ops.reshape(x, (ops.shape(x)[0], -1, heads, x.shape[-1] // heads))
    return ops.transpose(x, (0, 2, 1, 3))
