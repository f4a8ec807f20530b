"""Converts a SavedModel to the bytes of a ``.tflite`` file in the requested precision.

The conversion starts from a SavedModel because the converter's ``from_concrete_functions`` reports success
and writes a file without the weights. External states are calibrated by name, because by position the
converter feeds them in the wrong order.
"""

import re
import warnings
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from tensorflow.lite.python.convert import mlir_quantize

from bundle.export.quantisation import made_by
from bundle.runtimes.litert import operation_names
from bundle.variants import Precision, UnavailableError
from streaming.conversion.modes import Mode
from utils.backend.quiet import hide_native_messages
from utils.errors import BundleError, UserError

_MOVING = frozenset(
    {"CONCATENATION", "EXPAND_DIMS", "PACK", "PAD", "RESHAPE", "SLICE", "SPLIT", "SQUEEZE", "STRIDED_SLICE",
     "TRANSPOSE", "UNPACK"}
)  # fmt: skip
"""Operations that move values without computing."""
Samples = Iterable[dict[str, np.ndarray]]
"""Inputs by name, one dictionary per call."""


def litert_file(
    saved_model: Path,
    state: Mode,
    precision: Precision,
    samples: Callable[[], Samples],
    float_layers: Collection[str] = (),
    allow_flex: bool = False,
) -> bytes:
    """Convert a model to one precision.

    Args:
        saved_model: the folder, with a batch of 1.
        state: mode of the model, and name of its signature.
        precision: precision of the file.
        samples: returns typical inputs for the calibration of int8.
        float_layers: names of layers that int8 leaves in float; inputs, states and outputs are then float,
            too.
        allow_flex: allow TensorFlow operations, which LiteRT alone can't run.

    Raises:
        UnavailableError: the model has a loop, and the precision is int8.
        BundleError: the model needs TensorFlow operations, which are named, or the converter fails.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model), signature_keys=[str(state)])
    converter.experimental_enable_resource_variables = True
    _set_precision(converter, precision, lambda: ((str(state), sample) for sample in samples()))
    if allow_flex:
        builtin = converter.target_spec.supported_ops
        converter.target_spec.supported_ops = [*builtin, tf.lite.OpsSet.SELECT_TF_OPS]
    if precision is Precision.INT8:
        _refuse_loops(saved_model, state)
    try:
        # The calibration opens an interpreter that warns about its own removal.
        with hide_native_messages(), warnings.catch_warnings(action="ignore"):
            content = converter.convert()
            if precision is Precision.INT8:
                content = _quantised(content, float_layers)
    except UserError:
        raise  # of the samples
    except Exception as error:  # the converter's own class isn't public
        raise _explain(error, f"litert {state} {precision}") from error
    return content


def _set_precision(
    converter: tf.lite.TFLiteConverter,
    precision: Precision,
    samples: Callable[[], Iterable[tuple[str, dict[str, np.ndarray]]]],
) -> None:
    if precision is not Precision.FLOAT:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision is Precision.FLOAT16:
        converter.target_spec.supported_types = [tf.float16]
    if precision is Precision.INT8:
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter._experimental_calibrate_only = True  # see _quantised


def _quantised(calibrated: bytes, float_layers: Collection[str]) -> bytes:
    """Second step of the int8 conversion: the converter's own can't leave operations in float."""
    left = left_in_float(calibrated, float_layers) if float_layers else None
    edge = tf.float32 if float_layers else tf.int8
    # Internal state is int8, too: otherwise each read and write would convert it, with the same outputs.
    return mlir_quantize(
        calibrated,
        input_data_type=edge,
        output_data_type=edge,
        denylisted_nodes=left,
        enable_variable_quantization=not float_layers,
    )


def left_in_float(content: bytes, layers: Collection[str]) -> list[str]:
    """Names of the operations (of their outputs) that belong to these layers.

    They include adjacent operations that only move values, which in 8 bits would round the values of the
    layers, such as the frames that a stream keeps between calls. The names of the file's outputs don't
    contain the layer; those of the weights that compute them do. An output that is computed with weights of
    another layer stays in 8 bits.
    """
    model, kinds, found = schema.ModelT.InitFromPackedBuf(content, 0), iter(operation_names(content)), []
    for graph in model.subgraphs:
        for part in (graph, *graph.operators):  # a variable's operations lack inputs or outputs: None here
            for name in ("inputs", "outputs"):
                setattr(part, name, [] if getattr(part, name) is None else getattr(part, name))
        moving: list[Any] = []
        chosen: list[Any] = []
        computed = {index for operator in graph.operators for index in operator.outputs} | set(graph.inputs)
        for operator, kind in zip(graph.operators, kinds, strict=False):
            names = [graph.tensors[index].name.decode() for index in operator.outputs]
            tensors = computed.intersection([*operator.inputs, *operator.outputs])  # without constants
            constants = [graph.tensors[index].name.decode() for index in {*operator.inputs} - computed - {-1}]
            is_output = not any("/" in name for name in names)
            own = any(made_by(name, layers) for name in (constants if is_output else names))
            group = chosen if own else moving
            if group is chosen or kind in _MOVING or (is_output and not constants):
                group.append((names, tensors))
        reached = set().union(*(tensors for _, tensors in chosen))
        while adjacent := [operation for operation in moving if not reached.isdisjoint(operation[1])]:
            moving = [operation for operation in moving if reached.isdisjoint(operation[1])]
            chosen, reached = [*chosen, *adjacent], reached.union(*(tensors for _, tensors in adjacent))
        found += [name for names, _ in chosen for name in names]
    return found


def _refuse_loops(saved_model: Path, state: Mode) -> None:
    """Raise UnavailableError if the graph has a loop, whose calibration would crash the process."""
    if "WHILE" in operation_names(litert_file(saved_model, state, Precision.FLOAT, list)):
        raise UnavailableError(
            "the converter can't quantise a loop: a recurrent layer over too many frames, or a custom one",
            where=f"litert {state} {Precision.INT8}",
            hint="use precision dynamic; int8 streams, if the model has streams, take one frame at a time",
        )


def _explain(error: Exception, artefact: str) -> BundleError:
    text = str(error)
    if found := set(re.findall(r"'tf\.(\w+)' op is neither a custom op nor a flex op", text)):
        return BundleError(
            f"LiteRT has no operation for {', '.join(sorted(found))}",
            where=artefact,
            hint="change the layers that use them, or --allow-flex: the device then needs TensorFlow's "
            "operations too, and the file is not checked",
        )
    first = next((line for line in text.splitlines() if "error" in line.lower()), text)[:400]
    return BundleError(
        f"the converter fails: {first}", where=artefact, hint="export another precision or format"
    )
