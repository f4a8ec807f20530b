"""Plans how each type of Keras layer runs in a stream, from the timing of its inputs (theory: ``timing``).

A custom layer declares how it streams by a class attribute or property:

- ``frame_wise = True``: an output frame depends only on the same frame of its inputs (axis 1 is time);
- ``streaming_window = (window, stride)``: it has a window of input frames that advances by ``stride`` frames,
  complete windows only ('valid'); it must accept inputs of any length. ``streaming_padding`` names its
  setting, if it has one, of the number of zero frames before the first;
- ``streaming_cell``: it is recurrent, and this computes its output frame by frame, as the cell of a Keras RNN
  does: ``cell(frame, states, training=False)`` → output, next states; ``cell.state_size`` is a list. The
  states are zero at the start. A method ``streaming_chunk(frames, states)`` → outputs, next states computes
  the frames (1, c, …) of a chunk at once, for streams with chunks of any length. A layer with a
  ``state_size`` of its own needs no cell: ``streaming_chunk(frames, states, valid)`` then also takes whether
  each frame comes after the warm-up, (1, c) bool, or None.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from keras import layers

from streaming.conversion.graph import Call
from streaming.conversion.timing import (
    CannotStream,
    Delay,
    LastFrames,
    LayerPlan,
    PadFrequency,
    Part,
    Signal,
    aligned,
    padded,
    through_window,
    until_due,
    whole_window,
)

FRAME_WISE_HINT = (
    "a layer that streams; a custom layer that processes each frame alone declares it: frame_wise = True"
)

TRAINING_ONLY = (
    layers.Dropout,
    layers.SpatialDropout1D,
    layers.SpatialDropout2D,
    layers.GaussianDropout,
    layers.GaussianNoise,
    layers.ActivityRegularization,
)
"""Layers that do nothing in inference."""


def plan_layer(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    """Plan how ``call`` runs in a stream.

    ``due``: input frame at which all windows over the clip are complete; 0: not known yet.

    Raises:
        CannotStream: the layer can't stream with its settings.
    """
    if all(signal.whole for signal in signals):
        return LayerPlan(Signal(whole=True))
    if getattr(call.layer, "data_format", None) == "channels_first":
        raise CannotStream("has its channels first: axis 1 isn't time", 'data_format="channels_last"')
    if any(signal.whole for signal in signals):
        return _whole_clip(call, signals, due)
    return _rule_of(call.layer)(call, signals, due)


Rule = Callable[[Call, list[Signal], int], LayerPlan]


def _rule_of(layer: object) -> Rule:
    if hasattr(layer, "streaming_window"):
        return _declared_window
    if getattr(layer, "frame_wise", False):
        return _declared_frame_wise
    if hasattr(layer, "streaming_cell") or hasattr(layer, "streaming_chunk"):
        return _recurrent
    for types, rule in _RULES:
        if isinstance(layer, types):
            return rule
    kind = type(layer).__name__
    if not isinstance(layer, layers.Layer):
        raise CannotStream(
            f"is an operation outside of any layer ({kind})", f"a layer, such as layers.{kind}"
        )
    raise CannotStream(f"is of a type that isn't known to stream ({kind})", FRAME_WISE_HINT)


def _remove(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    return LayerPlan(signals[0], removed=True)


def _frame_wise(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    if isinstance(call.layer, layers.PReLU) and 1 not in (call.layer.shared_axes or ()):
        raise CannotStream("learns a slope for each frame of the clip", "shared_axes=[1]")
    axes = getattr(call.layer, "axis", -1 if isinstance(call.layer, layers.Dense) else None)
    axes = tuple(axes) if isinstance(axes, list | tuple) else (axes,)
    if 1 in [axis % len(call.input_shapes[0]) for axis in axes if axis is not None]:
        raise CannotStream("works along time (axis 1)", "the last of at least three axes")
    return _declared_frame_wise(call, signals, due)


def _declared_frame_wise(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    _refuse_unequal_strides(signals)
    parts, output = aligned([_unpadded(signal) for signal in signals])
    return LayerPlan(output, before=parts)


def _unpadded(signal: Signal) -> Signal:
    """The signal, for a layer that may map zeros to other values.

    Raises:
        CannotStream: padding precedes the first frame of the stream.
    """
    if signal.delay < 0:
        raise CannotStream(
            f"gets {-signal.delay} frames of padding, and is not a convolution or pooling",
            "pad directly before the convolution",
        )
    return signal


def _declared_window(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    if len(signals) > 1:
        raise CannotStream("has a window over several inputs", "a layer with one input")
    setting = getattr(call.layer, "streaming_padding", "")
    mask, signal = padded(signals[0], getattr(call.layer, setting, 0) if setting else 0)
    parts, output = through_window(signal, *call.layer.streaming_window)
    return LayerPlan(output, before=((*mask, *parts),), changes={setting: 0} if setting else {})


def _convolution(call: Call, signals: list[Signal], due: int) -> LayerPlan:
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
    _refuse_look_ahead(after)
    mask, signal = padded(signal, before)
    parts, output = through_window(signal, window, stride)
    frequency = _frequency_padding(call) if layer.padding == "same" else ()
    changes = {} if layer.padding == "valid" else {"padding": "valid"}
    return LayerPlan(output, (mask + parts + frequency,), changes)


def _refuse_look_ahead(frames: int) -> None:
    if frames:
        raise CannotStream(
            f"pads time on the right: it needs {frames} future frames", "causal padding in time"
        )


def _frequency_padding(call: Call) -> tuple[PadFrequency, ...]:
    """The 'same' padding of axis 2 of a (batch, time, frequency, channels) tensor."""
    layer, shape = call.layer, call.input_shapes[0]
    if len(shape) != 4:
        return ()
    window = (layer.kernel_size[1] - 1) * layer.dilation_rate[1] + 1
    stride = layer.strides[1]
    total = max((math.ceil(shape[2] / stride) - 1) * stride + window - shape[2], 0)
    return (PadFrequency(total // 2, total - total // 2),) if total else ()


def _pooling(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    window, stride = call.layer.pool_size[0], call.layer.strides[0]
    if call.layer.padding == "same" and window > 1:
        raise CannotStream("pools over time with padding 'same'", "padding='valid'")
    parts, output = through_window(signals[0], window, stride)
    return LayerPlan(output, before=(parts,))


def _zero_padding(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    (before, after), frequency = _both_axes(call.layer.padding, call)
    _refuse_look_ahead(after)
    mask, output = padded(signals[0], before)
    parts = (*mask, PadFrequency(*frequency)) if any(frequency) else mask
    return LayerPlan(output, (parts,), removed=True)


def _cropping(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    (before, _), frequency = _both_axes(call.layer.cropping, call)
    output = replace(signals[0], delay=signals[0].delay + before)
    changes = {"cropping": ((0, 0), frequency)} if any(frequency) else {}
    return LayerPlan(output, changes=changes, removed=not changes)


def _both_axes(setting: Sequence[Any], call: Call) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding or cropping of (time, frequency); (0, 0) for the frequency of a 1-D layer."""
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


def _merging(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    _refuse_unequal_strides(signals)
    if len({len(shape) for shape in call.input_shapes}) > 1 or len({s[1] for s in call.input_shapes}) > 1:
        raise CannotStream("merges branches of unequal length", "Cropping1D or Cropping2D in the longer one")
    if isinstance(call.layer, layers.Concatenate) and call.layer.axis % len(call.input_shapes[0]) == 1:
        raise CannotStream("joins its inputs along time (axis 1)", "axis=-1")
    parts, output = aligned(signals)
    return LayerPlan(output, before=parts)


def _recurrent(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    layer = call.layer
    for setting in ("go_backwards", "stateful", "return_state"):
        if getattr(layer, setting, False):
            raise CannotStream(f"is built with {setting}=True", f"{setting}=False")
    if len(signals) > 1:
        raise CannotStream("gets its initial state from another layer", "an initial state of zeros")
    signal = _unpadded(signals[0])
    parts, dues = (), ()
    every_frame = getattr(layer, "return_sequences", True)
    if not every_frame:
        parts, signal, dues = until_due(signal, call.input_shapes[0][1], due)
    return LayerPlan(
        signal if every_frame else Signal(whole=True),
        before=(parts,),
        recurrent=True,
        warm_up=signal.delay * signal.stride,
        dues=dues,
    )


def _bidirectional(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    raise CannotStream("is bidirectional: it needs the clip's end first", "the same layer in one direction")


def _reshaping(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    """A Reshape that keeps the time axis, one that concatenates frames (a stride), or one that removes it.

    Zeros stay zeros: padding passes through.
    """
    before, after = call.input_shapes[0], call.output_shapes[0]
    sizes = before[2:], after[2:]
    if after[1] != 1 and None not in (*sizes[0], *sizes[1]):
        group, rest = divmod(math.prod(sizes[1]), math.prod(sizes[0]))
        if len(after) > 2 and rest == 0 and group > 0:
            return _side_by_side(signals[0], group, after[2:])
    if before[1] == after[1] == 1:  # a single frame that stays one
        return _side_by_side(signals[0], 1, after[2:])
    return _whole_clip(call, signals, due)


def _side_by_side(signal: Signal, group: int, shape: tuple[int, ...]) -> LayerPlan:
    """Concatenate ``group`` frames to one: a window and a stride of this length."""
    parts, output = through_window(signal, group, group)
    # A Reshape can't ignore the latest frames, as a 'valid' convolution does: delay them.
    parts = tuple(Delay(part.frames) if isinstance(part, LastFrames) else part for part in parts)
    return LayerPlan(output, before=(parts,), changes={"target_shape": (-1, *shape)})


def _permuting(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    if call.layer.dims[0] == 1:
        return LayerPlan(signals[0])
    return _whole_clip(call, signals, due)


def _whole_clip(call: Call, signals: list[Signal], due: int) -> LayerPlan:
    """Run as in the plain model, on the latest window of frames."""
    before: list[tuple[Part, ...]] = []
    dues: list[int] = []
    for shape, signal in zip(call.input_shapes, signals, strict=True):
        parts, own = ((), ()) if signal.whole else whole_window(signal, shape[1], due)
        before.append(parts)
        dues += own
    return LayerPlan(Signal(whole=True), before=tuple(before), dues=tuple(dues))


_RULES: tuple[tuple[tuple[type, ...], Rule], ...] = (
    (
        (*TRAINING_ONLY, layers.Identity),
        _remove,
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
