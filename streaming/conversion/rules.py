"""A layer and the signals that reach it → what becomes of it in a stream (`streaming/conversion/timing.py`
says why).

A layer of one's own takes part through a class attribute or property, without knowing of streaming:

- ``frame_wise = True``: an output frame depends on the same frame of its inputs alone (axis 1 is time);
- ``streaming_window = (window, stride)``: it looks through a window of input frames and moves on by
  ``stride`` frames, on whole windows only ('valid'); it must take inputs of any length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from keras import layers

from streaming.conversion.graph import Call
from streaming.conversion.timing import (
    CannotStream,
    Delay,
    History,
    PadFrequency,
    Signal,
    Treatment,
    aligned,
    padded,
    refuse_look_ahead,
    through_window,
    until_due,
    whole_window,
)

FRAME_WISE_HINT = (
    "a layer that streams; one of your own that treats each frame alone says so: frame_wise = True"
)


@dataclass(frozen=True)
class Wish:
    """What holds for the whole model.

    Attributes:
        look_ahead: whether convolutions may be answered late, for the sake of frames to come.
        due: the input frame at which all windows over the clip are to be complete; 0: not known yet.
    """

    look_ahead: bool = False
    due: int = 0


def treat(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    """How ``call`` is done in a stream.

    Raises:
        CannotStream: it can't be, as it is set.
    """
    if all(signal.whole for signal in signals):
        return Treatment(Signal(whole=True))
    if getattr(call.layer, "data_format", None) == "channels_first":
        raise CannotStream("has its channels first: axis 1 isn't time", 'data_format="channels_last"')
    if any(signal.whole for signal in signals):
        return _whole_clip(call, signals, wish)
    return _rule_of(call.layer)(call, signals, wish)


Rule = Callable[[Call, list[Signal], Wish], Treatment]


def _rule_of(layer) -> Rule:
    if hasattr(layer, "streaming_window"):
        return _declared_window
    if getattr(layer, "frame_wise", False):
        return _declared_frame_wise
    for types, rule in _RULES:
        if isinstance(layer, types):
            return rule
    kind = type(layer).__name__
    if not isinstance(layer, layers.Layer):
        raise CannotStream(
            f"is an operation outside of any layer ({kind})", f"a layer, such as layers.{kind}"
        )
    raise CannotStream(f"is of a type that isn't known to stream ({kind})", FRAME_WISE_HINT)


def _vanishes(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    return Treatment(signals[0], passes=True)


def _frame_wise(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    if isinstance(call.layer, layers.PReLU) and 1 not in (call.layer.shared_axes or ()):
        raise CannotStream("learns a slope for each frame of the clip", "shared_axes=[1]")
    axes = getattr(call.layer, "axis", -1 if isinstance(call.layer, layers.Dense) else None)
    axes = tuple(axes) if isinstance(axes, list | tuple) else (axes,)
    if 1 in [axis % len(call.input_shapes[0]) for axis in axes if axis is not None]:
        raise CannotStream("works along time (axis 1)", "the last of at least three axes")
    return _declared_frame_wise(call, signals, wish)


def _declared_frame_wise(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    _refuse_unequal_strides(signals)
    parts, output = aligned([_unpadded(signal) for signal in signals])
    return Treatment(output, before=parts)


def _unpadded(signal: Signal) -> Signal:
    """The signal, for a layer that may make something else of a zero.

    Raises:
        CannotStream: padding stands before the stream's first frame.
    """
    if signal.delay < 0:
        raise CannotStream(
            f"meets {-signal.delay} frames of padding, and is no convolution or pooling",
            "pad directly before the convolution",
        )
    return signal


def _declared_window(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    if len(signals) > 1:
        raise CannotStream("has a window over several inputs", "a layer with one input")
    parts, output = through_window(signals[0], *call.layer.streaming_window)
    return Treatment(output, before=(parts,))


def _convolution(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    layer, signal = call.layer, signals[0]
    window = (layer.kernel_size[0] - 1) * layer.dilation_rate[0] + 1
    stride = layer.strides[0]
    before, after = 0, 0
    if layer.padding == "causal":
        before = window - 1
    elif layer.padding == "same" and window > 1:
        before = (window - 1) // 2
        after = window - 1 - before
        if stride > 1:
            raise CannotStream("strides over time with padding 'same'", "padding before it, then 'valid'")
    return _padded_window(call, signal, wish, (before, after), (window, stride))


def _padded_window(
    call: Call, signal: Signal, wish: Wish, padding: tuple[int, int], window: tuple[int, int]
) -> Treatment:
    """A convolution over ``padding`` frames at both ends; (window, stride) of its time axis."""
    mask, signal = padded(signal, padding[0])
    parts, output = through_window(signal, *window)
    frequency = _frequency_padding(call) if call.layer.padding == "same" else ()
    changes = {} if call.layer.padding == "valid" else {"padding": "valid"}
    ahead = _allow_look_ahead(padding[1], wish) or output.ahead
    return Treatment(replace(output, ahead=ahead), (mask + parts + frequency,), changes)


def _allow_look_ahead(frames: int, wish: Wish) -> bool:
    """Whether there is look-ahead.

    Raises:
        CannotStream: there is, but it isn't wished for.
    """
    if frames and not wish.look_ahead:
        raise CannotStream(
            f"pads time on the right: it looks {frames} frames ahead",
            "causal padding in time, or look_ahead=True if an answer may come later",
        )
    return frames > 0


def _frequency_padding(call: Call) -> tuple[PadFrequency, ...]:
    """What 'same' puts at both ends of axis 2 of a (batch, time, frequency, channels) tensor."""
    layer, shape = call.layer, call.input_shapes[0]
    if len(shape) != 4:
        return ()
    window = (layer.kernel_size[1] - 1) * layer.dilation_rate[1] + 1
    stride = layer.strides[1]
    total = max((math.ceil(shape[2] / stride) - 1) * stride + window - shape[2], 0)
    return (PadFrequency(total // 2, total - total // 2),) if total else ()


def _pooling(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    window, stride = call.layer.pool_size[0], call.layer.strides[0]
    if call.layer.padding == "same" and window > 1:
        raise CannotStream("pools over time with padding 'same'", "padding='valid'")
    parts, output = through_window(signals[0], window, stride)
    return Treatment(output, before=(parts,))


def _zero_padding(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    (before, after), frequency = _both_axes(call.layer.padding, call)
    ahead = _allow_look_ahead(after, wish) or signals[0].ahead
    mask, output = padded(signals[0], before)
    parts = (*mask, PadFrequency(*frequency)) if any(frequency) else mask
    return Treatment(replace(output, ahead=ahead), (parts,), passes=True)


def _cropping(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    (before, _), frequency = _both_axes(call.layer.cropping, call)
    output = replace(signals[0], delay=signals[0].delay + before)
    changes = {"cropping": ((0, 0), frequency)} if any(frequency) else {}
    return Treatment(output, changes=changes, passes=not changes)


def _both_axes(setting, call: Call) -> tuple[tuple[int, int], tuple[int, int]]:
    """(time, frequency) of a padding or cropping; nothing for the frequency of a 1-D layer."""
    if len(call.input_shapes[0]) == 3:
        return tuple(setting), (0, 0)
    time, frequency = setting
    return tuple(time), tuple(frequency)


def _refuse_unequal_strides(signals: list[Signal]) -> None:
    strides = sorted({signal.stride for signal in signals})
    if len(strides) > 1:
        raise CannotStream(
            f"merges branches of unequal strides ({', '.join(map(str, strides))})", "the same strides in both"
        )


def _merging(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    _refuse_unequal_strides(signals)
    if len({len(shape) for shape in call.input_shapes}) > 1 or len({s[1] for s in call.input_shapes}) > 1:
        raise CannotStream("merges branches of unequal length", "Cropping1D or Cropping2D in the longer one")
    if isinstance(call.layer, layers.Concatenate) and call.layer.axis % len(call.input_shapes[0]) == 1:
        raise CannotStream("joins its inputs along time (axis 1)", "axis=-1")
    parts, output = aligned(signals)
    return Treatment(output, before=parts)


def _recurrent(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    layer = call.layer
    for setting in ("go_backwards", "stateful", "return_state"):
        if getattr(layer, setting):
            raise CannotStream(f"is built with {setting}=True", f"{setting}=False")
    if len(signals) > 1:
        raise CannotStream("gets its first state from another layer", "a state that begins with zeros")
    signal = _unpadded(signals[0])
    parts, dues = (), ()
    if not layer.return_sequences:
        refuse_look_ahead(signal)
        parts, signal, dues = until_due(signal, call.input_shapes[0][1], wish.due)
    return Treatment(
        signal if layer.return_sequences else Signal(whole=True),
        before=(parts,),
        recurrent=True,
        warm_up=signal.delay * signal.stride,
        dues=dues,
    )


def _bidirectional(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    raise CannotStream("is bidirectional: it hears the clip's end first", "the same layer in one direction")


def _reshaping(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    """A Reshape that keeps time, one that puts frames side by side (a stride), or one that ends it.

    Zeros stay zeros here: padding passes through.
    """
    before, after = call.input_shapes[0], call.output_shapes[0]
    sizes = before[2:], after[2:]
    if after[1] != 1 and None not in (*sizes[0], *sizes[1]):
        group, rest = divmod(math.prod(sizes[1]), math.prod(sizes[0]))
        if len(after) > 2 and rest == 0 and group > 0:
            return _side_by_side(signals[0], group, after[2:])
    if before[1] == after[1] == 1:  # a single frame that stays one
        return _side_by_side(signals[0], 1, after[2:])
    return _whole_clip(call, signals, wish)


def _side_by_side(signal: Signal, group: int, shape: tuple[int, ...]) -> Treatment:
    """``group`` frames become one: a window of as many frames that moves on by as many."""
    parts, output = through_window(signal, group, group)
    # A Reshape can't leave over the newest frames, as a 'valid' convolution does: they wait.
    parts = tuple(Delay(part.frames) if isinstance(part, History) else part for part in parts)
    return Treatment(output, before=(parts,), changes={"target_shape": (-1, *shape)})


def _permuting(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    if call.layer.dims[0] == 1:
        return Treatment(signals[0])
    return _whole_clip(call, signals, wish)


def _whole_clip(call: Call, signals: list[Signal], wish: Wish) -> Treatment:
    """Runs as in the plain model, on the newest window of frames."""
    before, dues = [], []
    for shape, signal in zip(call.input_shapes, signals, strict=True):
        parts, due = ((), ()) if signal.whole else whole_window(signal, shape[1], wish.due)
        before.append(parts)
        dues += due
    return Treatment(Signal(whole=True), before=tuple(before), dues=tuple(dues))


_RULES: tuple[tuple[tuple[type, ...], Rule], ...] = (
    (
        (
            layers.Dropout,
            layers.SpatialDropout1D,
            layers.SpatialDropout2D,
            layers.GaussianDropout,
            layers.GaussianNoise,
            layers.ActivityRegularization,
            layers.Identity,
        ),
        _vanishes,
    ),
    (
        (
            layers.Conv1D,
            layers.Conv2D,
            layers.DepthwiseConv1D,
            layers.DepthwiseConv2D,
            layers.SeparableConv1D,
            layers.SeparableConv2D,
        ),
        _convolution,
    ),
    (
        (layers.MaxPooling1D, layers.MaxPooling2D, layers.AveragePooling1D, layers.AveragePooling2D),
        _pooling,
    ),
    ((layers.ZeroPadding1D, layers.ZeroPadding2D), _zero_padding),
    ((layers.Cropping1D, layers.Cropping2D), _cropping),
    (
        (
            layers.Add,
            layers.Subtract,
            layers.Multiply,
            layers.Average,
            layers.Maximum,
            layers.Minimum,
            layers.Concatenate,
        ),
        _merging,
    ),
    ((layers.SimpleRNN, layers.GRU, layers.LSTM), _recurrent),
    ((layers.Bidirectional,), _bidirectional),
    ((layers.Reshape,), _reshaping),
    ((layers.Permute,), _permuting),
    (
        (
            layers.Flatten,
            layers.GlobalAveragePooling1D,
            layers.GlobalAveragePooling2D,
            layers.GlobalMaxPooling1D,
            layers.GlobalMaxPooling2D,
            layers.MultiHeadAttention,
            layers.Attention,
            layers.AdditiveAttention,
        ),
        _whole_clip,
    ),
    (
        (
            layers.Dense,
            layers.BatchNormalization,
            layers.LayerNormalization,
            layers.RMSNormalization,
            layers.UnitNormalization,
            layers.Normalization,
            layers.Activation,
            layers.ReLU,
            layers.LeakyReLU,
            layers.ELU,
            layers.PReLU,
            layers.Softmax,
            layers.Rescaling,
            layers.Embedding,
            layers.TimeDistributed,
        ),
        _frame_wise,
    ),
)
