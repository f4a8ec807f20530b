"""Counts, matrices and cuts of a report in; what its bars and heat maps are drawn from, out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.errors.confusions import NOTHING, Matrix
from analysis.results.breakdowns import Breakdown, Group

SPEAKERS_SHOWN = 10  # of a cut by speaker: the worst
PAIRS_SHOWN = 8  # of a heat map, as text
WHISKER_ROOM = 1.8  # intervals longer than this times the highest rate are cut off
NO_SYLLABLE = "–"


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its count, its share of all, and its length (1 is the longest)."""

    name: str
    count: int
    share: float
    length: float


@dataclass(frozen=True)
class RateBar:
    """A bar of a cut: a group, and where its rate and its interval lie (1 is the end of the scale)."""

    group: Group
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class BreakdownChart:
    """A cut as bars on one scale; ``folded`` are shown on demand, ``mean`` is the rate of all groups."""

    cut: Breakdown
    bars: tuple[RateBar, ...]
    folded: tuple[RateBar, ...]
    mean: float
    mean_at: float


@dataclass(frozen=True)
class Cell:
    """One cell of a heat map.

    Attributes:
        text: a count; on the diagonal, per cent of the reference label's that are right.
        heat: 0 to 1, of the largest count off the diagonal; the diagonal has none.
        diagonal: right ones.
        count: of syllables.
    """

    text: str
    heat: float
    diagonal: bool
    count: int


@dataclass(frozen=True)
class HeatMap:
    """A matrix as it is drawn.

    Attributes:
        part: ``initial``, ``final`` or ``tone``.
        labels: of rows and columns.
        rows: (label, syllables of the reference, cells).
        pairs: the most frequent confusions: (reference, recognised, count, share of the reference's).
        quiet: labels that were never confused; they have no row.
    """

    part: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, int, tuple[Cell, ...]], ...]
    pairs: tuple[tuple[str, str, int, float], ...]
    quiet: tuple[str, ...]


def bars(counts: Mapping[str, int]) -> list[Bar]:
    """What occurs, most frequent first."""
    found = sorted(((name, count) for name, count in counts.items() if count), key=lambda item: -item[1])
    total = sum(count for _, count in found)
    return [Bar(name, count, count / total, count / found[0][1]) for name, count in found]


def breakdown_chart(cut: Breakdown) -> BreakdownChart:
    """Bars of a cut: of speakers the worst first and the others folded away, of all else in its order."""
    groups = list(cut.groups)
    highest = max(group.rate for group in groups)
    scale = min(max(group.high for group in groups), WHISKER_ROOM * highest) or 1.0
    if cut.name == "speaker":
        groups.sort(key=lambda group: -group.rate)
    shown = [
        RateBar(group, *(min(value / scale, 1.0) for value in (group.rate, group.low, group.high)))
        for group in groups
    ]
    most = SPEAKERS_SHOWN if cut.name == "speaker" and len(shown) > SPEAKERS_SHOWN + 2 else len(shown)
    errors = sum(group.counts.errors for group in groups)
    mean = errors / max(sum(group.counts.reference for group in groups), 1)
    return BreakdownChart(cut, tuple(shown[:most]), tuple(shown[most:]), mean, min(mean / scale, 1.0))


def heat_map(matrix: Matrix) -> HeatMap:
    """A matrix without the labels that were never confused; its scale leaves the diagonal out."""
    counts, size = matrix.counts, range(len(matrix.labels))
    confused = [
        n for n in size if any(other != n and (counts[n][other] or counts[other][n]) for other in size)
    ]
    pairs = sorted(
        ((counts[i][j], i, j) for i in confused for j in confused if i != j and counts[i][j]),
        key=lambda pair: (-pair[0], pair[1:]),
    )
    most = pairs[0][0] if pairs else 1
    names = [label if label != NOTHING else NO_SYLLABLE for label in matrix.labels]
    rows = tuple((names[i], sum(counts[i]), _cells(counts[i], i, confused, most)) for i in confused)
    top = [pair for pair in pairs if NOTHING not in (matrix.labels[pair[1]], matrix.labels[pair[2]])]
    return HeatMap(
        part=matrix.part,
        labels=tuple(names[n] for n in confused),
        rows=rows,
        pairs=tuple((names[i], names[j], count, count / sum(counts[i])) for count, i, j in top[:PAIRS_SHOWN]),
        quiet=tuple(names[n] for n in size if n not in confused and sum(counts[n])),
    )


def _cells(counts: Sequence[int], row: int, columns: Sequence[int], most: int) -> tuple[Cell, ...]:
    total = sum(counts)
    cells = []
    for column in columns:
        count = counts[column]
        if column == row:
            share = f"{100 * count / total:.0f}" if total and count else ""
            cells.append(Cell(share, 0.0, True, count))
        else:
            cells.append(Cell(str(count or ""), round(math.sqrt(count / most), 2), False, count))
    return tuple(cells)
