"""Converts a model with tf2onnx and writes it as a ``.onnx`` file in the requested precision."""

import logging
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

from bundle.export.quantisation import made_by
from bundle.export.stages import ModelInMode
from bundle.runtimes.artefacts import NEXT_SUFFIX, OUTPUT
from bundle.runtimes.onnx import MODE, OPERATIONS
from bundle.variants import Precision

OPSET = 17  # version of the ONNX operators
_LARGEST_HALF = float(np.finfo(np.float16).max)  # arrays with larger values stay float32


def onnx_model(stage: ModelInMode) -> onnx.ModelProto:
    """Convert a model to float32 ONNX, with the names of a bundle's tensors; clips have any batch size."""
    names = [OUTPUT, *(name + NEXT_SUFFIX for name in stage.state_names)]
    model = convert_function(stage.function(None), stage.signature(None), names)
    onnx.helper.set_model_props(model, {MODE: str(stage.state)})
    return model


def convert_function(
    function: Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]],
    signature: Mapping[str, tf.TensorSpec],
    outputs: Collection[str],
) -> onnx.ModelProto:
    """Convert a TensorFlow function of tensors by name to float32 ONNX with these names of the outputs."""
    with quiet_converters():
        model, _ = tf2onnx.convert.from_function(
            function, input_signature=[signature], opset=OPSET, large_model=False,
            custom_op_handlers={"Erfc": (_complementary_error_function, [])},
        )  # fmt: skip
    # The outputs of a dictionary are sorted by name.
    rename_tensors(
        model.graph, dict(zip([output.name for output in model.graph.output], sorted(outputs), strict=True))
    )
    return model


def write_onnx(
    model: onnx.ModelProto,
    precision: Precision,
    path: Path,
    samples: Iterable[dict[str, np.ndarray]],
    float_layers: Collection[str] = (),
) -> None:
    """Write ``model`` in one precision; inputs, states and outputs stay float32 in all of them.

    Args:
        model: the converted model, in float32.
        precision: precision of the file.
        path: path of the new file.
        samples: typical inputs for the calibration of int8, by name, one dictionary per call.
        float_layers: names of layers that int8 leaves in float.
    """
    settings = {"per_channel": True, "reduce_range": True}
    # A transposition adds no noise, and its output is in float if its input is. If only its output were in
    # float and a loop read it, onnxruntime 1.32 would abort when it loads the file.
    computing = (node.name for node in model.graph.node if node.op_type != "Transpose")
    left = [name for name in computing if made_by(name, float_layers)]
    with tempfile.TemporaryDirectory() as folder, quiet_converters():
        plain, converted = Path(folder) / "float.onnx", Path(folder) / "converted.onnx"
        onnx.save(model, plain)
        if precision is Precision.DYNAMIC:
            quantize_dynamic(plain, converted, weight_type=QuantType.QInt8, **settings)
        elif precision is Precision.INT8:
            quantize_static(plain, converted, _CalibrationInputs(samples), nodes_to_exclude=left, **settings)
        elif precision is Precision.FLOAT16:
            onnx.save(_with_half_weights(onnx.load(plain)), converted)
        finished = onnx.load(converted if precision is not Precision.FLOAT else plain)
    properties = {MODE: next(item.value for item in model.metadata_props if item.key == MODE)}
    onnx.helper.set_model_props(finished, {**properties, OPERATIONS: str(_operations(finished.graph))})
    onnx.save(finished, path)


def _complementary_error_function(
    context: tf2onnx.graph.Graph, node: tf2onnx.graph.Node, name: str, arguments: Sequence
) -> None:
    """Convert erfc(x), which ``gelu`` uses and ONNX lacks, to 1 - erf(x)."""
    shapes, types = node.output_shapes, node.output_dtypes
    context.remove_node(name)
    unit = context.make_const(tf2onnx.utils.make_name(name), np.float32(1))
    erf = context.make_node("Erf", node.input, shapes=shapes, dtypes=types)
    context.make_node(
        "Sub", [unit.output[0], erf.output[0]], outputs=node.output, name=name, shapes=shapes, dtypes=types
    )


def _with_half_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Store weights in float16 and compute in float32, as LiteRT's float16 does.

    tf2onnx computes positions in floating point: with float16 arithmetic the ends of slices would overflow,
    and above 2,048 frames the masks of padding would be wrong.
    """
    graph = model.graph
    for tensor in list(graph.initializer):
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < 2 or np.abs(values).max() > _LARGEST_HALF:
            continue
        half = onnx.numpy_helper.from_array(values.astype(np.float16), f"{tensor.name}_half")
        graph.initializer.remove(tensor)
        graph.initializer.append(half)
        cast = onnx.helper.make_node("Cast", [half.name], [tensor.name], to=onnx.TensorProto.FLOAT)
        graph.node.insert(0, cast)
    return model


class _CalibrationInputs(CalibrationDataReader):
    """Inputs of the calibration."""

    def __init__(self, samples: Iterable[dict[str, np.ndarray]]):
        self._samples: Iterator[dict[str, np.ndarray]] = iter(samples)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The inputs of the next call, or None."""
        return next(self._samples, None)


def rename_tensors(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename tensors of a graph, its inputs and outputs among them, in place."""
    for tensor in (*graph.input, *graph.output):
        tensor.name = names.get(tensor.name, tensor.name)
    for node in graph.node:
        for values in (node.input, node.output):
            for index, value in enumerate(values):
                values[index] = names.get(value, value)


def _operations(graph: onnx.GraphProto) -> int:
    """Number of nodes of a graph, including those of its loops."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return len(graph.node) + sum(map(_operations, inner))


@contextmanager
def quiet_converters() -> Iterator[None]:
    """Suppress logs and warnings of the converters: the file is checked afterwards."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(level)
