"""Orders the layers of a model by the noise that int8 activations add, to choose which stay in float.

8-bit activations have one scale for all channels of a tensor. If the values of one channel have a wide range,
the steps are too coarse for the other channels. Such a tensor is kept in float by leaving the layer that
computes it and the layers that use it in float. The noise is measured on typical clips.
"""

import re
from collections.abc import Collection, Mapping

import keras
import numpy as np

_STEPS = 255  # of the range of an 8-bit tensor
_FUSED = (keras.layers.BatchNormalization, keras.layers.Activation, keras.layers.Dropout, keras.layers.ReLU)
"""Layers that a converter fuses with the layer before them: only their output becomes a tensor."""


def layers_by_noise(
    model: keras.Model, inputs: np.ndarray | Mapping[str, np.ndarray]
) -> list[tuple[str, ...]]:
    """Groups of layers to leave in float, one for each tensor between layers.

    Args:
        model: the plain model.
        inputs: of the model: clips, (N, …) float32, or arrays (N, …) by the names of its inputs.

    Returns:
        Names of the layers of each group (an input, or the layer that computes a tensor, with layers fused
        with it; and the layers that use it), ordered by the noise of the tensor in 8 bits, the highest first.
    """
    kernels = [layer for layer in model.layers if _has_kernel(layer) and len(layer._inbound_nodes) == 1]
    inputs_of_model = [layer for layer in model.layers if isinstance(layer, keras.layers.InputLayer)]
    makers = [*(layer for layer in inputs_of_model if layer.dtype.startswith("float")), *kernels]
    if not makers:
        return []
    fused = {layer.name: _fused_with(layer) for layer in makers}
    probe = keras.Model(model.input, [layers[-1].output for layers in fused.values()])
    outputs = probe.predict_on_batch(inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    noise = [rounding_noise(keras.ops.convert_to_numpy(values)) for values in outputs]
    order = sorted(range(len(makers)), key=lambda index: -noise[index])
    return [_names_around(fused[makers[index].name]) for index in order]


def layers_with_weights(model: keras.Model) -> frozenset[str]:
    """Names of the layers with weights, without those that a converter fuses with the layer before them.

    If they are all in float, a file is a float file, whatever its name says.
    """
    return frozenset(layer.name for layer in model.layers if _has_kernel(layer))


def rounding_noise(values: np.ndarray) -> float:
    """Fraction of noise in the channels of a tensor with 8 bits for its whole range, from 0 to 1.

    Args:
        values: (…, channels).

    Returns:
        The mean of noise / (noise + signal) over channels; the noise is that of uniform rounding, a twelfth
        of the squared step. Constant channels are excluded.
    """
    noise = (float(np.ptp(values)) / _STEPS) ** 2 / 12
    signal = values.reshape(-1, values.shape[-1]).var(axis=0)
    signal = signal[signal > 0]
    return float(np.mean(noise / (noise + signal))) if len(signal) else 0.0


def made_by(operation: str, layers: Collection[str]) -> bool:
    """Whether an operation of a converted model belongs to one of these layers.

    Args:
        operation: its scope paths, joined by ``;``: ``model_1/conv_1/Relu;model_1/conv_1/Conv2D``.
            TensorFlow adds the same suffix to model and layers, here ``_1``, when it traces them a second
            time.
        layers: names of layers.
    """
    for path in operation.split(";"):
        model, *scopes = path.split("/")
        suffix = "".join(re.findall(r"_\d+$", model))
        if not set(layers).isdisjoint(scope.removesuffix(suffix) for scope in scopes):
            return True
    return False


def _has_kernel(operation: keras.Operation) -> bool:
    return bool(getattr(operation, "weights", ())) and not isinstance(operation, _FUSED)


def _consumers(layer: keras.Operation) -> list[keras.Operation]:
    return [node.operation for node in layer._outbound_nodes]


def _fused_with(layer: keras.Layer) -> list[keras.Layer]:
    """The layer and those fused with it, up to the one whose output becomes a tensor."""
    layers = [layer]
    if isinstance(layer, keras.layers.InputLayer):
        return layers
    while len(after := _consumers(layers[-1])) == 1 and isinstance(after[0], _FUSED):
        layers.append(after[0])
    return layers


def _names_around(layers: list[keras.Layer]) -> tuple[str, ...]:
    """The layers and those that use their output, up to the next layers with kernels or several inputs."""
    names, todo = [layer.name for layer in layers], [layers[-1]]
    while todo:
        for layer in _consumers(todo.pop()):
            if isinstance(layer, keras.Layer):  # not `keras.ops`, whose operations no scope names
                names.append(layer.name)
            if not _has_kernel(layer) and len(layer._inbound_nodes[0].input_tensors) == 1:
                todo.append(layer)
    return tuple(dict.fromkeys(names))
