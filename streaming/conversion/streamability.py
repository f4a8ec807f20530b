"""Checks whether a model can stream (else names the obstacles), and gives the geometry of its stream.

The geometry is what callers need: chunk size, stride, delay and states. "Plain model": as it was trained.
"""

import math
from dataclasses import dataclass

import keras

from streaming.conversion.plan import Obstacle, StateSpec, StreamPlan, plan_stream
from utils.errors import ConfigError


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
