"""A weights file in; how much each output channel of each kernel weighs, and what could be cut, out.

The significance of a channel is the mean absolute value of its part of the kernel, divided by the largest
such mean in the layer: 1 for the strongest channel. Below :data:`THRESHOLD` a channel hardly changes what its
layer gives on (Li et al. 2017, "Pruning filters for efficient ConvNets", rank filters by the same sum).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.text_table import text_table
from analysis.weights.output_layer import find_output
from analysis.weights.weight_file import Layer, Weight, WeightFile
from utils.errors import RunError

THRESHOLD = 1e-3
THRESHOLDS_SHOWN = (1e-3, 1e-2, 5e-2, 0.1, 0.2)  # a threshold's effect, told beside the one asked for
_KERNELS = ("kernel", "recurrent_kernel", "depthwise_kernel", "pointwise_kernel")


@dataclass(frozen=True)
class Significance:
    """Of one kernel.

    Attributes:
        layer: the layer's name.
        kernel: the kernel's, inside it.
        values: of each output channel, 0 to 1, (channels,) float64.
        weights_per_channel: values of the kernel that belong to a channel, and its bias.
        is_output: the channels are the model's classes: a class is never cut.
    """

    layer: str
    kernel: str
    values: np.ndarray
    weights_per_channel: int
    is_output: bool = False

    @property
    def weights(self) -> int:
        """Values of the kernel and its bias."""
        return self.weights_per_channel * len(self.values)

    def cut(self, threshold: float) -> int:
        """How many of them belong to channels below a threshold and could be cut."""
        return 0 if self.is_output else self.weights_per_channel * int((self.values < threshold).sum())


def channel_significance(kernel: np.ndarray, channel_axes: int = 1) -> np.ndarray:
    """Mean absolute value by output channel, normalised by the largest, (channels,) float64.

    Args:
        kernel: the last ``channel_axes`` axes count the output channels: ``(…, in, out)``, or of a depthwise
            convolution ``(…, in, multiplier)``.
        channel_axes: 1, or 2 of a depthwise convolution.

    Returns:
        1 for the strongest channel; all 0 if the whole kernel is.
    """
    channels = int(np.prod(kernel.shape[-channel_axes:]))
    means = np.abs(np.asarray(kernel, np.float64)).reshape(-1, channels).mean(axis=0)
    largest = means.max(initial=0.0)
    return means / largest if largest > 0 else means


def significances(file: WeightFile) -> list[Significance]:
    """All kernels of a file; embeddings, biases and normalisations have none.

    Raises:
        RunError: there is no kernel, or one holds NaN or infinite values.
    """
    output = find_output(file)
    found = [
        _significance(layer, weight, file, is_output=bool(output) and layer.name == output.layer)
        for layer in file.layers
        for weight in layer.weights
        if weight.name.rpartition("/")[2] in _KERNELS and weight.array.ndim > 1
    ]
    if not found:
        raise RunError(
            "no kernel of a layer in this file", where=file.path, hint="see inspect_model.py weights"
        )
    return found


def _significance(layer: Layer, kernel: Weight, file: WeightFile, is_output: bool) -> Significance:
    if not np.isfinite(kernel.array).all():
        what = f"the kernel of '{layer.name}' holds NaN or infinite values"
        raise RunError(what, where=file.path, hint="see inspect_model.py weights; train anew")
    depthwise = layer.kind.startswith("depthwise_conv") or kernel.name.endswith("depthwise_kernel")
    values = channel_significance(kernel.array, 2 if depthwise else 1)
    part, _, name = kernel.name.rpartition("/")
    bias = f"{part}/bias".lstrip("/")
    with_bias = name != "recurrent_kernel" and any(
        weight.name == bias and weight.array.shape == values.shape for weight in layer.weights
    )
    per_channel = kernel.array.size // len(values) + with_bias
    return Significance(layer.name, kernel.name, values, per_channel, is_output)


def cut_share(found: Sequence[Significance], threshold: float) -> float:
    """Share of the weights (kernels and their biases) that belong to channels below a threshold."""
    return sum(one.cut(threshold) for one in found) / sum(one.weights for one in found)


def significance_text(found: Sequence[Significance], threshold: float) -> str:
    """A line a kernel, then what could be cut at this and at other thresholds."""
    headings = ["layer", "kernel", "channels", "lowest", "median", f"below {threshold:g}", "weights", "cut"]
    rows = [
        [
            one.layer,
            one.kernel,
            f"{len(one.values):,}",
            f"{one.values.min():.4f}",
            f"{np.median(one.values):.4f}",
            f"{(one.values < threshold).sum():,}",
            f"{one.weights:,}",
            "(classes)" if one.is_output else f"{one.cut(threshold):,}",
        ]
        for one in found
    ]
    others = ", ".join(f"{100 * cut_share(found, one):.2f} % at {one:g}" for one in THRESHOLDS_SHOWN)
    below = sum(int((one.values < threshold).sum()) for one in found)
    channels = sum(len(one.values) for one in found)
    return (
        f"{text_table(headings, rows, left=2)}\n"
        f"below {threshold:g}: {below:,} of {channels:,} channels; with them "
        f"{100 * cut_share(found, threshold):.2f} % of the kernels' weights could be cut\n"
        f"by threshold: {others}\n"
    )


def channels_text(one: Significance, names: Sequence[str] | None = None) -> str:
    """A line a channel of one kernel, the weakest first.

    Args:
        one: of the kernel.
        names: of the channels, such as the tokens of the output layer.
    """
    order = np.argsort(one.values, kind="stable")
    rows = [
        [str(channel), *([repr(names[channel])] if names else []), f"{one.values[channel]:.6f}"]
        for channel in order.tolist()
    ]
    table = text_table(
        ["channel", *(["token"] if names else []), "significance"], rows, left=2 if names else 1
    )
    return f"{one.layer} {one.kernel}\n{table}"


def significance_json(found: Sequence[Significance], threshold: float) -> Mapping[str, Any]:
    """All of it as plain values."""
    return {
        "threshold": threshold,
        "cut_share": cut_share(found, threshold),
        "kernels": [
            {
                "layer": one.layer,
                "kernel": one.kernel,
                "is_output": one.is_output,
                "weights": one.weights,
                "cut": one.cut(threshold),
                "significance": one.values.tolist(),
            }
            for one in found
        ],
    }
