"""Draws the significance of a model's channels, and the fraction of weights that a threshold would prune."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.weights.significance import Significance, cut_share
from utils.files import replacing

INK, FAINT, GRID = "#3f3f46", "#71717a", "#e4e4e7"
SPREAD, MIDDLE, MARK = "#a1a1aa", "#0f766e", "#c2410c"
_LOWEST = 1e-4  # position of channels of zeros on the logarithmic axis
_LINE = 0.22  # inches per kernel
_NAME = 30  # characters of a layer's name


def draw_significance(found: Sequence[Significance], threshold: float, title: str, path: str | Path) -> None:
    """Write a PNG (or the type of ``path``): a bar for each kernel, and the pruned fraction by threshold.

    Raises:
        OSError: the file cannot be written.
        ValueError: matplotlib does not know this file type.
    """
    figure = Figure(figsize=(11, max(3.6, 1.3 + _LINE * len(found))), layout="constrained", dpi=120)
    spread, share = figure.subplots(1, 2, width_ratios=(3, 2))
    weakest = min(threshold, *(each.values.min() for each in found))
    left = max(weakest / 2, _LOWEST)  # of both axes, so that the threshold is visible
    _draw_spread(spread, found, threshold, left)
    _draw_share(share, found, threshold, left)
    figure.suptitle(title, color=INK, fontsize=11)
    with replacing(path) as temporary:
        figure.savefig(temporary)


def _draw_spread(axes: Axes, found: Sequence[Significance], threshold: float, left: float) -> None:
    """For each kernel, a line from the weakest to the strongest channel, a bar for the middle half, a dot."""
    rows = np.arange(len(found))[::-1]
    shares = np.array([np.quantile(each.values, (0, 0.25, 0.5, 0.75, 1)) for each in found]).T  # (5, kernels)
    low, quarter, median, three_quarters, high = np.maximum(shares, _LOWEST)
    axes.hlines(rows, low, high, color=SPREAD, linewidth=1.5, label="weakest to strongest channel")
    axes.hlines(rows, quarter, three_quarters, color=MIDDLE, linewidth=5, label="middle half")
    axes.plot(median, rows, "o", color="white", markersize=3, markeredgecolor=INK, label="median")
    axes.axvline(threshold, color=MARK, linestyle="--", linewidth=1)
    axes.set_yticks(rows, [_name(each) for each in found], fontsize=8)
    axes.set_ylim(-0.8, len(found) - 0.2)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    _axis(axes, "significance of the channels", left)


def _draw_share(axes: Axes, found: Sequence[Significance], threshold: float, left: float) -> None:
    thresholds = np.geomspace(left, 1, 200)
    axes.plot(thresholds, [cut_share(found, each) for each in thresholds], color=MIDDLE, linewidth=2)
    axes.axvline(threshold, color=MARK, linestyle="--", linewidth=1)
    text = f"{100 * cut_share(found, threshold):.2f} % at {threshold:g}"
    axes.annotate(
        text, (threshold, cut_share(found, threshold)), (5, 12), textcoords="offset points", color=MARK
    )
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))
    axes.set_title("fraction of the weights below a threshold", fontsize=9, color=INK)
    _axis(axes, "threshold", left)


def _axis(axes: Axes, label: str, left: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(left, 1.3)
    axes.set_xlabel(label, color=FAINT)
    axes.grid(axis="both", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=FAINT, length=0, labelsize=8)
    axes.spines[:].set_visible(False)


def _name(kernel: Significance) -> str:
    name = (
        kernel.layer
        if kernel.kernel == "kernel"
        else f"{kernel.layer} {kernel.kernel.removesuffix('/kernel')}"
    )
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
