"""Rates the output channels (filters) of each kernel in a weights file for magnitude pruning.

The significance of a channel is the mean absolute value of its part of the kernel, divided by the largest
such mean in the layer: 1 for the strongest channel. A channel below :data:`THRESHOLD` hardly changes the
output of its layer (Li et al. 2017, "Pruning filters for efficient ConvNets", rank filters by the same sum).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.weights.layer_statistics import find_output
from analysis.weights.weight_file import Layer, Weight, WeightFile
from utils.errors import RunError
from utils.text_table import text_table

THRESHOLD = 1e-3  # default: channels below it could be pruned
THRESHOLDS_SHOWN = (1e-3, 1e-2, 5e-2, 0.1, 0.2)  # the report also gives what these would prune
_HEADS = re.compile(r"(^|/)_?(query|key|value)(_dense)?$")  # parts of attention: kernels (in, heads, size)
_KERNELS = ("kernel", "recurrent_kernel", "depthwise_kernel", "pointwise_kernel")


@dataclass(frozen=True)
class Significance:
    """Significance of the channels of one kernel.

    Attributes:
        layer: name of the layer.
        kernel: name of the kernel in the layer.
        values: significance of each output channel, 0 to 1, (channels,) float64.
        weights_per_channel: values of the kernel that belong to a channel, including its bias.
        is_output: whether the channels are the classes of the model, which are never pruned.
    """

    layer: str
    kernel: str
    values: np.ndarray
    weights_per_channel: int
    is_output: bool = False

    @property
    def weights(self) -> int:
        """The number of values of the kernel and its bias."""
        return self.weights_per_channel * len(self.values)

    def cut(self, threshold: float) -> int:
        """The number of values of channels below a threshold, which could be pruned."""
        return 0 if self.is_output else self.weights_per_channel * int((self.values < threshold).sum())


def channel_significance(kernel: np.ndarray, channel_axes: int = 1) -> np.ndarray:
    """Mean absolute value of each output channel divided by the largest, (channels,) float64.

    Args:
        kernel: its last ``channel_axes`` axes are the output channels: ``(…, in, out)``, for a depthwise
            convolution ``(…, in, multiplier)``, for a query, key or value of attention ``(in, heads, size)``.
        channel_axes: 1; 2 for a depthwise convolution and for attention.

    Returns:
        1 for the strongest channel; 0 for all channels of a kernel of zeros.
    """
    channels = int(np.prod(kernel.shape[-channel_axes:]))
    means = np.abs(np.asarray(kernel, np.float64)).reshape(-1, channels).mean(axis=0)
    largest = means.max(initial=0.0)
    return means / largest if largest > 0 else means


def significances(file: WeightFile) -> list[Significance]:
    """The significance of the channels of all kernels of a file.

    Raises:
        RunError: there is no kernel, or one has NaN or infinite values.
    """
    output = find_output(file)
    found = [
        _significance(layer, weight, file, is_output=output is not None and layer.name == output.layer)
        for layer in file.layers
        for weight in layer.weights
        if _is_kernel(weight)
    ]
    if not found:
        raise RunError(
            "no layer of this file has a kernel", where=file.path, hint="see inspect_model.py weights"
        )
    return found


def _is_kernel(weight: Weight) -> bool:
    return _last(weight) in _KERNELS and weight.array.ndim > 1


def _last(weight: Weight) -> str:
    """The name without that of a part of the layer."""
    return weight.name.rpartition("/")[2]


def _significance(layer: Layer, kernel: Weight, file: WeightFile, is_output: bool) -> Significance:
    if not np.isfinite(kernel.array).all():
        raise RunError(
            f"the kernel of '{layer.name}' has NaN or infinite values",
            where=file.path,
            hint="see inspect_model.py weights; train again",
        )
    depthwise = layer.kind.startswith("depthwise_conv") or kernel.name.endswith("depthwise_kernel")
    part, _, name = kernel.name.rpartition("/")
    in_heads = _HEADS.search(part) and kernel.array.ndim == 3
    values = channel_significance(kernel.array, 2 if depthwise or in_heads else 1)
    arrays = {weight.name: weight.array for weight in layer.weights}
    bias, pointwise = (arrays.get(f"{part}/{other}".lstrip("/")) for other in ("bias", "pointwise_kernel"))
    first_of_two = name == "recurrent_kernel" or (name == "depthwise_kernel" and pointwise is not None)
    with_bias = not first_of_two and bias is not None and bias.size == len(values)
    per_channel = kernel.array.size // len(values) + with_bias
    return Significance(layer.name, kernel.name, values, per_channel, is_output)


def cut_share(found: Sequence[Significance], threshold: float) -> float:
    """Fraction of the weights (kernels and biases) that belong to channels below a threshold."""
    return sum(each.cut(threshold) for each in found) / sum(each.weights for each in found)


def significance_text(found: Sequence[Significance], threshold: float) -> str:
    """A line for each kernel, then the fraction that could be pruned at this and at other thresholds."""
    headings = ["layer", "kernel", "channels", "lowest", "median", f"below {threshold:g}", "weights", "cut"]
    rows = [
        [
            each.layer,
            each.kernel,
            f"{len(each.values):,}",
            f"{each.values.min():.4f}",
            f"{np.median(each.values):.4f}",
            f"{(each.values < threshold).sum():,}",
            f"{each.weights:,}",
            "(classes)" if each.is_output else f"{each.cut(threshold):,}",
        ]
        for each in found
    ]
    others = ", ".join(f"{100 * cut_share(found, other):.2f} % at {other:g}" for other in THRESHOLDS_SHOWN)
    below = sum(int((each.values < threshold).sum()) for each in found)
    channels = sum(len(each.values) for each in found)
    return (
        f"{text_table(headings, rows, left=2)}\n"
        f"below {threshold:g}: {below:,} of {channels:,} channels; with them "
        f"{100 * cut_share(found, threshold):.2f} % of the kernels' weights could be cut\n"
        f"by threshold: {others}\n"
    )


def channels_text(kernel: Significance, names: Sequence[str] | None = None) -> str:
    """A line for each channel of one kernel, the weakest first.

    Args:
        kernel: significance of the kernel's channels.
        names: names of the channels, such as the tokens of the output layer.
    """
    order = np.argsort(kernel.values, kind="stable")
    rows = [
        [str(channel), *([repr(names[channel])] if names else []), f"{kernel.values[channel]:.6f}"]
        for channel in order.tolist()
    ]
    table = text_table(
        ["channel", *(["token"] if names else []), "significance"], rows, left=2 if names else 1
    )
    return f"{kernel.layer} {kernel.kernel}\n{table}"
