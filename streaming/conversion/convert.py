"""Converts a trained Keras model to another mode (streaming, or inference of whole clips), layer by layer.

The model as it was trained (the plain model) needs no code for streaming: ``graph`` reads its layers,
``plan`` plans their stream, and this module rebuilds the layers and copies their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import keras

from streaming.conversion.graph import Call, Graph, read_graph
from streaming.conversion.layers import FrameIndex, History, RecurrentStream, TakeFrames, WarmUpMask
from streaming.conversion.modes import Mode
from streaming.conversion.plan import Insert, PlannedCall, StateSpec, StreamPlan, require_streamable
from streaming.conversion.rules import TRAINING_ONLY
from streaming.conversion.timing import Delay, LastFrames, Mask, PadFrequency, Skip, Window
from utils.errors import ConfigError


def to_mode(
    model: keras.Model,
    mode: Mode,
    frames_per_call: int | None = 1,
) -> keras.Model:
    """Convert a model to another mode, with copied weights.

    Args:
        model: plain model with one input ``(batch, frames, …)`` or ``(batch, samples)``.
        mode: the target mode.
        frames_per_call: frames per chunk (of ``hop`` samples each, for a model of samples); a multiple of
            `stream_geometry(model).frames_per_call`. None, for external state: any such multiple, if no layer
            needs the whole clip and each recurrent one has a ``streaming_chunk``.

    Returns:
        Non-streaming: one input, one output, as the plain model. Internal state: a chunk ``(1,
        frames_per_call · hop, …)`` → output; `reset_state` starts a new stream. External state: ``{"input":
        chunk, "state_00_…": …}`` → ``{"output": …, "state_00_…_next": …}``; all states start with zeros. A
        per-frame output is ``(1, chunk / stride, …)``, `stream_geometry(model).delay` frames late. An output
        for the whole clip is ``(1, …)``, for a window of the clip's length that ends with the latest frame;
        if a clip is not a whole number of calls, the window ends up to ``frames_per_call - 1`` frames
        earlier, so that one call is exact for the clip (`stream_geometry(model, …).window`).

    Raises:
        ConfigError: the model can't stream (each obstacle is named), or the chunk doesn't fit its strides.
    """
    if not mode.is_streaming:
        return _plain_copy(model)
    plan = require_streamable(model, frames_per_call)
    external = mode is Mode.STREAM_EXTERNAL_STATE_INFERENCE
    if frames_per_call is None:
        _require_any_length(model, plan, external)
    chunk = frames_per_call and frames_per_call * plan.hop
    return _StreamBuilder(model.name, plan, external).build(chunk)


def _require_any_length(model: keras.Model, plan: StreamPlan, external: bool) -> None:
    """Raise ConfigError if the stream of a model needs chunks of one length."""
    recurrent = [
        item.call.layer for item in plan.items if isinstance(item, PlannedCall) and item.layer_plan.recurrent
    ]
    fixed = [layer.name for layer in recurrent if not hasattr(layer, "streaming_chunk")]
    if fixed or plan.clock or plan.signal.whole or not external:
        raise ConfigError(
            "a stream with chunks of any length needs external state, and layers that take such chunks"
            + (f", unlike {', '.join(fixed)}" if fixed else ""),
            where=f"model '{model.name}'",
            hint="give the number of frames of each chunk",
        )


def _plain_copy(model: keras.Model) -> keras.Model:
    graph = read_graph(model)
    copies = _Copies()
    shapes = [graph.shapes[wire] for wire in graph.inputs]
    names = ["input"] if len(shapes) == 1 else [f"input_{index}" for index in range(len(shapes))]
    inputs = [
        keras.Input(shape=shape[1:], dtype=dtype, name=copies.unique(name))
        for shape, dtype, name in zip(shapes, graph.dtypes, names, strict=True)
    ]
    tensors = dict(zip(graph.inputs, inputs, strict=True))
    for call in graph.calls:
        given = [tensors[wire] for wire in call.inputs]
        if not isinstance(call.layer, TRAINING_ONLY):
            given = call.repeat(copies.of(call.layer, changes={}), given)
        tensors.update(zip(call.outputs, given, strict=True))
    return _finish(_single(inputs), _single([tensors[wire] for wire in graph.outputs]), model.name, copies)


def _single(tensors: list[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tensors


def _finish(inputs: Any, outputs: Any, name: str, copies: _Copies) -> keras.Model:
    model = keras.Model(inputs, outputs, name=name)
    copies.copy_weights()
    model.trainable = False
    return model


@dataclass
class _Copies:
    """The layers rebuilt for another model, and their unique names.

    A layer that is called several times has one copy, or one for each of its changes: a causal convolution
    of frames, for example, may in another call take the whole clip, where it keeps its padding.
    """

    made: list[tuple[Any, dict[str, Any], Any]] = field(default_factory=list)  # layer, changes, copy
    names: set[str] = field(default_factory=set)

    def unique(self, name: str) -> str:
        """The name, with a number if it is used already."""
        unique, number = name, 1
        while unique in self.names:
            number += 1
            unique = f"{name}_{number}"
        self.names.add(unique)
        return unique

    def of(self, layer: Any, changes: dict[str, Any]) -> Any:
        """The copy of a layer with changed settings, in float32."""
        if not isinstance(layer, keras.Layer):
            return layer  # an operation of keras.ops has no settings and no weights
        for known, known_changes, copy in self.made:
            if known is layer and known_changes == changes:
                return copy
        config = layer.get_config() | {"name": self.unique(layer.name), "dtype": "float32"}
        copy = type(layer).from_config(config | changes)
        self.made.append((layer, changes, copy))
        return copy

    def copy_weights(self) -> None:
        """Copy the weights of all layers, after the copies are built."""
        for layer, _, copy in self.made:
            copy.set_weights(layer.get_weights())
            if isinstance(copy, keras.layers.Normalization) and layer.weights:
                copy.finalize_state()


@dataclass
class _StreamBuilder:
    """Builds a streamed model from its plan."""

    name: str
    plan: StreamPlan
    external: bool
    copies: _Copies = field(default_factory=_Copies)
    tensors: dict[int, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    index: Any = None  # indices of the chunk's input frames since the reset

    def build(self, chunk: int | None) -> keras.Model:
        graph: Graph = self.plan.graph
        shape = (1, chunk, *graph.shapes[graph.inputs[0]][2:])
        self.inputs["input"] = keras.Input(batch_shape=shape, dtype=graph.dtypes[0], name="input")
        self.copies.names |= {"input", "output"} | {state.name for state in self.plan.states}
        self.tensors[graph.inputs[0]] = self.inputs["input"]
        if self.plan.clock:
            settings = {"limit": self.plan.clock_limit}
            clock = (self.plan.clock,)
            self.index = self._stateful(FrameIndex, "frame_index", clock, self.inputs["input"], settings)
        for item in self.plan.items:
            self._insert(item) if isinstance(item, Insert) else self._run(item)
        output = self.tensors[self.plan.output]
        if not self.external:
            return _finish(self.inputs["input"], output, self.name, self.copies)
        return _finish(self.inputs, {"output": output} | self.outputs, self.name, self.copies)

    def _stateful(
        self,
        kind: type,
        name: str,
        states: Sequence[StateSpec],
        tensor: Any,
        settings: dict[str, Any],
        **given,
    ) -> Any:
        """Output of a layer with states; external states become inputs and outputs of the model."""
        shapes = [state.shape for state in states]
        layer = kind(shapes=shapes, external=self.external, name=self.copies.unique(name), **settings)
        if not self.external:
            return layer(tensor, **given)
        past = [keras.Input(batch_shape=state.shape, name=state.name) for state in states]
        output, *after = layer(tensor, given=past, **given)
        self.inputs |= {state.name: tensor for state, tensor in zip(states, past, strict=True)}
        self.outputs |= {f"{state.name}_next": tensor for state, tensor in zip(states, after, strict=True)}
        return output

    def _history(self, item: Insert, tensor: Any, kind: str) -> Any:
        """The chunk with the frames before it; the chunk alone if no frames are kept."""
        if not item.states:
            return tensor
        return self._stateful(History, f"{item.owner}_{kind}", item.states, tensor, settings={})

    def _take(self, item: Insert, tensor: Any, first: int, count: int | None) -> Any:
        if (first, count) == (0, tensor.shape[1]):
            return tensor
        return TakeFrames(first, count, name=self.copies.unique(f"{item.owner}_frames"))(tensor)

    def _insert(self, item: Insert) -> None:
        tensor = self.tensors[item.source]
        chunk = tensor.shape[1]
        match item.part:
            case LastFrames():
                tensor = self._history(item, tensor, "history")
            case Delay():
                count = -item.part.frames if chunk is None else chunk
                tensor = self._take(item, self._history(item, tensor, "delay"), 0, count)
            case Window(frames):
                tensor = self._history(item, tensor, "window")
                tensor = self._take(item, tensor, tensor.shape[1] - frames, frames)
            case Skip(frames):
                tensor = self._take(item, tensor, frames, None if chunk is None else chunk - frames)
            case Mask(warm_up, stride):
                name = self.copies.unique(f"{item.owner}_mask")
                tensor = WarmUpMask(warm_up, stride, name=name)(tensor, self.index)
            case PadFrequency(left, right):
                name = self.copies.unique(f"{item.owner}_padding")
                tensor = keras.layers.ZeroPadding2D(((0, 0), (left, right)), name=name)(tensor)
        self.tensors[item.target] = tensor

    def _run(self, item: PlannedCall) -> None:
        call: Call = item.call
        given = [self.tensors[wire] for wire in item.inputs]
        layer = self.copies.of(call.layer, item.layer_plan.changes)
        results = (
            self._recur(item, layer, given[0]) if item.layer_plan.recurrent else call.repeat(layer, given)
        )
        self.tensors.update(zip(call.outputs, results, strict=True))

    def _recur(self, item: PlannedCall, layer: Any, tensor: Any) -> list[Any]:
        warm_up = item.layer_plan.warm_up
        settings = {
            "recurrent": layer,
            "warm_up": warm_up,
            "stride": self.inputs["input"].shape[1] // tensor.shape[1] if warm_up else 1,
        }
        given = {"index": self.index} if warm_up else {}
        name = f"{item.call.layer.name}_stream"
        return [self._stateful(RecurrentStream, name, item.states, tensor, settings, **given)]
