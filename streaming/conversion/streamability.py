"""A plain model → can it stream, what is in the way, and what its stream will be like."""

from __future__ import annotations

import math
from dataclasses import dataclass

import keras

from streaming.conversion.plan import Obstacle, Program, StateFact, plan_stream
from utils.errors import ConfigError


@dataclass(frozen=True)
class StreamFacts:
    """What a caller of a streamed model has to know.

    Attributes:
        step: input frames that a chunk must be a multiple of (samples, where the model takes samples).
        hop: input frames that ``frames_per_call`` counts as one: 1, or the samples between two windows.
        stride: input frames of an output frame; None: one answer a call, for the newest window.
        delay: output frames until the plain model's first one; None: one answer a call.
        window: input frames from the reset until the answer is the plain model's for its clip, at the end of
            a call; None: per frame.
        states: what is carried from call to call.
    """

    step: int
    hop: int
    stride: int | None
    delay: int | None
    window: int | None
    states: tuple[StateFact, ...]

    @property
    def frames_per_call(self) -> int:
        """The fewest frames that a call can take."""
        return math.lcm(self.step, self.hop) // self.hop

    @property
    def state_values(self) -> int:
        """Numbers in all states together."""
        return sum(math.prod(state.shape) for state in self.states)


def check_streamable(model: keras.Model, look_ahead: bool = False) -> list[Obstacle]:
    """All that keeps a model from streaming, with what to use instead; empty: it streams.

    Args:
        model: the plain model.
        look_ahead: whether answers may come later, for the sake of 'same' padding.
    """
    return list(plan_stream(model, look_ahead).obstacles)


def require_streamable(
    model: keras.Model, look_ahead: bool = False, frames_per_call: int | None = None
) -> Program:
    """The program of the model's stream; for the arguments see `stream_facts`.

    Raises:
        ConfigError: it can't stream (each obstacle is named), or not with so many frames a call.
    """
    program = plan_stream(model, look_ahead)
    if program.obstacles:
        what = "can't stream: " + "; ".join(map(str, program.obstacles))
        raise ConfigError(what, where=f"model '{model.name}'")
    if frames_per_call is None:
        return program
    return plan_stream(model, look_ahead, chunk_frames(model.name, program, frames_per_call))


def chunk_frames(name: str, program: Program, frames_per_call: int) -> int:
    """Input frames (samples, where the model takes samples) of a chunk.

    Raises:
        ConfigError: the model's strides don't allow this many.
    """
    chunk = frames_per_call * program.hop
    if chunk < 1 or chunk % program.step:
        allowed = f"a multiple of {program.step}"
        if program.hop > 1:
            allowed += f" samples; a frame is {program.hop} samples"
        what = f"frames_per_call is {frames_per_call}, but the strides of '{name}' need {allowed}"
        raise ConfigError(what, hint=f"for example frames_per_call={max(1, program.step // program.hop)}")
    return chunk


def stream_facts(
    model: keras.Model, look_ahead: bool = False, frames_per_call: int | None = None
) -> StreamFacts:
    """What the model's stream will be like.

    Args:
        model: the plain model.
        look_ahead: whether answers may come later, for the sake of 'same' padding.
        frames_per_call: as `to_mode` takes it; None: the fewest possible.

    Raises:
        ConfigError: it can't stream (each obstacle is named), or not with so many frames a call.
    """
    program = require_streamable(model, look_ahead, frames_per_call)
    signal = program.signal
    return StreamFacts(
        step=program.step,
        hop=program.hop,
        stride=None if signal.whole else signal.stride,
        delay=None if signal.whole else signal.delay,
        window=program.due if signal.whole else None,
        states=program.states,
    )
