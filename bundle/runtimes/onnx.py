"""Runs a ``.onnx`` file with onnxruntime; no other package than that and NumPy is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bundle.runtimes.artefacts import INPUT, LENGTHS, NEXT_SUFFIX, OUTPUT, STATE_PREFIX, ArtefactInfo, Backend
from streaming.conversion.modes import Mode
from utils.backend.onnx_session import load_onnxruntime
from utils.errors import BundleError

if TYPE_CHECKING:
    import onnxruntime

MODE, OPERATIONS = "mode", "operations"
"""Keys of a file's metadata: mode, and number of operations before onnxruntime fuses them."""


def open_backend(path: Path, threads: int) -> OnnxBackend:
    """Open a file; see :func:`bundle.runtimes.artefacts.open_artefact`.

    Raises:
        BundleError: onnxruntime can't use it.
    """
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return OnnxBackend(session)
    except Exception as error:  # onnxruntime's exceptions have no other common class
        raise BundleError(
            f"the .onnx file can't be used ({error})", where=path, hint="export it again, or copy it again"
        ) from error


class OnnxBackend(Backend):
    """One session; an ONNX file has no internal state."""

    def __init__(self, session: onnxruntime.InferenceSession):
        self._session = session
        inputs = {argument.name: argument.shape for argument in session.get_inputs()}
        types = {argument.name: argument.type for argument in session.get_inputs()}
        metadata = session.get_modelmeta().custom_metadata_map
        self.info = ArtefactInfo(
            state=Mode(metadata[MODE]),
            input_shape=tuple(size if isinstance(size, int) else None for size in inputs[INPUT]),
            states={name: tuple(shape) for name, shape in inputs.items() if name.startswith(STATE_PREFIX)},
            operations=int(metadata[OPERATIONS]),
            takes_lengths=LENGTHS in inputs,
            takes_tokens=types[INPUT] == "tensor(int32)",
        )
        self._names = [OUTPUT, *(name + NEXT_SUFFIX for name in self.info.states)]

    def call(
        self, inputs: Mapping[str, np.ndarray], states: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """See :class:`bundle.runtimes.artefacts.Backend`."""
        output, *after = self._session.run(self._names, {**inputs, **states})
        return output, dict(zip(states, after, strict=True))
