"""Converts an acoustic model or a network over text to one small ONNX file with the paths of the variables.

The weights enter the conversion as inputs, so that no converter folds or renames them, and become
initialisers afterwards. Large weights are stored in int8 with a scale for each channel.
"""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnx
import tensorflow as tf
from onnxruntime.quantization import QuantType, quantize_dynamic

from bundle.export.onnx_files import convert_function, quiet_converters, rename_tensors
from model_speech.acoustic_model import AcousticModel
from model_speech.causal import causal_model, streaming_obstacles
from model_speech.packed_run import (
    FEATURES,
    LOGITS,
    LOOK_AHEAD,
    NEXT_SUFFIX,
    QUANTISED,
    SCALE,
    STATE_PREFIX,
    TIME_STRIDE,
    WEIGHTS,
)
from model_speech.packed_weights import weight_variables
from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from utils.errors import BundleError
from utils.run_folder.run import RunFolder

_HIGHEST = 127
_SMALLEST = 4096  # values; smaller weights stay float32: they are not worth a loss of precision
# Values of a matrix that is multiplied in int8: smaller ones gain little time, and the rounding of their
# inputs changes more syllables than that of the weights.
_SMALLEST_PRODUCT = 2**18


def packed_network(acoustic: AcousticModel, run: RunFolder) -> onnx.ModelProto:
    """The network of a speech run in ONNX.

    Returns:
        ``features`` (B, T, F) float32 and ``lengths`` (B,) int32 → ``logits`` (B, T', C) float32. That of a
        model that can stream takes ``features`` (1, T, F), T a multiple of the time stride, and states, which
        are zero at first, and returns ``logits`` (1, T / time_stride, C) and the next states. Its products
        are in float32, because the range of 8-bit activations would depend on the size of the chunks.
    """
    metadata: dict[str, Any] = {TIME_STRIDE: acoustic.time_stride}
    if streams := not streaming_obstacles(acoustic):
        causal = causal_model(acoustic, run)
        metadata[LOOK_AHEAD] = causal.look_ahead
        network = to_mode(causal.network, Mode.STREAM_EXTERNAL_STATE_INFERENCE, None)
    else:
        network = acoustic.model
    weights = {name: np.asarray(variable) for name, variable in weight_variables(acoustic.model).items()}
    model = _converted(network, weights)
    if not streams:
        model = _with_integer_products(model, weights)
    _store_in_bytes(model.graph, weights)
    metadata[WEIGHTS] = "\n".join(weights)
    onnx.helper.set_model_props(model, {key: str(value) for key, value in metadata.items()})
    return model


def packed_text_network(network: keras.Model) -> onnx.ModelProto:
    """A network over text in ONNX: inputs (B, L) int32, ``syllables`` or others → ``logits`` (B, L, K)."""
    weights = {name: np.asarray(variable) for name, variable in weight_variables(network).items()}
    model = _with_integer_products(_converted(network, weights), weights)
    _store_in_bytes(model.graph, weights)
    return model


def _converted(network: keras.Model, weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """The network in float32, with the weights as initialisers that have the names of the variables."""
    names = {variable.path: _original(variable.path, weights) for variable in network.variables}
    numbered = {name: f"weight_{number}" for number, name in enumerate(weights)}

    def call(inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        def values(variables: Sequence[keras.Variable]) -> list[tf.Tensor]:
            own = (names[variable.path] for variable in variables)
            return [
                inputs[numbered[name]] if name else variable.value
                for name, variable in zip(own, variables, strict=True)
            ]

        trained, fixed = values(network.trainable_variables), values(network.non_trainable_variables)
        tensors = {name: inputs[_renamed(name)] for name in network.input}
        found, _ = network.stateless_call(trained, fixed, tensors, training=False)
        found = found if isinstance(found, Mapping) else {"output": found}
        return {_renamed(name): tf.identity(value) for name, value in found.items()}

    signature = {
        _renamed(name): tf.TensorSpec(tensor.shape, tensor.dtype, name=_renamed(name))
        for name, tensor in network.input.items()
    }
    signature |= {
        number: tf.TensorSpec(weights[name].shape, name=number) for name, number in numbered.items()
    }
    states = [name for name in signature if name.startswith(STATE_PREFIX)]
    function = tf.function(call, input_signature=[signature], autograph=False)
    model = convert_function(function, signature, [LOGITS, *(name + NEXT_SUFFIX for name in states)])
    rename_tensors(model.graph, {number: name for name, number in numbered.items()})
    inputs = [tensor for tensor in model.graph.input if tensor.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    used = {name for node in model.graph.node for name in node.input}
    if unused := weights.keys() - used:
        raise BundleError(
            f"the conversion lost weights: {', '.join(sorted(unused)[:4])}", where=f"model '{network.name}'"
        )
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(values, name) for name, values in weights.items()
    )
    return model


def _renamed(name: str) -> str:
    """The name in the file of an input or output of a network or of its stream."""
    return {"input": FEATURES, "output": LOGITS}.get(name, name)


def _original(path: str, weights: Collection[str]) -> str | None:
    """The path in the trained model of a variable of its stream, in which layers may lie in others."""
    return next((name for name in weights if path == name or path.endswith(f"/{name}")), None)


def _with_integer_products(model: onnx.ModelProto, weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """The model with its large products in int8; the range of the inputs is that of each call."""
    products = {
        node.name: node.input[1]
        for node in model.graph.node
        if node.op_type in ("MatMul", "Gemm") and node.input[1] in weights
    }
    large = [name for name, weight in products.items() if weights[weight].size >= _SMALLEST_PRODUCT]
    if not large:
        return model
    with tempfile.TemporaryDirectory() as folder, quiet_converters():
        plain, converted = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, plain)
        quantize_dynamic(
            plain, converted, per_channel=True, weight_type=QuantType.QInt8, nodes_to_quantize=large
        )
        return onnx.load(converted)


def _store_in_bytes(graph: onnx.GraphProto, names: Collection[str]) -> None:
    """Store the large weights that are still float32 in int8; they are computed with in float32.

    ONNX Runtime restores them once, when it opens the file. It would not do that with DequantizeLinear.
    """
    for tensor in [tensor for tensor in graph.initializer if tensor.name in names]:
        values = onnx.numpy_helper.to_array(tensor)
        if values.ndim < 2 or values.size < _SMALLEST:
            continue
        name, restored = tensor.name, f"{tensor.name}_restored"
        scales = _scales(values)
        arrays = {name + QUANTISED: np.round(values / scales).astype(np.int8), name + SCALE: scales}
        graph.initializer.remove(tensor)
        graph.initializer.extend(onnx.numpy_helper.from_array(*pair[::-1]) for pair in arrays.items())
        cast = onnx.helper.make_node("Cast", [name + QUANTISED], [restored], to=onnx.TensorProto.FLOAT)
        graph.node.insert(0, onnx.helper.make_node("Mul", [restored, name + SCALE], [name]))
        graph.node.insert(0, cast)


def _scales(values: np.ndarray) -> np.ndarray:
    """A scale for each output channel, or input channel of a depthwise kernel (…, channels, 1)."""
    kept = (-2, -1) if values.shape[-1] == 1 else (-1,)
    others = tuple(axis for axis in range(values.ndim) if axis - values.ndim not in kept)
    highest = np.abs(values).max(axis=others, keepdims=len(kept) > 1)
    return np.maximum(highest / np.float32(_HIGHEST), np.finfo(np.float32).tiny)
