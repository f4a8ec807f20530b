"""Significances of a model's channels in, a picture of their spread and of what a threshold cuts out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.page.colours import BEST, DEV, FAINT, GRID, INK, TRAIN
from analysis.weights.significance import Significance, cut_share
from utils.files import replacing

_LOWEST = 1e-4  # where a channel of zeros is drawn: the axis is logarithmic
_LINE = 0.22  # inches a kernel
_NAME = 30  # characters of a layer's name


def draw_significance(found: Sequence[Significance], threshold: float, title: str, path: str | Path) -> None:
    """Write a PNG (or what the ending of ``path`` says): a bar a kernel, and the share cut by threshold.

    Raises:
        OSError: the file can't be written.
        ValueError: matplotlib knows no such ending.
    """
    figure = Figure(figsize=(11, max(3.6, 1.3 + _LINE * len(found))), layout="constrained", dpi=120)
    spread, share = figure.subplots(1, 2, width_ratios=(3, 2))
    weakest = min(threshold, *(one.values.min() for one in found))
    left = max(weakest / 2, _LOWEST)  # of both axes: the threshold is in view, and little beside it
    _draw_spread(spread, found, threshold, left)
    _draw_share(share, found, threshold, left)
    figure.suptitle(title, color=INK, fontsize=11)
    with replacing(path) as temporary:
        figure.savefig(temporary)


def _draw_spread(axes: Axes, found: Sequence[Significance], threshold: float, left: float) -> None:
    """A line from the weakest to the strongest channel of each kernel, the middle half thick, the median."""
    places = np.arange(len(found))[::-1]
    shares = np.array([np.quantile(one.values, (0, 0.25, 0.5, 0.75, 1)) for one in found]).T  # (5, kernels)
    low, quarter, median, three_quarters, high = np.maximum(shares, _LOWEST)
    axes.hlines(places, low, high, color=TRAIN, linewidth=1.5, label="weakest to strongest channel")
    axes.hlines(places, quarter, three_quarters, color=DEV, linewidth=5, label="middle half")
    axes.plot(median, places, "o", color="white", markersize=3, markeredgecolor=INK, label="median")
    axes.axvline(threshold, color=BEST, linestyle="--", linewidth=1)
    axes.set_yticks(places, [_name(one) for one in found], fontsize=8)
    axes.set_ylim(-0.8, len(found) - 0.2)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    _axis(axes, "significance of the channels", left)


def _draw_share(axes: Axes, found: Sequence[Significance], threshold: float, left: float) -> None:
    thresholds = np.geomspace(left, 1, 200)
    shares = [cut_share(found, one) for one in thresholds]
    axes.plot(thresholds, shares, color=DEV, linewidth=2)
    axes.axvline(threshold, color=BEST, linestyle="--", linewidth=1)
    text = f"{100 * cut_share(found, threshold):.2f} % at {threshold:g}"
    axes.annotate(
        text, (threshold, cut_share(found, threshold)), (5, 12), textcoords="offset points", color=BEST
    )
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))
    axes.set_title("weights that a threshold would cut", fontsize=9, color=INK)
    _axis(axes, "threshold", left)


def _axis(axes: Axes, label: str, left: float) -> None:
    axes.set_xscale("log")
    axes.set_xlim(left, 1.3)
    axes.set_xlabel(label, color=FAINT)
    axes.grid(axis="both", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=FAINT, length=0, labelsize=8)
    axes.spines[:].set_visible(False)


def _name(one: Significance) -> str:
    name = one.layer if one.kernel == "kernel" else f"{one.layer} {one.kernel.removesuffix('/kernel')}"
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
