"""What a model costs: a Keras model + a number of feature frames in, multiply-accumulates out."""

from __future__ import annotations

import math

import keras
from keras import layers

from model_speech.normalisation import MaskedBatchNormalization

# Layers that multiply by a kernel once for every position of their output.
KERNEL_LAYERS = (layers.Conv1D, layers.Conv2D, layers.DepthwiseConv1D, layers.DepthwiseConv2D, layers.Dense)
# Layers whose weights scale and shift single values: left out of the count.
ELEMENTWISE_LAYERS = (layers.LayerNormalization, layers.RMSNormalization, MaskedBatchNormalization)


def multiply_accumulates(model: keras.Model, frames: int) -> int:
    """Multiply-accumulates of one forward pass over an utterance of ``frames`` feature frames.

    Counted are convolutions, dense and recurrent layers and the products of attention, as in the literature;
    normalisation, activations and the softmax are not. A layer of ours that multiplies in a way of its own
    has a method ``multiply_accumulates(frames)``.

    Raises:
        ValueError: a layer has weights and its cost isn't known here; names it.
    """
    # The model itself takes any length: a copy with fixed shapes knows the size of every layer's output.
    features, lengths = model.input["features"], model.input["lengths"]
    fixed = {
        "features": keras.Input(batch_shape=(1, frames, features.shape[2]), name="features"),
        "lengths": keras.Input(batch_shape=(1,), dtype=lengths.dtype, name="lengths"),
    }
    return sum(_of_layer(layer) for layer in keras.models.clone_model(model, input_tensors=fixed).layers)


def _of_layer(layer: keras.layers.Layer) -> int:
    if isinstance(layer, ELEMENTWISE_LAYERS) or not layer.weights:
        return 0
    positions = math.prod(layer.output.shape[1:-1])  # (1, positions…, channels)
    if hasattr(layer, "multiply_accumulates"):
        return layer.multiply_accumulates(positions)
    if isinstance(layer, layers.GRU):
        # Three gates, each of the frame and of the state before.
        return positions * (math.prod(layer.cell.kernel.shape) + math.prod(layer.cell.recurrent_kernel.shape))
    if not isinstance(layer, KERNEL_LAYERS):
        raise ValueError(f"the cost of layer '{layer.name}' ({type(layer).__name__}) isn't known")
    depthwise = isinstance(layer, layers.DepthwiseConv1D | layers.DepthwiseConv2D)
    # A depthwise kernel meets each position once, all of its channels together.
    kernel = layer.kernel.shape
    return positions * math.prod(kernel[:-1]) * (1 if depthwise and kernel[-1] == 1 else kernel[-1])
