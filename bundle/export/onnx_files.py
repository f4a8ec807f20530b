"""A model in one mode in; ``.onnx`` files, one a precision, out."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import tf2onnx
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

from bundle.export.quantisation import made_by
from bundle.export.stages import Stage
from bundle.runtimes.artefacts import NEXT_SUFFIX, OUTPUT
from bundle.runtimes.onnx import MODE, OPERATIONS
from bundle.variants import Precision

OPSET = 17
_LARGEST_HALF = float(np.finfo(np.float16).max)


def onnx_model(stage: Stage) -> onnx.ModelProto:
    """Convert one mode in float32, with our names of inputs and outputs. Any batch, for clips."""
    signature = stage.signature(None)
    with _quiet():
        model, _ = tf2onnx.convert.from_function(
            stage.function(None), input_signature=[signature], opset=OPSET, large_model=False,
            custom_op_handlers={"Erfc": (_complementary_error_function, [])},
        )  # fmt: skip
    names = [OUTPUT, *(name + NEXT_SUFFIX for name in stage.state_names)]
    # A dictionary's outputs come sorted by their names.
    renamed = dict(zip([output.name for output in model.graph.output], sorted(names), strict=True))
    _rename(model.graph, renamed)
    onnx.helper.set_model_props(model, {MODE: str(stage.state)})
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
        model: in float32.
        precision: wanted.
        path: of the new file.
        samples: typical calls, for int8: values of all inputs by name.
        float_layers: names of layers that int8 leaves in float.
    """
    left = [node.name for node in model.graph.node if made_by(node.name, float_layers)]
    with tempfile.TemporaryDirectory() as folder, _quiet():
        plain, made = Path(folder) / "float.onnx", Path(folder) / "made.onnx"
        onnx.save(model, plain)
        if precision is Precision.DYNAMIC:
            quantize_dynamic(plain, made, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        elif precision is Precision.INT8:
            settings = {"per_channel": True, "reduce_range": True, "nodes_to_exclude": left}
            quantize_static(plain, made, _Reader(samples), **settings)
        elif precision is Precision.FLOAT16:
            onnx.save(_with_half_weights(onnx.load(plain)), made)
        finished = onnx.load(made if precision is not Precision.FLOAT else plain)
    properties = {MODE: next(one.value for one in model.metadata_props if one.key == MODE)}
    onnx.helper.set_model_props(finished, {**properties, OPERATIONS: str(_operations(finished.graph))})
    onnx.save(finished, path)


def _complementary_error_function(
    context: tf2onnx.graph.Graph, node: tf2onnx.graph.Node, name: str, arguments: Sequence
) -> None:
    """Write erfc(x), which ``gelu`` uses and ONNX lacks, as 1 - erf(x)."""
    shapes, types = node.output_shapes, node.output_dtypes
    context.remove_node(name)
    one = context.make_const(tf2onnx.utils.make_name(name), np.float32(1))
    erf = context.make_node("Erf", node.input, shapes=shapes, dtypes=types)
    context.make_node(
        "Sub", [one.output[0], erf.output[0]], outputs=node.output, name=name, shapes=shapes, dtypes=types
    )


def _with_half_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Keep weights in float16 and compute in float32, as LiteRT's float16 does.

    Arithmetic in float16 would go wrong where tf2onnx computes positions in floating point: the ends of
    slices overflow, and above 2,048 frames the masks of padding are off.
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


class _Reader(CalibrationDataReader):
    """Feeds the calibration."""

    def __init__(self, samples: Iterable[dict[str, np.ndarray]]):
        self._samples: Iterator[dict[str, np.ndarray]] = iter(samples)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next call's inputs, or nothing."""
        return next(self._samples, None)


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    for output in graph.output:
        output.name = names[output.name]
    for node in graph.node:
        for values in (node.input, node.output):
            for index, value in enumerate(values):
                values[index] = names.get(value, value)


def _operations(graph: onnx.GraphProto) -> int:
    """Nodes of a graph and of the loops in it."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return len(graph.node) + sum(_operations(one) for one in inner)


class _quiet:
    """Holds back what the converters log and warn of: our own check of the file says whether it is right."""

    def __enter__(self):
        self._warnings = warnings.catch_warnings(action="ignore")
        self._warnings.__enter__()
        self._disabled = logging.root.manager.disable
        logging.disable(logging.WARNING)

    def __exit__(self, *error: object):
        logging.disable(self._disabled)
        self._warnings.__exit__(*error)
