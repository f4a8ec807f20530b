"""Types for the settings of layers, which are checked before Keras builds them; errors name layer and value.

Settings are lists with one entry for each layer: ``filters: [64, 64]``, ``kernels: [[3, 3], [5, 3]]``.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from utils.errors import ConfigError, require
from utils.limits import Limit

ACTIVATIONS = ("linear", "relu", "relu6", "silu", "swish", "gelu", "elu", "selu", "tanh", "sigmoid")


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of_counts(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0 and all(_is_whole(entry, 1) for entry in value)


Count = Annotated[int, Limit("a whole number of at least 1", lambda value: _is_whole(value, 1))]
Size = Annotated[int, Limit("a whole number of at least 0", lambda value: _is_whole(value, 0))]
Counts = Annotated[tuple[Count, ...], Limit("a list of whole numbers of at least 1", _is_list_of_counts)]
Pair = Annotated[
    tuple[int, int],
    Limit(
        "[frames, features], two whole numbers of at least 1",
        lambda value: _is_list_of_counts(value) and len(value) == 2,
    ),
]
Fraction = Annotated[
    float, Limit("at least 0 and below 1", lambda value: _is_number(value) and 0 <= value < 1)
]
Factor = Annotated[
    float, Limit("a number above 0", lambda value: _is_number(value) and 0 < value < float("inf"))
]
Activation = Annotated[str, Limit(f"one of {', '.join(ACTIVATIONS)}", lambda value: value in ACTIVATIONS)]
# How a clip is padded in time, see `model_keyword.layers.time_layers`. Residual connections need a constant
# number of frames: KeptLength.
Padding = Literal["causal", "same", "valid"]
KeptLength = Literal["causal", "same"]


class LayerSettings:
    """Base of the config of a network: checks every field by its type, one of this module.

    A field of type ``tuple[KIND, ...]`` lists an entry for each layer. Lists that follow each other are
    settings of the same layers and have the same length; so have their entries, if these are `Counts`.

    Raises:
        ConfigError: a value or an entry is of another kind, or lengths differ. The error names the field, the
            layer's number (from 1) and the value.
    """

    def __post_init__(self):
        hints = get_type_hints(type(self), include_extras=True)
        for is_list, group in groupby(hints, lambda name: _entry_type(hints[name]) is not None):
            values = {name: getattr(self, name) for name in group}
            for name, value in values.items():
                if is_list:
                    _check_list(name, value, _entry_type(hints[name]))
                _check(f"model.{name}", value, hints[name])
            if is_list:
                nested = {name: value for name, value in values.items() if _entry_type(hints[name]) == Counts}
                _check_lengths(values, nested)


def _entry_type(hint: Any) -> Any:
    """The type of the entries of a list; None for the type of a single value."""
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    arguments = get_args(inner)
    return arguments[0] if get_origin(inner) is tuple and arguments[-1] is Ellipsis else None


def _check(name: str, value: Any, hint: Any) -> None:
    """Check a value by the kind in its type, by its choices, or as a flag."""
    limit = None
    if get_origin(hint) is Annotated:
        limit = hint.__metadata__[0]
    elif get_origin(hint) is Literal:
        *first, last = get_args(hint)
        limit = Limit(f"{', '.join(first)} or {last}", get_args(hint).__contains__)
    elif hint is bool:
        limit = Limit("true or false", lambda value: isinstance(value, bool))
    if limit and not limit.fits(value):
        raise ConfigError(f"{name} is {value!r}", hint=limit.requirement)


def _check_list(name: str, values: Any, hint: Any) -> None:
    if not isinstance(values, tuple | list):
        raise ConfigError(f"model.{name} is {values!r}", hint="a list with an entry a layer")
    for index, entry in enumerate(values):
        _check(f"model.{name}[{index}] (layer {index + 1})", entry, hint)


def _check_lengths(lists: Mapping[str, Sequence[Any]], nested: Mapping[str, Sequence[Sequence[int]]]) -> None:
    """Check that all lists have one length, and that the corresponding entries of nested lists have."""
    hint = "an entry a layer in each"
    if len(set(map(len, lists.values()))) > 1:
        counted = ", ".join(f"model.{name} {len(values)}" for name, values in lists.items())
        raise ConfigError(f"lists of layers of unequal length: {counted}", hint=hint)
    for (first, lists_1), (second, lists_2) in pairwise(nested.items()):
        for index, (list_1, list_2) in enumerate(zip(lists_1, lists_2, strict=True)):
            require(
                len(list_1) == len(list_2),
                f"block {index + 1} has lists of unequal length: model.{first}[{index}] {len(list_1)}, "
                f"model.{second}[{index}] {len(list_2)}",
                hint=hint,
            )


def each_layer(*lists: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The number of each layer, from 1, and its entry in each of the lists."""
    for number, entries in enumerate(zip(*lists, strict=True), 1):
        yield number, *entries


def check_kernel_fits(
    layer: str, sizes: Sequence[int], kernel: Sequence[int], dilation: Sequence[int] | None = None
) -> None:
    """Check that a window without padding is not larger than its input.

    Args:
        layer: the layer's name.
        sizes: size of the input: frames, or frames and features.
        kernel: size of the convolution or the pooling, one entry for each axis.
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
    dilation = dilation or (1,)
    if max(stride) > 1 and max(dilation) > 1:
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
