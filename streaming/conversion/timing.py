"""Time in a streamed model: what a layer does to stride and delay, and what must stand before it.

Theory
------
The plain model sees a clip of frames (axis 1); the streamed one sees them in chunks, and has no end. Every
tensor with a time axis has a *stride* (input frames that one of its frames stands for) and a *delay*: frame n
of the stream is frame n - delay of the plain model's tensor on the same recording. Frames n < delay are
*warm-up*: the plain model has no such frame, what they hold must reach no result. A delay of -P says that P
zero frames of padding stand before the stream's first frame.

One state serves all layers with a window: `History(B)` keeps the last B frames before the chunk, zeros at
first, and puts them before it; the layer then runs 'valid' on the longer chunk. A layer with kernel k,
dilation d and stride s looks through a window of w = (k - 1) d + 1 frames. Given c frames, a multiple of s,
it must give c / s of them, hence w - s <= B <= w - 1; and since its windows must begin at the same frames as
in the plain model, B = -delay (mod s). One B does both::

    B = w - 1 - (w - 1 + delay) mod s        delay' = (B + delay) / s        stride' = stride · s

(B < 0, where w < s: the first -B frames of the chunk are skipped.) All else follows:

- Padding with P zero frames on the left: nothing but delay' = delay - P, for the History's first zeros *are*
  the padding. Where delay > 0, warm-up frames would stand in those zeros' place: a `Mask` zeroes them. Causal
  convolutions are a padding of (k - 1) d, then 'valid'. With stride s, a padding of w - s costs no frame of
  latency; 'causal' costs s - 1 of them.
- More padding than a window holds: a `Delay` first, until the padding fits.
- Cropping a frames on the left: delay' = delay + a.
- Branches that merge: the earlier one gets a `Delay` of the difference (a History, its oldest frames used).
  All merging layers turn zeros into zeros, so padding passes through them; a layer with a bias does not,
  hence a padded tensor must go into a layer with a window.
- Padding on the right, 'same' padding: the plain model has zeros there only at the end of the clip, the
  stream hears on. Such look-ahead is never exact for the clip's last frames; it is granted on request only,
  where the output stays per frame.
- A recurrent layer's state is carried on; a mask keeps warm-up frames out of it.
- A layer that needs the whole clip of T frames (flatten, global pooling, attention) gets a `Window(T)`: the
  newest T frames. What follows runs as in the plain model, once a call. The clip's answer is *due* once
  (T + delay) · stride input frames are in; where several such windows are due at unequal times, all wait for
  the last one, and that one for the end of the call that it is due in: so a clip is answered exactly,
  however many frames a call takes.

A stream without end agrees with the plain model on a recording without end; on the plain model's *clips* it
agrees from a reset state, because padding stands at the beginning of each clip and of no second one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any


class CannotStream(Exception):
    """A layer has no streaming counterpart, as it is set.

    Args:
        what: what can't be done, without the layer's name.
        instead: what to use.
    """

    def __init__(self, what: str, instead: str):
        super().__init__(what)
        self.what, self.instead = what, instead


@dataclass(frozen=True)
class Signal:
    """How a tensor's time relates to the input's.

    Attributes:
        stride: input frames that a frame stands for.
        delay: frame n of the stream is frame n - delay of the plain model's tensor.
        ahead: whether the clip's last frames depend on padding at its end, which a stream doesn't know.
        whole: whether it is computed from the whole clip (window), once a call; the rest has no meaning then.
    """

    stride: int = 1
    delay: int = 0
    ahead: bool = False
    whole: bool = False


@dataclass(frozen=True)
class History:
    """Put the last ``frames`` frames before the chunk: (1, c, …) → (1, frames + c, …)."""

    frames: int


@dataclass(frozen=True)
class Skip:
    """Leave out the chunk's first ``frames`` frames."""

    frames: int


@dataclass(frozen=True)
class Delay:
    """Give out every frame ``frames`` frames later: (1, c, …) → (1, c, …)."""

    frames: int


@dataclass(frozen=True)
class Window:
    """The newest ``frames`` frames: (1, c, …) → (1, frames, …)."""

    frames: int


@dataclass(frozen=True)
class Mask:
    """Zero what comes before the input frame ``warm_up``, seen in frames of ``stride`` input frames."""

    warm_up: int
    stride: int


@dataclass(frozen=True)
class PadFrequency:
    """Zeros at both ends of axis 2: (1, c, f, …) → (1, c, left + f + right, …)."""

    left: int
    right: int


Part = History | Skip | Delay | Window | Mask | PadFrequency


@dataclass(frozen=True)
class Treatment:
    """What becomes of one call in the stream.

    Attributes:
        output: the signal of its results.
        before: parts to put before it, for each of its inputs.
        changes: settings of the layer that change.
        passes: the call vanishes, its input is its output.
        recurrent: the layer's state is to be carried from call to call.
        warm_up: input frames that a recurrent state must not see.
        dues: input frames from the reset until the whole clip is in the windows that it uses.
    """

    output: Signal
    before: tuple[tuple[Part, ...], ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    passes: bool = False
    recurrent: bool = False
    warm_up: int = 0
    dues: tuple[int, ...] = ()


def round_up(frames: int, step: int) -> int:
    """The next multiple of ``step``."""
    return -(-frames // step) * step


def through_window(signal: Signal, window: int, stride: int) -> tuple[tuple[Part, ...], Signal]:
    """Parts and signal of a layer that sees ``window`` frames at a time and moves on by ``stride``."""
    keep = window - 1 - (window - 1 + signal.delay) % stride
    wait = max(0, -signal.delay - keep)  # padding that the window can't hold
    parts: list[Part] = [Delay(wait)] if wait else []
    if keep:
        parts.append(History(keep) if keep > 0 else Skip(-keep))
    delay = (keep + signal.delay + wait) // stride
    return tuple(parts), replace(signal, delay=delay, stride=signal.stride * stride)


def padded(signal: Signal, before: int) -> tuple[tuple[Part, ...], Signal]:
    """Parts and signal of ``before`` zero frames on the left."""
    parts = (Mask(signal.delay * signal.stride, signal.stride),) if before and signal.delay > 0 else ()
    return parts, replace(signal, delay=signal.delay - before)


def aligned(signals: Sequence[Signal]) -> tuple[tuple[tuple[Part, ...], ...], Signal]:
    """Parts and signal of branches of one stride that merge."""
    latest = max(signal.delay for signal in signals)
    waits = [latest - signal.delay for signal in signals]
    parts = tuple((Delay(wait),) if wait else () for wait in waits)
    return parts, replace(signals[0], delay=latest, ahead=any(signal.ahead for signal in signals))


def until_due(
    signal: Signal, frames: int | None, due: int
) -> tuple[tuple[Part, ...], Signal, tuple[int, ...]]:
    """Parts and signal that let a clip of ``frames`` frames end with the input frame ``due``; its own due.

    Args:
        signal: of the clip.
        frames: T; None: unknown, then nothing can be said.
        due: when all windows of the model are to be complete; 0: not known yet.
    """
    if frames is None:
        return (), signal, ()
    own = (frames + signal.delay) * signal.stride
    wait = (due - own) // signal.stride if due else 0
    parts = (Delay(wait),) if wait else ()
    return parts, replace(signal, delay=signal.delay + wait), (own,)


def whole_window(signal: Signal, frames: int | None, due: int) -> tuple[tuple[Part, ...], tuple[int, ...]]:
    """Parts that hold the clip of ``frames`` frames, and when it is in.

    Raises:
        CannotStream: the clip's length isn't fixed, or its end isn't known in a stream.
    """
    if frames is None:
        raise CannotStream(
            "needs the whole clip, but the clip has no fixed length",
            "build the model for clips of one length",
        )
    refuse_look_ahead(signal)
    parts, _, dues = until_due(signal, frames, due)
    return (*parts, Window(frames)), dues


def refuse_look_ahead(signal: Signal) -> None:
    """Raises CannotStream where the clip's last frames depend on padding at its end."""
    if signal.ahead:
        raise CannotStream(
            "needs the whole clip, whose last frames another layer computes from padding at the clip's end",
            "use causal padding in the layers before it",
        )
