"""An artefact's file in; something that takes clips or a stream's chunks and gives logits, out.

One protocol over four formats. Opening a ``.tflite`` file needs ai-edge-litert and NumPy, a ``.onnx`` file
onnxruntime and NumPy; TensorFlow is loaded for its own formats only.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from bundle.variants import Format, State
from utils.errors import BundleError

INPUT, LENGTHS, OUTPUT = "input", "lengths", "output"
STATE_PREFIX, NEXT_SUFFIX = "state_", "_next"
"""An external state is the input ``state_00_conv`` and comes back as the output ``state_00_conv_next``."""

# What runs a format → our module for it. Loaded when it is needed: a device has one of them, not all.
_BACKENDS = {
    Format.SAVED_MODEL: "bundle.runtimes.tensorflow",
    Format.LITERT: "bundle.runtimes.litert",
    Format.ONNX: "bundle.runtimes.onnx",
    Format.FROZEN_GRAPH: "bundle.runtimes.tensorflow",
}


@dataclass(frozen=True)
class Facts:
    """What a file says of itself.

    Attributes:
        state: a clip at a time, or a stream with its state inside or outside.
        input_shape: of ``input``; None where any size goes.
        states: name → shape of each external state.
        operations: how many the runtime carries out a call, by the file's graph.
        flex: names of TensorFlow operations that LiteRT alone can't run.
        takes_lengths: whether ``lengths`` is an input too: the valid frames of each utterance.
        takes_tokens: whether ``input`` is int32 token ids; else it is float32.
    """

    state: State
    input_shape: tuple[int | None, ...]
    states: Mapping[str, tuple[int, ...]]
    operations: int
    flex: tuple[str, ...] = ()
    takes_lengths: bool = False
    takes_tokens: bool = False


class Backend(Protocol):
    """What a runtime has to offer; states are passed on as it gave them, quantised or not."""

    facts: Facts

    def call(
        self, inputs: Mapping[str, np.ndarray], states: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, dict]:
        """One call: ``input`` (and ``lengths``) by name, and states → float32 output and the next states."""

    def initial_states(self) -> dict[str, np.ndarray]:
        """The external states at a stream's beginning."""

    def forget(self) -> None:
        """Begin anew, if the state is inside."""


class Artefact:
    """An exported model, opened.

    Use :meth:`run` for models of clips, :meth:`step` and :meth:`reset` for streams.
    """

    def __init__(self, backend: Backend, path: Path):
        self.backend, self.path = backend, path
        self.facts = backend.facts
        self._states = backend.initial_states()

    @property
    def mode(self) -> State:
        """A clip at a time, or a stream with its state inside or outside."""
        return self.facts.state

    def run(self, batch: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        """Clips, or utterances padded to one length → logits.

        Args:
            batch: (N, frames, values) or (N, samples) float32, or (N, tokens) int32.
            lengths: (N,) int32, the valid frames of each utterance; None: all. A model that takes no lengths
                leaves them aside.

        Raises:
            BundleError: the artefact is one for streams.
        """
        self._check(batch, streams=False)
        inputs = {INPUT: np.asarray(batch, np.int32 if self.facts.takes_tokens else np.float32)}
        if self.facts.takes_lengths:
            whole = np.full(len(batch), batch.shape[1], np.int32)
            inputs[LENGTHS] = whole if lengths is None else np.asarray(lengths, np.int32)
        if self.facts.input_shape[0] is None:
            return self.backend.call(inputs, {})[0]
        rows = [
            self.backend.call({name: values[row : row + 1] for name, values in inputs.items()}, {})[0]
            for row in range(len(batch))
        ]
        return np.concatenate(rows)

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """The next chunk of the stream → the logits of the window that ends with it.

        Args:
            chunk: (frames a call, values) float32, or (samples a call,); a leading axis of 1 may be there.

        Raises:
            BundleError: the artefact is one for clips, or the chunk has another size than it takes.
        """
        chunk = np.asarray(chunk, np.float32)
        if chunk.ndim == len(self.facts.input_shape) - 1:
            chunk = chunk[None]
        self._check(chunk, streams=True)
        output, self._states = self.backend.call({INPUT: chunk}, self._states)
        return output

    def reset(self) -> None:
        """Forget what was heard: the next chunk begins a new stream."""
        self.backend.forget()
        self._states = self.backend.initial_states()

    def _check(self, values: np.ndarray, streams: bool) -> None:
        if (self.mode is not State.NON_STREAM) != streams:
            kind, use = ("clips", "run") if streams else ("streams", "step")
            raise BundleError(f"an artefact for {kind}", where=self.path, hint=f"use .{use}()")
        wanted = self.facts.input_shape
        fits = len(wanted) == values.ndim and all(
            size in (None, found) for size, found in zip(wanted[1:], values.shape[1:], strict=True)
        )
        if not fits:
            shapes = [
                "(" + ", ".join(str(n or "any") for n in shape[1:]) + ")" for shape in (wanted, values.shape)
            ]
            what = f"the model takes {shapes[0]} a {'call' if streams else 'clip'}, not {shapes[1]}"
            raise BundleError(what, where=self.path, hint="feed what the bundle's features settings give")


def format_of(path: Path) -> Format:
    """The format of a file or folder, by its ending.

    Raises:
        BundleError: it isn't there, or is none of the formats.
    """
    suffixes = {".tflite": Format.LITERT, ".onnx": Format.ONNX, ".pb": Format.FROZEN_GRAPH}
    if not path.exists():
        raise BundleError("no such artefact", where=path, hint="export.py makes them")
    if path.is_dir() and (path / "saved_model.pb").is_file():
        return Format.SAVED_MODEL
    if path.suffix not in suffixes or path.is_dir():
        hint = "a .tflite, .onnx or .pb file, or a SavedModel folder"
        raise BundleError("no artefact of a known format", where=path, hint=hint)
    return suffixes[path.suffix]


def open_artefact(path: str | Path, threads: int = 1) -> Artefact:
    """Open an exported model through the runtime of its format.

    Args:
        path: a ``.tflite``, ``.onnx`` or ``.pb`` file, or a SavedModel folder.
        threads: that the runtime may use.

    Raises:
        BundleError: no artefact, a damaged one, or its runtime isn't installed.
    """
    path = Path(path)
    module = _BACKENDS[format_of(path)]
    try:
        backend = importlib.import_module(module)
    except ImportError as error:
        hint = f"pip install {(error.name or 'the runtime').partition('.')[0].replace('_', '-')}"
        raise BundleError(f"its runtime isn't installed ({error})", where=path, hint=hint) from error
    return Artefact(backend.open_backend(path, threads), path)
