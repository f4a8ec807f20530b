"""Describes a Keras model: the table of its layers, and the multiply-accumulates (MACs) of a forward pass."""

import math

import keras
from keras import layers

# Layers that multiply by a kernel once per output position.
_KERNELS = (
    layers.Conv1D,
    layers.Conv2D,
    layers.DepthwiseConv1D,
    layers.DepthwiseConv2D,
    layers.Dense,
)
_SEPARABLE = (layers.SeparableConv1D, layers.SeparableConv2D)
_RECURRENT = (layers.GRU, layers.LSTM, layers.SimpleRNN)


def multiply_accumulates(model: keras.Model, frames: int) -> int:
    """Multiply-accumulates of one forward pass over ``frames`` feature frames, or syllables.

    As in the literature, convolutions, dense and recurrent layers and the products of attention are counted,
    but not scaling, shifting, activations and softmax. A custom layer with other products has a method
    ``multiply_accumulates(frames)``.

    Args:
        model: for whole utterances, or converted for streaming.
        frames: number of frames in an utterance, of syllables in a sentence, or of frames in a call of a
            stream, if the model accepts any number.

    Raises:
        ValueError: a layer has weights and its cost is unknown; the layer is named.
    """
    if any(None in tensor.shape[1:] for tensor in model.inputs):
        # In a copy with fixed shapes, the output size of every layer is known.
        fixed = keras.tree.map_structure(lambda tensor: _fixed(tensor, frames), model.input)
        # A model compiled without an optimizer can't be cloned, hence a new model without that setting.
        uncompiled = keras.Model(model.input, model.output)
        model = keras.models.clone_model(uncompiled, input_tensors=fixed)
    return sum(_of_layer(layer) for layer in model.layers)


def _fixed(tensor: keras.KerasTensor, frames: int) -> keras.KerasTensor:
    shape = (1, *(frames if size is None else size for size in tensor.shape[1:]))
    return keras.Input(batch_shape=shape, dtype=tensor.dtype, name=tensor.name)


def _of_layer(layer: keras.layers.Layer) -> int:
    inner = getattr(layer, "recurrent", layer)  # streaming/conversion/layers.py wraps recurrent layers
    if isinstance(inner, _RECURRENT):
        kernels = math.prod(inner.cell.kernel.shape) + math.prod(inner.cell.recurrent_kernel.shape)
        chunk = keras.tree.flatten(layer.input)[0]  # before the indices and states of a stream
        return chunk.shape[1] * kernels
    # A layer with vectors only scales and shifts; the state of a streaming layer is not multiplied.
    # Vectors of an embedding are looked up.
    if isinstance(layer, (layers.PReLU, layers.Embedding)) or hasattr(layer, "external"):
        return 0
    if all(len(weight.shape) < 2 for weight in layer.weights):
        return 0
    positions = math.prod(layer.output.shape[1:-1])  # (batch, positions …, channels)
    if hasattr(layer, "multiply_accumulates"):
        return layer.multiply_accumulates(positions)
    if isinstance(layer, _SEPARABLE):
        return positions * (math.prod(layer.depthwise_kernel.shape) + math.prod(layer.pointwise_kernel.shape))
    if isinstance(layer, _KERNELS):
        return positions * math.prod(layer.kernel.shape)
    raise ValueError(f"the cost of layer '{layer.name}' ({type(layer).__name__}) is unknown")


def summary_text(model: keras.Model) -> str:
    """Layers, output shapes and parameter counts, as ``model.summary()`` prints them."""
    lines: list[str] = []
    model.summary(print_fn=lines.append, line_length=110)
    return "\n".join(lines) + "\n"
