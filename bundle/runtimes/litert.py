"""Runs a ``.tflite`` file with ai-edge-litert; no other package than that and NumPy is needed.

The name of a file's only signature is its mode (``non_stream``, ``stream_internal``, ``stream_external``).
Internal state is reset by opening a new interpreter (0.5 ms), because the runtime's own
``reset_all_variables`` has no effect (measured: outputs differ by 2 after it).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from bundle.runtimes.artefacts import INPUT, LENGTHS, NEXT_SUFFIX, OUTPUT, STATE_PREFIX, ArtefactInfo, Backend
from streaming.conversion.modes import Mode
from utils.errors import BundleError

FLEX = "flex"
"""Key of what a bundle says about an artefact: whether it needs operations of TensorFlow."""
NOT_RUNNABLE = "it needs TensorFlow's operations, which no installed runtime has"
_BUILTIN_NAMES = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}


def open_backend(path: Path, threads: int) -> LiteRTBackend:
    """Open a file; see :func:`bundle.runtimes.artefacts.open_artefact`.

    Raises:
        BundleError: it is damaged or of another version.
    """
    try:
        return LiteRTBackend(path.read_bytes(), threads)
    except (ValueError, RuntimeError) as error:
        raise BundleError(
            f"the .tflite file is damaged or of another version ({error})",
            where=path,
            hint="export it again, or copy it again",
        ) from error


class LiteRTBackend(Backend):
    """One interpreter, and the tensors of its only signature."""

    def __init__(self, content: bytes, threads: int):
        self._content, self._threads = content, threads
        self._open()
        names = operation_names(content)
        inputs = self._inputs
        self.info = ArtefactInfo(
            state=Mode(self._signature()),
            input_shape=tuple(int(n) if n > 0 else None for n in inputs[INPUT]["shape_signature"]),
            states={name: tuple(map(int, inputs[name]["shape"])) for name in self._state_names},
            operations=len(names),
            takes_lengths=LENGTHS in inputs,
            takes_tokens=inputs[INPUT]["dtype"] == np.int32,
        )

    def _open(self) -> None:
        self._interpreter = Interpreter(model_content=self._content, num_threads=self._threads)
        self._interpreter.allocate_tensors()
        runner = self._interpreter.get_signature_runner(self._signature())
        self._inputs, self._outputs = runner.get_input_details(), runner.get_output_details()
        self._state_names = sorted(name for name in self._inputs if name.startswith(STATE_PREFIX))

    def _signature(self) -> str:
        names = list(self._interpreter.get_signature_list())
        if len(names) != 1 or names[0] not in tuple(Mode):
            raise ValueError(f"its signatures are {', '.join(names) or 'none'}, not one of {', '.join(Mode)}")
        return names[0]

    def call(
        self, inputs: Mapping[str, np.ndarray], states: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """See :class:`bundle.runtimes.artefacts.Backend`. States keep the type of the file, unrounded."""
        interpreter, samples = self._interpreter, inputs[INPUT]
        if tuple(self._inputs[INPUT]["shape"]) != samples.shape:
            interpreter.resize_tensor_input(self._inputs[INPUT]["index"], samples.shape)
            interpreter.allocate_tensors()
            self._inputs[INPUT]["shape"] = np.array(samples.shape)
        for name, value in inputs.items():
            interpreter.set_tensor(self._inputs[name]["index"], quantised(value, self._inputs[name]))
        for name, value in states.items():
            interpreter.set_tensor(self._inputs[name]["index"], value)
        interpreter.invoke()
        output = self._outputs[OUTPUT]
        return dequantised(interpreter.get_tensor(output["index"]), output), {
            name: self._next_state(name) for name in states
        }

    def _next_state(self, name: str) -> np.ndarray:
        before, after = self._inputs[name], self._outputs[name + NEXT_SUFFIX]
        value = self._interpreter.get_tensor(after["index"])
        if before["quantization"] == after["quantization"]:
            return value
        return quantised(dequantised(value, after), before)

    def initial_states(self) -> dict[str, np.ndarray]:
        """Zeros in the type of the file: a quantised zero isn't 0."""
        return {
            name: quantised(np.zeros(self._inputs[name]["shape"], np.float32), self._inputs[name])
            for name in self._state_names
        }

    def reset(self) -> None:
        """Open a new interpreter if the state is internal."""
        if self.info.state is Mode.STREAM_INTERNAL_STATE_INFERENCE:
            self._open()


def quantised(values: np.ndarray, details: Mapping[str, Any]) -> np.ndarray:
    """float32 → the tensor's type: round(value / scale) + zero point, within the type's range."""
    scale, zero_point = details["quantization"]
    if not scale:
        return values.astype(details["dtype"])
    limits = np.iinfo(details["dtype"])
    return np.clip(np.round(values / scale) + zero_point, limits.min, limits.max).astype(details["dtype"])


def dequantised(values: np.ndarray, details: Mapping[str, Any]) -> np.ndarray:
    """The tensor's type → float32."""
    scale, zero_point = details["quantization"]
    return (
        (values.astype(np.float32) - zero_point) * np.float32(scale) if scale else values.astype(np.float32)
    )


def operation_names(content: bytes) -> list[str]:
    """Names of the operations of all subgraphs of a file: ``CONV_2D``."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    names = [_operation_name(code) for code in model.operatorCodes]
    return [names[operator.opcodeIndex] for graph in model.subgraphs for operator in graph.operators]


def _operation_name(code: schema.OperatorCodeT) -> str:
    if code.customCode:
        return code.customCode.decode()
    return _BUILTIN_NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]


def needs_flex(content: bytes) -> bool:
    """Whether a file has operations of TensorFlow, which LiteRT alone can't run."""
    return any(name.startswith("Flex") for name in operation_names(content))
