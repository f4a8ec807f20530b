"""A Keras model and the frames of a call in; the multiply-accumulates of that call out."""

from __future__ import annotations

import math

import keras
from keras import layers

_KERNELS = (layers.Conv1D, layers.Conv2D, layers.Dense)
_DEPTHWISE = (layers.DepthwiseConv1D, layers.DepthwiseConv2D)
_SEPARABLE = (layers.SeparableConv1D, layers.SeparableConv2D)
_ELEMENTWISE = (layers.BatchNormalization, layers.LayerNormalization, layers.Normalization, layers.PReLU)


def multiply_accumulates(model: keras.Model, frames: int) -> int | None:
    """Of convolutions, dense and recurrent layers, as in the literature; the rest isn't counted.

    Args:
        model: plain or streamed.
        frames: of a call, where the model takes any number of them.

    Returns:
        The number, or None where a layer with trained weights is of a kind not known here.
    """
    shape = model.inputs[0].shape
    if shape[1] is None:
        model = keras.models.clone_model(model, input_tensors=keras.Input((frames, *shape[2:])))
    counts = [_of_layer(layer) for layer in model.layers]
    return None if None in counts else sum(counts)


def _of_layer(layer: keras.layers.Layer) -> int | None:
    inner = getattr(layer, "recurrent", layer)  # streaming/stream.py wraps recurrent layers
    if isinstance(inner, layers.GRU | layers.LSTM | layers.SimpleRNN):
        kernels = math.prod(inner.cell.kernel.shape) + math.prod(inner.cell.recurrent_kernel.shape)
        return layer.input.shape[1] * kernels
    if not layer.weights or isinstance(layer, _ELEMENTWISE) or hasattr(layer, "external"):
        return 0
    positions = math.prod(layer.output.shape[1:-1])  # (batch, positions …, channels)
    if isinstance(layer, _DEPTHWISE):
        return positions * math.prod(layer.kernel.shape)
    if isinstance(layer, _SEPARABLE):
        return positions * (math.prod(layer.depthwise_kernel.shape) + math.prod(layer.pointwise_kernel.shape))
    if isinstance(layer, _KERNELS):
        return positions * math.prod(layer.kernel.shape)
    return None
