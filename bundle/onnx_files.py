"""A model in one mode in; ``.onnx`` files, one a precision, out."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
import tf2onnx
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16

from bundle.runtime_onnx import MODE, OPERATIONS
from bundle.runtimes import NEXT_SUFFIX, OUTPUT
from bundle.stages import Stage
from bundle.variants import Precision

OPSET = 17


def onnx_model(stage: Stage) -> onnx.ModelProto:
    """Convert one mode in float32, with our names of inputs and outputs. Any batch, for clips."""
    signature = stage.signature(None)
    with _quiet():
        model, _ = tf2onnx.convert.from_function(
            stage.function(None), input_signature=[signature], opset=OPSET, large_model=False
        )
    names = [OUTPUT, *(name + NEXT_SUFFIX for name in stage.state_names)]
    # A dictionary's outputs come sorted by their names.
    renamed = dict(zip([output.name for output in model.graph.output], sorted(names), strict=True))
    _rename(model.graph, renamed)
    onnx.helper.set_model_props(model, {MODE: str(stage.state)})
    return model


def write_onnx(
    model: onnx.ModelProto, precision: Precision, path: Path, samples: Iterable[dict[str, np.ndarray]]
) -> None:
    """Write ``model`` in one precision; inputs, states and outputs stay float32 in all of them.

    Args:
        model: in float32.
        precision: wanted.
        path: of the new file.
        samples: typical calls, for int8: values of all inputs by name.
    """
    with tempfile.TemporaryDirectory() as folder, _quiet():
        plain, made = Path(folder) / "float.onnx", Path(folder) / "made.onnx"
        onnx.save(model, plain)
        if precision is Precision.DYNAMIC:
            quantize_dynamic(plain, made, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        elif precision is Precision.INT8:
            quantize_static(plain, made, _Reader(samples), per_channel=True, reduce_range=True)
        elif precision is Precision.FLOAT16:
            onnx.save(convert_float_to_float16(onnx.load(plain), keep_io_types=True), made)
        finished = onnx.load(made if precision is not Precision.FLOAT else plain)
    properties = {MODE: next(one.value for one in model.metadata_props if one.key == MODE)}
    onnx.helper.set_model_props(finished, {**properties, OPERATIONS: str(_operations(finished.graph))})
    onnx.save(finished, path)


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
