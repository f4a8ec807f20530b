"""Types for the settings of layers, and checks of them before Keras builds the layers.

Settings are lists with one entry for each layer: ``filters: [64, 64]``, ``kernels: [[3, 3], [5, 3]]``.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from utils.errors import ConfigError, require
from utils.limits import Count, Limit, Limited

ACTIVATIONS = ("linear", "relu", "relu6", "silu", "swish", "gelu", "elu", "selu", "tanh", "sigmoid")

Counts = Annotated[
    tuple[Count, ...],
    Limit("a list of whole numbers of at least 1", lambda values: len(values) > 0 and min(values) >= 1),
]
Pair = Annotated[
    tuple[int, int],
    Limit("[frames, features], two whole numbers of at least 1", lambda values: min(values) >= 1),
]
Activation = Annotated[str, Limit(f"one of {', '.join(ACTIVATIONS)}", lambda value: value in ACTIVATIONS)]
# How a clip is padded in time, see `model_keyword.layers.time_layers`. Residual connections need a constant
# number of frames: KeptLength.
Padding = Literal["causal", "same", "valid"]
KeptLength = Literal["causal", "same"]


class LayerSettings(Limited, section="model"):
    """Base of the config of a network.

    A field of type ``tuple[KIND, ...]`` lists an entry for each layer. Lists that follow each other are
    settings of the same layers and have the same length; so have their entries, if these are `Counts`.

    Raises:
        ConfigError: a value is beyond the limit of its type, or lengths differ. The error names the field.
    """

    def __post_init__(self):
        super().__post_init__()
        hints = get_type_hints(type(self), include_extras=True)
        for is_list, names in groupby(hints, lambda name: get_origin(hints[name]) is tuple):
            if is_list:
                lists = {name: getattr(self, name) for name in names}
                _check_lengths(lists, "")
                nested = [name for name in lists if get_args(hints[name])[0] == Counts]
                for number, *entries in each_layer(*(lists[name] for name in nested)):
                    _check_lengths(dict(zip(nested, entries, strict=True)), f" in block {number}")


def _check_lengths(lists: Mapping[str, Sequence[Any]], where: str) -> None:
    counted = ", ".join(f"model.{name} {len(values)}" for name, values in lists.items())
    require(
        len(set(map(len, lists.values()))) == 1,
        f"lists of layers of unequal length{where}: {counted}",
        hint="an entry a layer in each",
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
