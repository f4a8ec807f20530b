"""Settings of layers, before Keras sees them: a config's lists in, errors that name layer and value out.

Layers are written as lists with an entry a layer: ``filters: [64, 64]``, ``kernels: [[3, 3], [5, 3]]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from utils.errors import ConfigError

ACTIVATIONS = ("linear", "relu", "relu6", "silu", "swish", "gelu", "elu", "selu", "tanh", "sigmoid")


def check_layers(config: Any, **kinds: str) -> None:
    """Check lists of layer settings that go together: an entry a layer in each, each of its kind.

    Args:
        config: a model's data class.
        **kinds: the name of a field and the kind of its entries: ``count`` (a whole number of at least 1),
            ``counts`` (a list of those), ``size`` (at least 0), ``pair`` (frames, features: two counts),
            ``share`` (at least 0, below 1), ``factor`` (above 0), ``flag``, ``activation``, ``cell``,
            ``padding`` or ``kept_length`` (one that keeps the number of frames).

    Raises:
        ConfigError: a list is none, an entry is of another kind, or the lengths differ. Named are the field,
            the layer's number (from 1) and the value.
    """
    for name, kind in kinds.items():
        value = getattr(config, name)
        if not isinstance(value, tuple | list):
            raise ConfigError(f"model.{name} is {value!r}", hint="a list with an entry a layer")
        wanted, fits = _KINDS[kind]
        for index, entry in enumerate(value):
            if not fits(entry):
                raise ConfigError(f"model.{name}[{index}] (layer {index + 1}) is {entry!r}", hint=wanted)
    lengths = {name: len(getattr(config, name)) for name in kinds}
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"model.{name} {length}" for name, length in lengths.items())
        raise ConfigError(f"lists of layers of unequal length: {counted}", hint="an entry a layer in each")


def check_equal_lengths(config: Any, first: str, second: str) -> None:
    """Check lists of lists: each list of ``first`` as long as its partner in ``second``.

    Raises:
        ConfigError: a pair of unequal length; named are the block (from 1) and both lengths.
    """
    for index, (one, other) in enumerate(zip(getattr(config, first), getattr(config, second), strict=True)):
        if len(one) != len(other):
            raise ConfigError(
                f"block {index + 1} has lists of unequal length: model.{first}[{index}] {len(one)}, "
                f"model.{second}[{index}] {len(other)}",
                hint="an entry a layer in each",
            )


def check_value(config: Any, **kinds: str) -> None:
    """Check single settings as `check_layers` checks entries.

    Raises:
        ConfigError: a value of another kind; named are the field and the value.
    """
    for name, kind in kinds.items():
        wanted, fits = _KINDS[kind]
        if not fits(getattr(config, name)):
            raise ConfigError(f"model.{name} is {getattr(config, name)!r}", hint=wanted)


def check_kernel_fits(
    layer: str, sizes: Sequence[int], kernel: Sequence[int], dilation: Sequence[int] | None = None
) -> None:
    """Check that a window without padding fits into its input, so that no axis shrinks below 1.

    Args:
        layer: the layer's name.
        sizes: of the input: frames, or frames and features.
        kernel: of the convolution or the pooling, an entry an axis.
        dilation: likewise; None: 1.

    Raises:
        ConfigError: it doesn't; named are the layer, its input's size, the kernel, its dilation and the
            largest kernel that fits.
    """
    dilation = tuple(dilation or (1,) * len(kernel))
    if all((k - 1) * d + 1 <= size for size, k, d in zip(sizes, kernel, dilation, strict=True)):
        return
    largest = [(size - 1) // d + 1 for size, d in zip(sizes, dilation, strict=True)]
    dilated = f" with dilation {_times(dilation)}" if max(dilation) > 1 else ""
    units = " x ".join(f"{size} {unit}" for size, unit in zip(sizes, ("frames", "features"), strict=False))
    raise ConfigError(
        f"layer {layer}: a kernel of {_times(kernel)}{dilated} doesn't fit into its input of {units}",
        hint=f"the largest that fits{dilated} is {_times(largest)}",
    )


def check_stride(
    layer: str, stride: Sequence[int], dilation: Sequence[int] | None = None, *, depthwise: bool = False
) -> None:
    """Check that the backends know this stride.

    Raises:
        ConfigError: stride and dilation in one layer, or an oblique stride of a depthwise convolution.
    """
    if max(stride) > 1 and max(dilation or (1,)) > 1:
        raise ConfigError(
            f"layer {layer}: a stride of {_times(stride)} together with a dilation of {_times(dilation)}",
            hint="one of the two must be 1",
        )
    if depthwise and len(set(stride)) > 1:
        raise ConfigError(
            f"layer {layer}: a depthwise convolution with a stride of {_times(stride)}",
            hint="the same stride over frames and features",
        )


def _times(numbers: Sequence[int]) -> str:
    return " x ".join(map(str, numbers))


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of_counts(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0 and all(_is_whole(entry, 1) for entry in value)


# Kind of an entry → what it must be, in words and as a test.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "count": ("a whole number of at least 1", lambda value: _is_whole(value, 1)),
    "counts": ("a list of whole numbers of at least 1", _is_list_of_counts),
    "size": ("a whole number of at least 0", lambda value: _is_whole(value, 0)),
    "pair": (
        "[frames, features], two whole numbers of at least 1",
        lambda value: _is_list_of_counts(value) and len(value) == 2,
    ),
    "share": ("at least 0 and below 1", lambda value: _is_number(value) and 0 <= value < 1),
    "factor": ("a number above 0", lambda value: _is_number(value) and 0 < value < float("inf")),
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "activation": (f"one of {', '.join(ACTIVATIONS)}", lambda value: value in ACTIVATIONS),
    "padding": ("causal, same or valid", lambda value: value in ("causal", "same", "valid")),
    "kept_length": ("causal or same", lambda value: value in ("causal", "same")),
    "cell": ("gru or lstm", lambda value: value in ("gru", "lstm")),
}
