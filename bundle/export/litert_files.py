"""A SavedModel of one mode in; the bytes of ``.tflite`` files, one a precision, out.

Conversion goes through a SavedModel for a reason: the converter's ``from_concrete_functions`` reports success
and writes a file without the weights. External states are calibrated by name: by position the converter
feeds them in another order than the model has them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import numpy as np
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from tensorflow.lite.python.convert import mlir_quantize

from bundle.export.quantisation import made_by
from bundle.runtimes.litert import flex_operations, operation_names
from bundle.variants import Precision, State
from utils.backend.quiet import hide_native_messages
from utils.errors import BundleError

_MOVING = frozenset(
    {"CONCATENATION", "EXPAND_DIMS", "PACK", "PAD", "RESHAPE", "SLICE", "SPLIT", "SQUEEZE", "STRIDED_SLICE",
     "TRANSPOSE", "UNPACK"}
)  # fmt: skip
"""Operations that only move values."""
Samples = Iterable[dict[str, np.ndarray]]
"""Inputs by name, one dictionary a call."""


def litert_file(
    saved_model: Path,
    state: State,
    precision: Precision,
    samples: Callable[[], Samples],
    allow_flex: bool = False,
    float_layers: Collection[str] = (),
) -> bytes:
    """Convert one mode to one precision.

    Args:
        saved_model: the folder, with a batch of 1.
        state: its mode, and the name of its signature.
        precision: wanted.
        samples: gives typical calls, for int8: values of all inputs by name.
        allow_flex: let operations in that LiteRT alone can't run.
        float_layers: names of layers that int8 leaves in float, with inputs, states and outputs.

    Raises:
        BundleError: it needs TensorFlow's operations, which are named, or the converter fails.
    """
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model), signature_keys=[str(state)])
    converter.experimental_enable_resource_variables = True
    _set_precision(converter, precision, lambda: ((str(state), sample) for sample in samples()))
    if allow_flex:
        converter.target_spec.supported_ops = [
            *converter.target_spec.supported_ops,
            tf.lite.OpsSet.SELECT_TF_OPS,
        ]
    if precision is Precision.INT8:
        _refuse_loops(saved_model, state)
    try:
        # The calibration opens an interpreter that warns of its own end.
        with hide_native_messages(), warnings.catch_warnings(action="ignore"):
            content = converter.convert()
            if precision is Precision.INT8:
                content = _quantised(content, float_layers)
    except Exception as error:  # the converter's own class isn't public
        raise _explained(error, f"litert {state} {precision}") from error
    if (flex := flex_operations(content)) and not allow_flex:
        raise _needs_flex(flex, f"litert {state} {precision}")
    return content


def _set_precision(converter: tf.lite.TFLiteConverter, precision: Precision, samples: Callable) -> None:
    if precision is not Precision.FLOAT:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision is Precision.FLOAT16:
        converter.target_spec.supported_types = [tf.float16]
    if precision is Precision.INT8:
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter._experimental_calibrate_only = True  # see _quantised


def _quantised(calibrated: bytes, float_layers: Collection[str]) -> bytes:
    """The second half of the conversion to int8; the converter's own can't leave operations in float."""
    left = left_in_float(calibrated, float_layers) if float_layers else None
    edge = tf.float32 if float_layers else tf.int8
    # State inside is int8 too: without it each read and write converts, with the same outputs.
    return mlir_quantize(
        calibrated,
        input_data_type=edge,
        output_data_type=edge,
        denylisted_nodes=left,
        enable_variable_quantization=not float_layers,
    )


def left_in_float(content: bytes, layers: Collection[str]) -> list[str]:
    """Names of a file's operations (of their outputs) that belong to these layers.

    Operations beside them that only move values are among them: in 8 bits they would round what the layers
    keep, such as the frames that a stream carries from call to call. The names of the file's outputs tell no
    layer; those of the weights that make them do.
    """
    model, kinds, found = schema.ModelT.InitFromPackedBuf(content, 0), iter(operation_names(content)), []
    for graph in model.subgraphs:
        moving, chosen = [], []
        made = {index for operator in graph.operators for index in operator.outputs} | set(graph.inputs)
        for operator, kind in zip(graph.operators, kinds, strict=False):
            names = [graph.tensors[index].name.decode() for index in operator.outputs]
            tensors = made.intersection([*operator.inputs, *operator.outputs])  # without the constants
            constants = [graph.tensors[index].name.decode() for index in {*operator.inputs} - made - {-1}]
            nameless = not any("/" in name for name in names)
            group = (
                chosen
                if any(made_by(name, layers) for name in (constants if nameless else names))
                else moving
            )
            if group is chosen or kind in _MOVING or nameless:
                group.append((names, tensors))
        reached = set().union(*(tensors for _, tensors in chosen))
        while beside := [one for one in moving if not reached.isdisjoint(one[1])]:
            moving = [one for one in moving if reached.isdisjoint(one[1])]
            chosen, reached = [*chosen, *beside], reached.union(*(tensors for _, tensors in beside))
        found += [name for names, _ in chosen for name in names]
    return found


def _refuse_loops(saved_model: Path, state: State) -> None:
    """Raise BundleError if there is a loop in the graph: to calibrate one ends the process (a crash)."""
    if "WHILE" in operation_names(litert_file(saved_model, state, Precision.FLOAT, list, allow_flex=True)):
        what = (
            "the converter can't quantise a loop: a recurrent layer over too many frames, or of its own kind"
        )
        hint = "precision dynamic, or a stream, which takes one frame at a time"
        raise BundleError(what, where=f"litert {state} {Precision.INT8}", hint=hint)


def _explained(error: Exception, what: str) -> BundleError:
    text = str(error)
    if found := set(re.findall(r"'tf\.(\w+)' op is neither a custom op nor a flex op", text)):
        return _needs_flex(found, what)
    first = next((line for line in text.splitlines() if "error" in line.lower()), text)[:400]
    return BundleError(f"the converter fails: {first}", where=what, hint="export another precision or format")


def _needs_flex(operations: Iterable[str], what: str) -> BundleError:
    names = ", ".join(sorted({name.strip().removeprefix("Flex") for name in operations}))
    hint = (
        "change the layers that use them, or --allow-flex: the device then needs TensorFlow's operations too"
    )
    return BundleError(f"LiteRT has no operation for {names}", where=what, hint=hint)
