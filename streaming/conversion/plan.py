"""A model's graph → the program of its stream (calls, states, what joins them), or what is in the way."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import keras

from streaming.conversion.graph import Call, Graph, Shape, read_graph
from streaming.conversion.rules import Wish, treat
from streaming.conversion.timing import (
    CannotStream,
    Delay,
    History,
    Mask,
    PadFrequency,
    Part,
    Signal,
    Treatment,
    Window,
    round_up,
)


@dataclass(frozen=True)
class StateFact:
    """One state: its name in the streamed model and its shape, the batch of one included."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Obstacle:
    """Why a model can't stream: the layer, what it does, what to use instead."""

    layer: str
    what: str
    instead: str

    def __str__(self) -> str:
        return f"'{self.layer}' {self.what} (instead: {self.instead})"


@dataclass(frozen=True)
class Insert:
    """A part put between ``source`` and ``target``; ``owner``: the layer that it is for."""

    part: Part
    source: int
    target: int
    owner: str
    states: tuple[StateFact, ...] = ()


@dataclass(frozen=True)
class Run:
    """A call made on ``inputs``, with some settings of its layer changed."""

    call: Call
    inputs: tuple[int, ...]
    treatment: Treatment
    states: tuple[StateFact, ...] = ()


@dataclass(frozen=True)
class Program:
    """What a streamed model consists of, in order.

    Attributes:
        graph: the plain model's.
        items: what to do.
        output: wire of the output.
        signal: the output's.
        clock: state of the frame counter, if warm-up frames have to be told from others.
        clock_limit: the count at which it stops.
        step: input frames that a chunk must be a multiple of.
        hop: input frames that users call a frame: samples between two windows where the model takes samples.
        due: input frames from the reset until the clip's answer is there; None: it has no whole-clip output.
        obstacles: what is in the way; then the rest is a guess.
    """

    graph: Graph
    items: tuple[Insert | Run, ...]
    output: int
    signal: Signal
    clock: StateFact | None
    clock_limit: int
    step: int
    hop: int
    due: int | None
    obstacles: tuple[Obstacle, ...]

    @property
    def states(self) -> tuple[StateFact, ...]:
        """All states, in the order of their names."""
        clock = () if self.clock is None else (self.clock,)
        return (*clock, *(state for item in self.items for state in item.states))


def plan_stream(model: keras.Model, look_ahead: bool = False, chunk: int = 0) -> Program:
    """Plan the stream of a plain model; obstacles are noted, not raised.

    Args:
        model: the plain model.
        look_ahead: whether answers may come later, for the sake of 'same' padding.
        chunk: input frames a call, a multiple of the program's ``step``: the clip's answer has to fall to the
            end of a call; 0: the smallest.

    Raises:
        ConfigError: the model has no graph to walk.
    """
    graph = read_graph(model)
    program = _Planner(graph, Wish(look_ahead)).program()
    if program.due:  # windows that are complete earlier have to wait: plan again, now that the time is known
        due = round_up(program.due, chunk or program.step)
        program = _Planner(graph, Wish(look_ahead, due)).program()
    return program


@dataclass
class _Planner:
    """The walk through one graph."""

    graph: Graph
    wish: Wish
    signals: dict[int, Signal] = field(default_factory=dict)
    alias: dict[int, int] = field(default_factory=dict)  # a wire of the graph → the wire that holds it here
    inserted: dict[tuple[int, Part], int] = field(default_factory=dict)
    items: list[Insert | Run] = field(default_factory=list)
    obstacles: list[Obstacle] = field(default_factory=list)
    dues: list[int] = field(default_factory=list)
    warm_up: int = 0
    hop: int = 1

    def __post_init__(self):
        self.wires = itertools.count(max(self.graph.shapes) + 1)
        self.shapes = dict(self.graph.shapes)

    def program(self) -> Program:
        self._look_at_ends()
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
        due = (self.wish.due or round_up(max(self.dues), step)) if self.dues else None
        items, clock = _named(self.items, self.warm_up > 0)
        obstacles = tuple(self.obstacles)
        return Program(
            self.graph, items, self.alias[output], signal, clock, self.warm_up, step, self.hop, due, obstacles
        )

    def _look_at_ends(self) -> None:
        for ends, name in ((self.graph.inputs, "input"), (self.graph.outputs, "output")):
            if len(ends) > 1:
                what, instead = f"is one of {len(ends)}", f"a model with one {name}"
                self.obstacles.append(Obstacle(name, what, instead))

    def _add(self, call: Call) -> None:
        signals = [self.signals[wire] for wire in call.inputs]
        try:
            treatment = treat(call, signals, self.wish)
        except CannotStream as error:
            self.obstacles.append(Obstacle(call.layer.name, error.what, error.instead))
            treatment = Treatment(_guess(call, signals))
        self._note(call, signals, treatment)
        before = treatment.before or ((),) * len(call.inputs)
        inputs = tuple(
            self._insert(self.alias[wire], parts, call.layer.name)
            for wire, parts in zip(call.inputs, before, strict=True)
        )
        self.signals.update(dict.fromkeys(call.outputs, treatment.output))
        if treatment.passes:
            self.alias.update(dict.fromkeys(call.outputs, inputs[0]))
            return
        self.alias.update((wire, wire) for wire in call.outputs)
        self.items.append(Run(call, inputs, treatment))

    def _note(self, call: Call, signals: list[Signal], treatment: Treatment) -> None:
        """What the whole model has to know of this call."""
        self.dues += treatment.dues
        self.warm_up = max(self.warm_up, treatment.warm_up)
        is_first_window = treatment.output.stride > 1 and signals[0] == Signal()
        if is_first_window and len(self.graph.shapes[self.graph.inputs[0]]) == 2:
            self.hop = treatment.output.stride

    def _insert(self, wire: int, parts: tuple[Part, ...], owner: str) -> int:
        """The wire behind the parts; a part that this wire has already isn't put in twice."""
        for part in parts:
            if (wire, part) not in self.inserted:
                target = self.inserted[wire, part] = next(self.wires)
                self.shapes[target] = _shape_behind(part, self.shapes[wire])
                states = _states_of(part, self.shapes[wire], owner)
                self.items.append(Insert(part, wire, target, owner, states))
                if isinstance(part, Mask):
                    self.warm_up = max(self.warm_up, part.warm_up)
            wire = self.inserted[wire, part]
        return wire


def _guess(call: Call, signals: list[Signal]) -> Signal:
    """A signal behind an obstacle, so that the walk can go on and find the next one."""
    signal = signals[0]
    before, after = call.input_shapes[0], call.output_shapes[0]
    if len(after) < 3:
        return Signal(whole=True)
    shrinks = before[1] and after[1] and not signal.whole
    stride = max(1, round(before[1] / after[1])) if shrinks else 1
    return replace(signal, stride=signal.stride * stride, delay=max(0, signal.delay))


def _shape_behind(part: Part, shape: Shape) -> Shape:
    """Of the tensor behind a part; its length in time is left as it is."""
    if isinstance(part, PadFrequency):
        return (*shape[:2], part.left + shape[2] + part.right, *shape[3:])
    return shape


def _states_of(part: Part, shape: Shape, owner: str) -> tuple[StateFact, ...]:
    """The state that a part keeps before a tensor of this shape, still without its number."""
    frames = part.frames if isinstance(part, History | Delay) else 0
    if isinstance(part, Window):
        frames = part.frames - 1
    return (StateFact(owner, (1, frames, *shape[2:])),) if frames else ()


def _named(items: list[Insert | Run], with_clock: bool) -> tuple[tuple[Insert | Run, ...], StateFact | None]:
    """The same items, their states named by number and layer; and the clock's state, which is the first."""
    numbers = itertools.count()
    clock = _numbered(numbers, StateFact("frame_index", (1, 1))) if with_clock else None
    named = []
    for item in items:
        if isinstance(item, Run) and item.treatment.recurrent:
            item = replace(item, states=_recurrent_states(item.call))
        states = tuple(_numbered(numbers, state) for state in item.states)
        named.append(replace(item, states=states))
    return tuple(named), clock


def _recurrent_states(call: Call) -> tuple[StateFact, ...]:
    sizes: Any = call.layer.cell.state_size
    sizes = sizes if isinstance(sizes, list | tuple) else [sizes]
    return tuple(StateFact(call.layer.name, (1, size)) for size in sizes)


def _numbered(numbers: itertools.count, state: StateFact) -> StateFact:
    return replace(state, name=f"state_{next(numbers):02d}_{state.name}")
