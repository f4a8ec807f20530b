"""Writes the artefacts (exported files) of one model in any format, mode and precision.

It also computes the source model's outputs with which artefacts are compared, supplies the inputs of the int8
calibration. What several artefacts share is computed once; ``build`` calls it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import keras
import numpy as np
import onnx

from bundle.check.measuring import TOLERANCE
from bundle.check.scoring import accuracy, chunks_of, decoded, final_outputs, golden_outputs, streamed
from bundle.check.utterances import predicted, row_counts, without_padding
from bundle.export.drawing import graph_svg
from bundle.export.litert_files import litert_file
from bundle.export.onnx_files import onnx_model, write_onnx
from bundle.export.quantisation import layers_by_noise, layers_with_weights
from bundle.export.source import Clips, ExportSource
from bundle.export.stages import (
    ModelInMode,
    unroll_recurrences,
    write_frozen_graph,
    write_saved_model,
)
from bundle.runtimes.artefacts import INPUT, LENGTHS, open_artefact
from bundle.variants import Format, Precision, Variant
from streaming.chunks import StreamedModel
from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.conversion.plan import StreamGeometry, stream_geometry
from streaming.speech.keras_stream import KerasStream
from utils.arrays import pad_rows
from utils.backend.model_cost import summary_text
from utils.backend.prediction import prepare_prediction
from utils.errors import BundleError
from utils.files import write_text

CALIBRATION_CALLS = 5000
"""Calls for the int8 calibration of a stream; the converter keeps them all in memory."""
_CLIPS_FOR_NOISE, _VALUES_FOR_NOISE = 50, 1_000_000
"""Maximum number of calibration clips, and of input values in them, to measure the noise of layers: all their
outputs are in memory at once."""
_CALIBRATION_PADDING = 20  # positions after every other utterance
_CLIPS_PER_STREAM = 4  # of a calibration, before the state is reset: both cases occur in use
BATCH = 16  # clips per call of the source model
MAX_UNROLLED = 200  # frames of a clip up to which recurrent layers are unrolled


@dataclass
class ArtefactWriter:
    """Writes the artefacts of one source; what several of them share is computed once.

    Attributes:
        source: the model and its clips.
        frames_per_call: frames per call of the streams; 0: the minimum for the model's strides.
        allow_flex: whether to allow TensorFlow operations in LiteRT files.
    """

    source: ExportSource
    frames_per_call: int = 0
    allow_flex: bool = False
    _folder: tempfile.TemporaryDirectory = field(default_factory=tempfile.TemporaryDirectory)
    _stages: dict[Mode, ModelInMode] = field(default_factory=dict)
    _saved: dict[tuple[Mode, bool], Path] = field(default_factory=dict)
    _onnx: dict[Mode, onnx.ModelProto] = field(default_factory=dict)

    def __enter__(self) -> ArtefactWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    @cached_property
    def stream(self) -> StreamGeometry:
        """The sizes of the source model's stream.

        Raises:
            ConfigError: the model can't stream; each obstacle is named, with an alternative.
        """
        return stream_geometry(self.source.model, frames_per_call=self.frames_per_call or None)

    @property
    def chunk(self) -> int:
        """Input frames (or samples) per call."""
        return (self.frames_per_call or self.stream.frames_per_call) * self.stream.hop

    @property
    def due(self) -> int:
        """Input frames until the output for a golden clip is complete."""
        if self.stream.window:
            return self.stream.window
        return self.source.golden.inputs.shape[1] + (self.stream.delay or 0) * (self.stream.stride or 0)

    @property
    def delay(self) -> int:
        """CTC rows at the start of a stream that belong to no sound."""
        return self.stream.delay or 0

    @property
    def geometry(self) -> dict[str, float]:
        """The sizes that a caller of the stream needs, in input frames (or samples).

        ``chunk``: per call. ``seconds``: of sound per call. ``due``: until the first output that counts.
            ``delay``: CTC rows at the start of a stream that belong to no sound.
        """
        seconds = self.chunk / self.stream.hop * self.source.frame_seconds
        return {"chunk": self.chunk, "seconds": seconds, "due": self.due, "delay": self.delay}

    def stage(self, state: Mode) -> ModelInMode:
        """The model in one mode."""
        if state not in self._stages:
            self._stages[state] = ModelInMode(state, self._model(state))
        return self._stages[state]

    def _model(self, state: Mode) -> keras.Model:
        if self.source.row_stride:  # a model of whole utterances is exported as it was trained
            return self.source.model
        frames = 1 if state is Mode.NON_STREAM_INFERENCE else self.chunk // self.stream.hop
        return to_mode(self.source.model, state, frames)

    @cached_property
    def reference(self) -> KerasStream:
        """The source model's stream, with which the streams of the artefacts are compared."""
        model = self.stage(Mode.STREAM_EXTERNAL_STATE_INFERENCE).model
        prepare_prediction(model)
        return KerasStream(model)

    @cached_property
    def noisiest_layers(self) -> list[tuple[str, ...]]:
        """Groups of layers that int8 may leave in float, in order (see `layers_by_noise`)."""
        clips = self.source.calibration.spread(_CLIPS_FOR_NOISE)
        few = clips.spread(max(1, _VALUES_FOR_NOISE // max(1, clips.inputs[0].size)))
        return layers_by_noise(self.source.model, self._inputs_of_model(few.inputs, few.lengths))

    @cached_property
    def weighted_layers(self) -> frozenset[str]:
        """Names of the layers that int8 quantises (see `layers_with_weights`)."""
        return layers_with_weights(self.source.model)

    def write(self, variant: Variant, path: Path, float_layers: Collection[str] = ()) -> None:
        """Write one artefact.

        Raises:
            BundleError: the converter fails, or needs TensorFlow operations, which are named.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        stage = self.stage(variant.state)
        match variant.format:
            case Format.SAVED_MODEL:
                write_saved_model(stage, path)
            case Format.FROZEN_GRAPH:
                write_frozen_graph(stage, path)
            case Format.LITERT:
                content = litert_file(
                    self._saved_model(variant.state, variant.precision), variant.state, variant.precision,
                    lambda: self.samples(variant.state), float_layers, self.allow_flex,
                )  # fmt: skip
                path.write_bytes(content)
            case Format.ONNX:
                if variant.state not in self._onnx:
                    self._onnx[variant.state] = onnx_model(stage)
                model, samples = self._onnx[variant.state], self.samples(variant.state)
                write_onnx(model, variant.precision, path, samples, float_layers)

    def _saved_model(self, state: Mode, precision: Precision) -> Path:
        """The SavedModel that is converted to LiteRT.

        Clips have a fixed length, and int8 has no loops; whole utterances have any length.
        """
        clips = not self.source.row_stride
        unrolled = clips and state is Mode.NON_STREAM_INFERENCE and precision is Precision.INT8
        if (state, unrolled) not in self._saved:
            stage = self.stage(state)
            if unrolled:
                stage = ModelInMode(state, to_mode(self.source.model, Mode.NON_STREAM_INFERENCE))
                unroll_recurrences(stage.model, MAX_UNROLLED)
            path = Path(self._folder.name) / f"{state}_{unrolled}"
            if clips:
                stage = replace(stage, frames=self.source.golden.inputs.shape[1])
            write_saved_model(stage, path, batch=1)
            self._saved[state, unrolled] = path
        return self._saved[state, unrolled]

    def samples(self, state: Mode) -> Iterator[dict[str, np.ndarray]]:
        """Inputs for the calibration by name, one dictionary per call.

        Raises:
            BundleError: there are no calibration clips.
        """
        clips = self.source.calibration
        if not len(clips):
            raise BundleError(
                "no clips to calibrate int8 with",
                hint="int8 needs clips of the training split; the notes of the export say why there are none",
            )
        if clips.lengths is not None:
            takes_lengths = LENGTHS in self.stage(state).signature(1)
            for number, (clip, length) in enumerate(zip(clips.inputs, clips.lengths, strict=True)):
                given = {LENGTHS: np.array([length], np.int32)} if takes_lengths else {}
                padding = (number % 2) * _CALIBRATION_PADDING  # without and with: both occur in use
                widths = [(0, padding)] + [(0, 0)] * (clip.ndim - 1)
                yield {INPUT: np.pad(clip[:length], widths)[None], **given}
            return
        if state is Mode.NON_STREAM_INFERENCE:
            yield from ({INPUT: clip[None]} for clip in clips.inputs)
            return
        fewer = clips.spread(max(CALIBRATION_CALLS * self.chunk // self.due, 1))
        for number, clip in enumerate(fewer.inputs):
            if number % _CLIPS_PER_STREAM == 0:
                self.reference.reset()
            for chunk in chunks_of(clip, self.chunk, self.due):
                yield {
                    INPUT: chunk,
                    **(self.reference.states if state is Mode.STREAM_EXTERNAL_STATE_INFERENCE else {}),
                }
                self.reference.step(chunk)

    def outputs(self, clips: np.ndarray, kind: str, stream: StreamedModel | None = None) -> np.ndarray:
        """The source model's outputs for clips.

        Args:
            clips: (N, T, …).
            kind: ``non_stream``, or of the stream ``reset`` (before each clip) or ``running`` (no reset).
            stream: a replacement of the source model's own stream.
        """
        if kind != "non_stream":
            return streamed(stream or self.reference, clips, self.chunk, self.due, reset=kind == "reset")
        return self._logits(clips, None)

    def _logits(self, inputs: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
        """The source model's logits for clips (N, T, …), or for utterances of these lengths (N,)."""
        parts = []
        for start in range(0, len(inputs), BATCH):
            rows = slice(start, start + BATCH)
            given = self._inputs_of_model(inputs[rows], None if lengths is None else lengths[rows])
            parts.append(keras.ops.convert_to_numpy(self.source.model(given, training=False)))
        return np.concatenate(parts)

    def _inputs_of_model(self, inputs: np.ndarray, lengths: np.ndarray | None) -> np.ndarray | dict:
        """The arguments of the source model: an array, or arrays by the names of its inputs."""
        if lengths is None:
            return inputs
        named = {"features": inputs, "syllables": inputs, "lengths": lengths}
        return {name: named[name] for name in self.source.model.input}

    def golden(self, states: Collection[Mode]) -> dict[str, np.ndarray]:
        """Inputs and references of the golden clips, and the source model's outputs in these modes.

        Raises:
            BundleError: the source model's stream differs from the model.
        """
        clips = self.source.golden
        if clips.lengths is not None:
            outputs = self._logits(clips.inputs, clips.lengths)
            valid = row_counts(clips.lengths, self.source.row_stride)
            return {**clips.arrays(), "non_stream": without_padding(outputs, valid)}
        names = dict.fromkeys(name for state in states for name in golden_outputs(state))
        outputs = {name: self.outputs(clips.inputs, name) for name in names}
        if "reset" in outputs:
            self._check_stream(clips.inputs, outputs["reset"])
        return {**clips.arrays(), **outputs}

    def _check_stream(self, clips: np.ndarray, streamed_outputs: np.ndarray) -> None:
        """Raise BundleError if the source model's stream has other final outputs than the model itself.

        Artefacts are compared with the stream, which would have the same errors of the conversion.
        """
        expected, found = self.outputs(clips, "non_stream"), final_outputs(streamed_outputs, self.delay)
        rows = min(expected.shape[1], found.shape[1])  # CTC: the last call may give more; else the labels
        difference = float(np.abs(found[:, :rows] - expected[:, :rows]).max())
        allowed = TOLERANCE[Precision.FLOAT] * max(1.0, float(np.abs(expected).max()))
        if not difference <= allowed:  # NaN fails too
            raise BundleError(
                "the stream does not compute what the model computes: its outputs for the golden clips "
                f"differ by {difference:.2g}, allowed {allowed:.2g}",
                where=f"model '{self.source.model.name}'",
                hint="correct the frame_wise, streaming_window or streaming_cell of its custom layers, or "
                "export whole clips only (--mode non_stream)",
            )

    def development_arrays(self, streams: bool) -> dict[str, np.ndarray]:
        """The clips to choose float layers on; their references are the source model's own predictions.

        They are ``references_non_stream``, with ``streams`` also ``references_reset1`` and
        ``references_reset0``; ``references`` are those of ``non_stream``.
        """
        clips = self.source.development_clips
        tokens = {name: pad_rows(found, fill=-1) for name, found in self._predicted(clips, streams)}
        references = {f"references_{name}": found for name, found in tokens.items()}
        return {**self.source.test_arrays(clips), **references, "references": tokens["non_stream"]}

    def accuracies(self, clips: Clips, streams: bool) -> dict[str, float]:
        """The source model's accuracy: ``non_stream``, with ``streams`` also ``reset1`` and ``reset0``."""
        return {name: accuracy(clips.references, found) for name, found in self._predicted(clips, streams)}

    def _predicted(self, clips: Clips, streams: bool) -> Iterator[tuple[str, list[list[int]]]]:
        """What the source model predicts for clips, by the names of :meth:`accuracies`."""
        tests = self.source.test_arrays(clips)
        yield "non_stream", predicted(self._logits, tests, self.source.row_stride)
        for name, kind in {"reset1": "reset", "reset0": "running"}.items() if streams else ():
            outputs = final_outputs(self.outputs(clips.inputs, kind, self._quick_stream), self.delay)
            yield name, decoded(outputs, int(tests.get("blank", -1)))

    @cached_property
    def _quick_stream(self) -> StreamedModel:
        """The source model's stream in LiteRT: equal to six digits, and 50 times as fast as in TensorFlow."""
        state, precision = Mode.STREAM_EXTERNAL_STATE_INFERENCE, Precision.FLOAT
        try:
            content = litert_file(self._saved_model(state, precision), state, precision, list)
        except BundleError:  # LiteRT lacks an operation
            return self.reference
        path = Path(self._folder.name) / "source.tflite"
        path.write_bytes(content)
        return open_artefact(path)

    def describe(self, states: Sequence[Mode], folder: Path) -> None:
        """Write a summary and a drawing of each mode."""
        for state in states:
            model = self.stage(state).model
            write_text(folder / state / "model_summary.txt", summary_text(model))
            write_text(folder / state / "graph.svg", graph_svg(model, f"{model.name}, {state}"))
