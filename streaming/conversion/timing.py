"""Computes stride and delay of each layer in a stream, and the parts (history, delay, mask) that it needs.

Theory
------
The plain model (as it was trained) processes a clip of frames (axis 1); the streamed model processes an
endless sequence of chunks. Every tensor with a time axis has a *stride* (input frames per frame) and a
*delay*: frame n of the stream is frame n - delay of the plain model's tensor for the same recording. Frames
n < delay are *warm-up*: the plain model has no such frames, and they must not influence any result. A delay
of -P means that P zero frames of padding precede the first frame of the stream.

All layers with a window use one kind of state: `LastFrames(B)` keeps the last B frames before the chunk,
initially zeros, and prepends them; the layer then runs with 'valid' padding on the longer chunk. A layer
with kernel k, dilation d and stride s has a window of w = (k - 1) d + 1 frames. For c frames, a multiple of
s, it must return c / s frames, hence w - s <= B <= w - 1; and since its windows must start at the same
frames as in the plain model, B = -delay (mod s). Both conditions have one solution::

    B = w - 1 - (w - 1 + delay) mod s        delay' = (B + delay) / s        stride' = stride · s

(B < 0 if w < s: the first -B frames of the chunk are skipped.) The rest follows:

- Padding with P zero frames on the left: only delay' = delay - P, because the initial zeros of the LastFrames
  *are* the padding. If delay > 0, warm-up frames would take the place of those zeros: a `Mask` sets them to
  zero. A causal convolution is a padding of (k - 1) d, then 'valid'. With stride s, a padding of w - s adds
  no latency; 'causal' adds s - 1 frames.
- More padding than a window can hold: first a `Delay`, until the padding fits.
- Cropping a frames on the left: delay' = delay + a.
- Branches that merge: the earlier one gets a `Delay` of the difference. All merging layers map zeros to
  zeros, so that padding passes through them; a layer with a bias doesn't, so a padded tensor must go into a
  layer with a window.
- Padding on the right, and 'same' padding, are obstacles: in the plain model there are zeros only at the end
  of the clip, while the stream continues.
- A recurrent layer keeps its state between calls; a mask excludes warm-up frames.
- A layer that needs the whole clip of T frames (flatten, global pooling, attention) gets a `Window(T)`: the
  latest T frames. The following layers run as in the plain model, once per call. The output for the clip is
  *due* when (T + delay) · stride input frames have arrived. If several windows are due at different times,
  all wait for the last one, and that one waits for the end of its call: the output for a clip is exact for
  any number of frames per call.

An endless stream equals the plain model on an endless recording. It equals the plain model on a *clip* after
a reset, because each clip starts with padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any


class CannotStream(Exception):
    """A layer can't stream with its settings.

    Args:
        reason: what the layer does, without its name.
        instead: what to use.
    """

    def __init__(self, reason: str, instead: str):
        super().__init__(reason)
        self.reason, self.instead = reason, instead


@dataclass(frozen=True)
class Signal:
    """How a tensor's time relates to the input's.

    Attributes:
        stride: input frames per frame.
        delay: frame n of the stream is frame n - delay of the plain model's tensor.
        whole: whether it is computed from the whole clip (window), once per call; the rest is then undefined.
    """

    stride: int = 1
    delay: int = 0
    whole: bool = False


@dataclass(frozen=True)
class LastFrames:
    """Prepend the previous ``frames`` frames to the chunk: (1, c, …) → (1, frames + c, …)."""

    frames: int


@dataclass(frozen=True)
class Skip:
    """Drop the first ``frames`` frames of the chunk."""

    frames: int


@dataclass(frozen=True)
class Delay:
    """Return every frame ``frames`` frames later: (1, c, …) → (1, c, …)."""

    frames: int


@dataclass(frozen=True)
class Window:
    """Return the latest ``frames`` frames: (1, c, …) → (1, frames, …)."""

    frames: int


@dataclass(frozen=True)
class Mask:
    """Set frames before the input frame ``warm_up`` to zero; a frame has ``stride`` input frames."""

    warm_up: int
    stride: int


@dataclass(frozen=True)
class PadFrequency:
    """Pad axis 2 with zeros: (1, c, f, …) → (1, c, left + f + right, …)."""

    left: int
    right: int


Part = LastFrames | Skip | Delay | Window | Mask | PadFrequency


@dataclass(frozen=True)
class LayerPlan:
    """How a layer call runs in the stream.

    Attributes:
        output: the signal of its results.
        before: parts to insert before it, for each of its inputs.
        changes: changed settings of the layer.
        removed: whether the call is left out, its input being its output.
        recurrent: whether the layer's state is kept from call to call.
        warm_up: input frames that a recurrent state must ignore.
        dues: input frames from the reset until each of its windows holds the whole clip.
    """

    output: Signal
    before: tuple[tuple[Part, ...], ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    removed: bool = False
    recurrent: bool = False
    warm_up: int = 0
    dues: tuple[int, ...] = ()


def round_up(frames: int, step: int) -> int:
    """The next multiple of ``step``."""
    return -(-frames // step) * step


def through_window(signal: Signal, window: int, stride: int) -> tuple[tuple[Part, ...], Signal]:
    """Parts and signal of a layer with a window of ``window`` frames that advances by ``stride``."""
    keep = window - 1 - (window - 1 + signal.delay) % stride
    wait = max(0, -signal.delay - keep)  # padding beyond what the window can hold
    parts: list[Part] = [Delay(wait)] if wait else []
    if keep:
        parts.append(LastFrames(keep) if keep > 0 else Skip(-keep))
    delay = (keep + signal.delay + wait) // stride
    return tuple(parts), replace(signal, delay=delay, stride=signal.stride * stride)


def padded(signal: Signal, before: int) -> tuple[tuple[Part, ...], Signal]:
    """Parts and signal of ``before`` zero frames on the left."""
    parts = (Mask(signal.delay * signal.stride, signal.stride),) if before and signal.delay > 0 else ()
    return parts, replace(signal, delay=signal.delay - before)


def aligned(signals: Sequence[Signal]) -> tuple[tuple[tuple[Part, ...], ...], Signal]:
    """Parts and signal of merging branches with the same stride."""
    latest = max(signal.delay for signal in signals)
    waits = [latest - signal.delay for signal in signals]
    parts = tuple((Delay(wait),) if wait else () for wait in waits)
    return parts, replace(signals[0], delay=latest)


def until_due(
    signal: Signal, frames: int | None, due: int
) -> tuple[tuple[Part, ...], Signal, tuple[int, ...]]:
    """Parts and signal with which a clip of ``frames`` frames ends at the input frame ``due``; its own due.

    Args:
        signal: stride and delay of the clip.
        frames: T; None if unknown: then nothing is delayed.
        due: input frame at which all windows of the model are complete; 0: not known yet.
    """
    if frames is None:
        return (), signal, ()
    own = (frames + signal.delay) * signal.stride
    wait = (due - own) // signal.stride if due else 0
    parts = (Delay(wait),) if wait else ()
    return parts, replace(signal, delay=signal.delay + wait), (own,)


def whole_window(signal: Signal, frames: int | None, due: int) -> tuple[tuple[Part, ...], tuple[int, ...]]:
    """Parts that collect the clip of ``frames`` frames, and when it is complete.

    Raises:
        CannotStream: the clip has no fixed length.
    """
    if frames is None:
        raise CannotStream(
            "needs the whole clip, but the clip has no fixed length",
            "build the model for clips of one length",
        )
    parts, _, dues = until_due(signal, frames, due)
    return (*parts, Window(frames)), dues
