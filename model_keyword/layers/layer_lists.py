"""Checks of layer settings before Keras builds them: a config in; errors that name layer and value out.

Settings are lists with one entry for each layer: ``filters: [64, 64]``, ``kernels: [[3, 3], [5, 3]]``.
"""

from collections.abc import Callable, Sequence
from typing import Any

from utils.errors import ConfigError

ACTIVATIONS = ("linear", "relu", "relu6", "silu", "swish", "gelu", "elu", "selu", "tanh", "sigmoid")


def check_layers(config: Any, **kinds: str) -> None:
    """Check lists of settings for the same layers: one entry for each layer, of the right kind.

    Args:
        config: a model's data class.
        **kinds: the name of a field and the kind of its entries: ``count`` (a whole number of at least 1),
            ``counts`` (a list of those), ``size`` (at least 0), ``pair`` (frames, features: two counts),
            ``fraction`` (at least 0, below 1), ``factor`` (above 0), ``flag``, ``activation``, ``cell``,
            ``padding`` or ``kept_length`` (one that keeps the number of frames).

    Raises:
        ConfigError: a value is not a list, an entry is of another kind, or the lengths differ. The error
            names the field, the layer's number (from 1) and the value.
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
    """Check that each list in the field ``first`` has the length of its counterpart in ``second``.

    Raises:
        ConfigError: they differ; the error names the block (from 1) and both lengths.
    """
    lists = zip(getattr(config, first), getattr(config, second), strict=True)
    for index, (list_1, list_2) in enumerate(lists):
        if len(list_1) != len(list_2):
            raise ConfigError(
                f"block {index + 1} has lists of unequal length: model.{first}[{index}] {len(list_1)}, "
                f"model.{second}[{index}] {len(list_2)}",
                hint="an entry a layer in each",
            )


def check_value(config: Any, **kinds: str) -> None:
    """Check single settings as `check_layers` checks entries.

    Raises:
        ConfigError: a value is of another kind; the error names the field and the value.
    """
    for name, kind in kinds.items():
        wanted, fits = _KINDS[kind]
        if not fits(getattr(config, name)):
            raise ConfigError(f"model.{name} is {getattr(config, name)!r}", hint=wanted)


def check_kernel_fits(
    layer: str, sizes: Sequence[int], kernel: Sequence[int], dilation: Sequence[int] | None = None
) -> None:
    """Check that a window without padding is not larger than its input.

    Args:
        layer: the layer's name.
        sizes: of the input: frames, or frames and features.
        kernel: of the convolution or the pooling, one entry for each axis.
        dilation: one entry for each axis; None: 1.

    Raises:
        ConfigError: it is larger; the error names the layer, the size of its input, the kernel, its dilation
            and the largest kernel that fits.
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
    """Check that all backends support this stride.

    Raises:
        ConfigError: both stride and dilation are above 1, or a depthwise convolution has unequal strides.
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


# Kind of an entry → its description and its test.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "count": ("a whole number of at least 1", lambda value: _is_whole(value, 1)),
    "counts": ("a list of whole numbers of at least 1", _is_list_of_counts),
    "size": ("a whole number of at least 0", lambda value: _is_whole(value, 0)),
    "pair": (
        "[frames, features], two whole numbers of at least 1",
        lambda value: _is_list_of_counts(value) and len(value) == 2,
    ),
    "fraction": ("at least 0 and below 1", lambda value: _is_number(value) and 0 <= value < 1),
    "factor": ("a number above 0", lambda value: _is_number(value) and 0 < value < float("inf")),
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "activation": (f"one of {', '.join(ACTIVATIONS)}", lambda value: value in ACTIVATIONS),
    "padding": ("causal, same or valid", lambda value: value in ("causal", "same", "valid")),
    "kept_length": ("causal or same", lambda value: value in ("causal", "same")),
    "cell": ("gru or lstm", lambda value: value in ("gru", "lstm")),
}
