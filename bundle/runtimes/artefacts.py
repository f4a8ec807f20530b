"""Opens an exported model file (artefact) and runs it on clips or on the chunks of a stream.

One interface for four formats; ``litert``, ``onnx`` and ``tensorflow`` implement it. Of other packages, a
``.tflite`` file needs only ai-edge-litert and NumPy, a ``.onnx`` file only onnxruntime and NumPy; TensorFlow
is loaded for its own formats.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bundle.variants import Format
from streaming.conversion.modes import Mode
from utils.errors import BundleError, require

INPUT, LENGTHS, OUTPUT = "input", "lengths", "output"
STATE_PREFIX, NEXT_SUFFIX = "state_", "_next"
"""An external state is the input ``state_00_conv``; the output ``state_00_conv_next`` is its next value."""

# Loaded when needed: a device has one of these runtimes, not all.
_BACKENDS = {
    Format.SAVED_MODEL: "bundle.runtimes.tensorflow",
    Format.LITERT: "bundle.runtimes.litert",
    Format.ONNX: "bundle.runtimes.onnx",
    Format.FROZEN_GRAPH: "bundle.runtimes.tensorflow",
}


@dataclass(frozen=True)
class ArtefactInfo:
    """Properties of a file.

    Attributes:
        state: what a call takes: a whole clip, or a chunk of a stream, whose state the model keeps (internal)
            or the caller passes from call to call (external).
        input_shape: shape of ``input``; None for any size.
        states: name → shape of each external state.
        operations: number of operations per call, according to the file's graph.
        takes_lengths: whether ``lengths``, the valid frames of each utterance, is an input too.
        takes_tokens: whether ``input`` is int32 token ids; otherwise it is float32.
    """

    state: Mode
    input_shape: tuple[Any, ...]
    states: Mapping[str, tuple[int, ...]]
    operations: int
    takes_lengths: bool = False
    takes_tokens: bool = False


class Backend:
    """Base class of a runtime with an opened file.

    Its states may be quantised; they are passed back unchanged.

    Attributes:
        info: properties of the file.
    """

    info: ArtefactInfo

    def call(
        self, inputs: Mapping[str, np.ndarray], states: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Inputs (``input``, ``lengths``) and states by name → float32 output and the next states."""
        raise NotImplementedError

    def initial_states(self) -> dict[str, np.ndarray]:
        """The external states at the start of a stream: zeros."""
        return {name: np.zeros(shape, np.float32) for name, shape in self.info.states.items()}

    def reset(self) -> None:
        """Reset the internal state, if there is one."""


class Artefact:
    """An opened artefact: use :meth:`run` for clips, :meth:`step` and :meth:`reset` for streams."""

    def __init__(self, backend: Backend, path: Path):
        self.backend, self.path = backend, path
        self.info = backend.info
        self._states = backend.initial_states()

    @property
    def mode(self) -> Mode:
        """Whole clips, or a stream with internal or external state."""
        return self.info.state

    def run(self, batch: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        """Clips, or utterances padded to one length → logits.

        Args:
            batch: (N, frames, values) or (N, samples) float32, or (N, tokens) int32.
            lengths: (N,) int32, the valid frames of each utterance; None: all. Ignored by a model that takes
                no lengths.

        Raises:
            BundleError: the artefact is for streams.
        """
        self._check(batch, streams=False)
        inputs = {INPUT: np.asarray(batch, np.int32 if self.info.takes_tokens else np.float32)}
        if self.info.takes_lengths:
            whole = np.full(len(batch), batch.shape[1], np.int32)
            inputs[LENGTHS] = whole if lengths is None else np.asarray(lengths, np.int32)
        if self.info.input_shape[0] is None:
            return self.backend.call(inputs, {})[0]
        rows = [
            self.backend.call({name: values[row : row + 1] for name, values in inputs.items()}, {})[0]
            for row in range(len(batch))
        ]
        return np.concatenate(rows)

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """The next chunk of the stream → the logits of the window that ends with it.

        Args:
            chunk: (frames per call, values) float32, or (samples per call,), with or without a leading axis
                of 1.

        Raises:
            BundleError: the artefact is for clips, or the chunk has the wrong size.
        """
        chunk = np.asarray(chunk, np.float32)
        if chunk.ndim == len(self.info.input_shape) - 1:
            chunk = chunk[None]
        self._check(chunk, streams=True)
        output, self._states = self.backend.call({INPUT: chunk}, self._states)
        return output

    def reset(self) -> None:
        """Start a new stream with the next chunk."""
        self.backend.reset()
        self._states = self.backend.initial_states()

    def _check(self, values: np.ndarray, streams: bool) -> None:
        if (self.mode is not Mode.NON_STREAM_INFERENCE) != streams:
            kind, use = ("clips", "run") if streams else ("streams", "step")
            raise BundleError(f"an artefact for {kind}", where=self.path, hint=f"use .{use}()")
        expected, shape = self.info.input_shape[1:], values.shape[1:]
        if len(expected) == len(shape) and all(
            size in (None, given) for size, given in zip(expected, shape, strict=True)
        ):
            return
        raise BundleError(
            f"the model takes {_text(expected)} per {'call' if streams else 'clip'}, not {_text(shape)}",
            where=self.path,
            hint="feed samples" if len(expected) == 1 else "feed the features of the bundle's settings",
        )


def _text(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join(str(size or "any") for size in shape) + ")"


def format_of(path: Path) -> Format:
    """The format of a file or folder, by its suffix.

    Raises:
        BundleError: it doesn't exist, or has none of the formats.
    """
    suffixes = {".tflite": Format.LITERT, ".onnx": Format.ONNX, ".pb": Format.FROZEN_GRAPH}
    require(path.exists(), "no such artefact", where=path, hint="export.py writes them", error=BundleError)
    if path.is_dir() and (path / "saved_model.pb").is_file():
        return Format.SAVED_MODEL
    if path.suffix not in suffixes or path.is_dir():
        raise BundleError(
            "not an artefact of a known format",
            where=path,
            hint="a .tflite, .onnx or .pb file, or a SavedModel folder",
        )
    return suffixes[path.suffix]


def open_artefact(path: str | Path, threads: int = 1) -> Artefact:
    """Open an exported model with the runtime of its format.

    Args:
        path: a ``.tflite``, ``.onnx`` or ``.pb`` file, or a SavedModel folder.
        threads: number of threads of the runtime.

    Raises:
        BundleError: this is not an artefact, it is damaged, or its runtime isn't installed.
    """
    path = Path(path)
    module = _BACKENDS[format_of(path)]
    try:
        backend = importlib.import_module(module).open_backend(path, threads)
    except ImportError as error:
        raise BundleError(
            f"its runtime isn't installed ({error})",
            where=path,
            hint=f"pip install {(error.name or 'the runtime').partition('.')[0].replace('_', '-')}",
        ) from error
    return Artefact(backend, path)
