"""Draws learning curves from a run's ``history.csv`` with matplotlib, as SVG elements for an HTML page."""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from analysis.page.colours import BEST, DEV, FAINT, GRID, INK, TRAIN
from analysis.runs.history import History

SIZE = (5.0, 2.7)  # inches of 72 units; about the width of a phone in pixels
# Text stays text, in the font of the page.
STYLE = {"svg.fonttype": "none", "font.size": 10, "axes.edgecolor": GRID, "text.color": INK}
# The ids that matplotlib gives to its elements; they would not be unique in a page with several drawings.
_MATPLOTLIB_ID = re.compile(r' id="[A-Za-z0-9.]+_\d+"')


@dataclass(frozen=True)
class Curve:
    """One chart: columns of a history with their names in the legend.

    Attributes:
        title: title of the chart, also its accessible name in the page.
        columns: ``{column of history.csv: name in the legend}``.
        percent: whether the values are rates, which are shown in per cent from zero.
    """

    title: str
    columns: Mapping[str, str]
    percent: bool = False


def draw_curve(history: History, curve: Curve) -> Markup:
    """An SVG element with one line a column over the epochs; the best epoch of a rate is marked."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": curve.title}):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        epochs = history["epoch"]
        colours = [DEV] if len(curve.columns) == 1 else [TRAIN, DEV]
        for (column, name), colour in zip(curve.columns.items(), colours, strict=True):
            axes.plot(
                epochs, history[column], color=colour, linewidth=2, label=name, marker="o", markersize=3
            )
        if curve.percent:
            _mark_best(axes, epochs, history[next(iter(curve.columns))])
        else:
            axes.legend(frameon=False, labelcolor=INK)
        _clean(axes, curve, epochs)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _embeddable(text.getvalue(), curve.title)


def _mark_best(axes: matplotlib.axes.Axes, epochs: Sequence[float], rates: Sequence[float]) -> None:
    best = min(range(len(rates)), key=rates.__getitem__)
    axes.plot(epochs[best], rates[best], "o", color=BEST, markersize=6)
    text = f"best: {100 * rates[best]:.2f} % in epoch {epochs[best]:.0f}"
    # In the upper right corner, which a falling curve leaves free.
    axes.text(0.98, 0.93, text, transform=axes.transAxes, ha="right", va="top", color=BEST)


def _clean(axes: matplotlib.axes.Axes, curve: Curve, epochs: Sequence[float]) -> None:
    axes.set_xlabel("epoch", color=FAINT)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.tick_params(colors=FAINT, length=0)
    axes.grid(axis="y", color=GRID, linewidth=1)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_ylim(bottom=0)
    axes.set_xlim(epochs[0] - 0.5, epochs[-1] + 0.5)
    if curve.percent:
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))


def _embeddable(svg: str, title: str) -> Markup:
    """The drawing without file header and fixed size, with the page's font and an accessible name."""
    body = _MATPLOTLIB_ID.sub("", svg[svg.index("<svg") :])
    body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    return Markup(body.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1))
