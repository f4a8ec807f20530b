"""Plans how a model streams: its layer calls, the states and parts to insert, or the obstacles; its sizes.

``graph`` reads the calls, ``rules`` plans each layer, and this module connects them; ``convert`` builds the
planned model. The model as it was trained is called the plain model.
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import keras

from streaming.conversion.graph import Call, Graph, Shape, read_graph
from streaming.conversion.layers import cell_of
from streaming.conversion.rules import plan_layer
from streaming.conversion.timing import (
    CannotStream,
    Delay,
    LastFrames,
    LayerPlan,
    Mask,
    PadFrequency,
    Part,
    Signal,
    Window,
    round_up,
)
from utils.errors import ConfigError


@dataclass(frozen=True)
class StateSpec:
    """A state: its name in the streamed model, and its shape, including the batch of one."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Obstacle:
    """A reason why a model can't stream: the layer, what it does, what to use instead."""

    layer: str
    reason: str
    instead: str

    def __str__(self) -> str:
        return f"'{self.layer}' {self.reason} (instead: {self.instead})"


@dataclass(frozen=True)
class Insert:
    """A part inserted between the wires ``source`` and ``target``, for the layer ``owner``."""

    part: Part
    source: int
    target: int
    owner: str
    states: tuple[StateSpec, ...] = ()


@dataclass(frozen=True)
class PlannedCall:
    """A layer call on the wires ``inputs``, with the changes of ``layer_plan``."""

    call: Call
    inputs: tuple[int, ...]
    layer_plan: LayerPlan
    states: tuple[StateSpec, ...] = ()


@dataclass(frozen=True)
class StreamPlan:
    """The parts and calls of a streamed model, in order.

    Attributes:
        graph: graph of the plain model.
        items: inserted parts and layer calls.
        output: wire of the output.
        signal: stride and delay of the output.
        clock: state of the frame counter, if warm-up frames must be recognised.
        clock_limit: the count at which the frame counter stops.
        step: input frames that a chunk must be a multiple of.
        hop: input frames per frame of ``frames_per_call``: for a model of samples, those between two windows.
        due: input frames from the reset until the output for the clip is complete; None: an output per frame.
        obstacles: reasons against streaming; if there are any, the rest is approximate.
    """

    graph: Graph
    items: tuple[Insert | PlannedCall, ...]
    output: int
    signal: Signal
    clock: StateSpec | None
    clock_limit: int
    step: int
    hop: int
    due: int | None
    obstacles: tuple[Obstacle, ...]

    @property
    def states(self) -> tuple[StateSpec, ...]:
        """All states, in the order of their names."""
        clock = () if self.clock is None else (self.clock,)
        return (*clock, *(state for item in self.items for state in item.states))


def plan_stream(model: keras.Model, chunk: int = 0) -> StreamPlan:
    """Plan the stream of a plain model; obstacles are recorded, not raised.

    Args:
        model: the plain model.
        chunk: input frames per call, a multiple of the plan's ``step``; the output for a clip is due at the
            end of a call. 0: the minimum.

    Raises:
        ConfigError: the model has no graph.
    """
    graph = read_graph(model)
    plan = _Planner(graph).plan()
    if plan.due:  # plan again with this time: windows that are complete earlier must wait
        plan = _Planner(graph, due=round_up(plan.due, chunk or plan.step)).plan()
    return plan


@dataclass
class _Planner:
    """Plans the calls of one graph in order."""

    graph: Graph
    due: int = 0
    signals: dict[int, Signal] = field(default_factory=dict)
    alias: dict[int, int] = field(
        default_factory=dict
    )  # wire of the graph → wire with its value in the stream
    inserted: dict[tuple[int, Part], int] = field(default_factory=dict)
    items: list[Insert | PlannedCall] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    dues: list[int] = field(default_factory=list)
    warm_up: int = 0
    hop: int = 1

    def __post_init__(self):
        self.wires = itertools.count(max(self.graph.shapes) + 1)
        self.shapes = dict(self.graph.shapes)

    def plan(self) -> StreamPlan:
        self._check_ends()
        for wire in self.graph.inputs:
            self.signals[wire], self.alias[wire] = Signal(), wire
        for call in self.graph.calls:
            self._add(call)
        output = self.graph.outputs[0]
        signal = self.signals[output]
        if not signal.whole and signal.delay < 0:
            self.obstacles.append(
                Obstacle("output", "begins with padding", "no padding at the end of the model")
            )
        step = math.lcm(*(signal.stride for signal in self.signals.values()))
        due = (self.due or round_up(max(self.dues), step)) if self.dues else None
        items, clock = _with_state_names(self.items, self.warm_up > 0)
        obstacles = tuple(self.obstacles)
        return StreamPlan(
            self.graph, items, self.alias[output], signal, clock, self.warm_up, step, self.hop, due, obstacles
        )

    def _check_ends(self) -> None:
        for ends, name in ((self.graph.inputs, "input"), (self.graph.outputs, "output")):
            if len(ends) > 1:
                reason, instead = f"is one of {len(ends)}", f"a model with one {name}"
                self.obstacles.append(Obstacle(name, reason, instead))

    def _add(self, call: Call) -> None:
        signals = [self.signals[wire] for wire in call.inputs]
        try:
            layer_plan = plan_layer(call, signals, self.due)
        except CannotStream as error:
            self.obstacles.append(Obstacle(call.layer.name, error.reason, error.instead))
            layer_plan = LayerPlan(_approximate_signal(call, signals))
        self._update(call, signals, layer_plan)
        before = layer_plan.before or ((),) * len(call.inputs)
        inputs = tuple(
            self._insert(self.alias[wire], parts, call.layer.name)
            for wire, parts in zip(call.inputs, before, strict=True)
        )
        self.signals.update(dict.fromkeys(call.outputs, layer_plan.output))
        if layer_plan.removed:
            self.alias.update(dict.fromkeys(call.outputs, inputs[0]))
            return
        self.alias.update((wire, wire) for wire in call.outputs)
        self.items.append(PlannedCall(call, inputs, layer_plan))

    def _update(self, call: Call, signals: list[Signal], layer_plan: LayerPlan) -> None:
        """Update the properties of the whole model."""
        self.dues += layer_plan.dues
        self.warm_up = max(self.warm_up, layer_plan.warm_up)
        is_first_window = layer_plan.output.stride > 1 and signals[0] == Signal()
        if is_first_window and len(self.graph.shapes[self.graph.inputs[0]]) == 2:
            self.hop = layer_plan.output.stride

    def _insert(self, wire: int, parts: tuple[Part, ...], owner: str) -> int:
        """Insert parts after a wire and return the last wire; a part that exists already is shared."""
        for part in parts:
            if (wire, part) not in self.inserted:
                target = self.inserted[wire, part] = next(self.wires)
                self.shapes[target] = _shape_after(part, self.shapes[wire])
                states = _states_of(part, self.shapes[wire], owner)
                self.items.append(Insert(part, wire, target, owner, states))
                if isinstance(part, Mask):
                    self.warm_up = max(self.warm_up, part.warm_up)
            wire = self.inserted[wire, part]
        return wire


def _approximate_signal(call: Call, signals: list[Signal]) -> Signal:
    """A signal after an obstacle, so that planning can continue and find the next one."""
    signal = signals[0]
    before, after = call.input_shapes[0], call.output_shapes[0]
    if len(after) < 3:
        return Signal(whole=True)
    shrinks = before[1] and after[1] and not signal.whole
    stride = max(1, round(before[1] / after[1])) if shrinks else 1
    return replace(signal, stride=signal.stride * stride, delay=max(0, signal.delay))


def _shape_after(part: Part, shape: Shape) -> Shape:
    """Shape of the tensor after a part; the length in time is left unchanged."""
    if isinstance(part, PadFrequency):
        return (*shape[:2], part.left + shape[2] + part.right, *shape[3:])
    return shape


def _states_of(part: Part, shape: Shape, owner: str) -> tuple[StateSpec, ...]:
    """The state of a part before a tensor of this shape, still without its number."""
    frames = part.frames if isinstance(part, LastFrames | Delay) else 0
    if isinstance(part, Window):
        frames = part.frames - 1
    return (StateSpec(owner, (1, frames, *shape[2:])),) if frames else ()


def _with_state_names(
    items: list[Insert | PlannedCall], with_clock: bool
) -> tuple[tuple[Insert | PlannedCall, ...], StateSpec | None]:
    """Name the states of all items by number and layer; the clock's state is the first."""
    numbers = itertools.count()
    clock = _with_number(numbers, StateSpec("frame_index", (1, 1))) if with_clock else None
    named = []
    for item in items:
        if isinstance(item, PlannedCall) and item.layer_plan.recurrent:
            item = replace(item, states=_recurrent_states(item.call))
        states = tuple(_with_number(numbers, state) for state in item.states)
        named.append(replace(item, states=states))
    return tuple(named), clock


def _recurrent_states(call: Call) -> tuple[StateSpec, ...]:
    sizes: Any = cell_of(call.layer).state_size
    sizes = sizes if isinstance(sizes, list | tuple) else [sizes]
    return tuple(StateSpec(call.layer.name, (1, size)) for size in sizes)


def _with_number(numbers: itertools.count, state: StateSpec) -> StateSpec:
    return replace(state, name=f"state_{next(numbers):02d}_{state.name}")


@dataclass(frozen=True)
class StreamGeometry:
    """Sizes of a stream, in input frames (samples for a model of samples).

    Attributes:
        step: a chunk must be a multiple of it.
        hop: input frames per frame of ``frames_per_call``: 1, or the samples between two windows.
        stride: input frames per output frame; None: one output per call, for the latest window.
        delay: output frames before the plain model's first one; None: one output per call.
        window: input frames from the reset to the end of the call whose output is that of the plain model for
            its clip; None: there is an output per frame.
        states: kept from call to call.
    """

    step: int
    hop: int
    stride: int | None
    delay: int | None
    window: int | None
    states: tuple[StateSpec, ...]

    @property
    def frames_per_call(self) -> int:
        """Minimum number of frames per call."""
        return math.lcm(self.step, self.hop) // self.hop

    @property
    def state_values(self) -> int:
        """Number of values in all states."""
        return sum(math.prod(state.shape) for state in self.states)


def check_streamable(model: keras.Model) -> list[Obstacle]:
    """Find all obstacles to streaming of a plain model, with alternatives; empty if it can stream."""
    return list(plan_stream(model).obstacles)


def require_streamable(model: keras.Model, frames_per_call: int | None = None) -> StreamPlan:
    """Plan the stream of a model; for the arguments see `stream_geometry`.

    Raises:
        ConfigError: the model can't stream (each obstacle is named), or not with this number of frames per
            call.
    """
    plan = plan_stream(model)
    if plan.obstacles:
        raise ConfigError(
            "can't stream: " + "; ".join(map(str, plan.obstacles)), where=f"model '{model.name}'"
        )
    if frames_per_call is None:
        return plan
    chunk = frames_per_call * plan.hop
    if chunk < 1 or chunk % plan.step:
        allowed = f"a multiple of {plan.step}"
        if plan.hop > 1:
            allowed += f" samples; a frame is {plan.hop} samples"
        raise ConfigError(
            f"{frames_per_call} frames per call, but the strides of '{model.name}' need {allowed}",
            hint=f"for example {max(1, plan.step // plan.hop)} frames (export.py --frames)",
        )
    return plan_stream(model, chunk)


def stream_geometry(model: keras.Model, frames_per_call: int | None = None) -> StreamGeometry:
    """The sizes of a model's stream.

    Args:
        model: the plain model.
        frames_per_call: see `to_mode`; None: the minimum.

    Raises:
        ConfigError: the model can't stream (each obstacle is named), or not with this number of frames per
            call.
    """
    plan = require_streamable(model, frames_per_call)
    signal = plan.signal
    return StreamGeometry(
        step=plan.step,
        hop=plan.hop,
        stride=None if signal.whole else signal.stride,
        delay=None if signal.whole else signal.delay,
        window=plan.due if signal.whole else None,
        states=plan.states,
    )
