"""Computes the bar charts and heat maps of a report: lengths, positions and shades that its template draws.

The bars show counts and breakdowns (error rates by speaker, length …), the heat maps confusion matrices.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.errors.confusions import NO_LABEL, Matrix
from analysis.results.breakdowns import Breakdown, Group

SPEAKERS_SHOWN = 10  # the worst; the others are folded
PAIRS_SHOWN = 8  # most frequent confusions of a heat map, as text
SCALE_LIMIT = 1.8  # end of the scale in multiples of the highest rate; longer intervals are cut off
NO_SYLLABLE = "–"  # label of the row of insertions and of the column of deletions


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its count, its share of the total, and its length (1 is the longest)."""

    name: str
    count: int
    share: float
    length: float


@dataclass(frozen=True)
class RateBar:
    """A bar of a breakdown: a group, and the positions of its rate and interval on the scale (0 to 1)."""

    group: Group
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class BreakdownChart:
    """A breakdown as bars on one scale.

    Attributes:
        breakdown: the breakdown that is drawn.
        bars: bars that are always shown.
        folded: bars that are shown on demand.
        mean: error rate of all groups together.
        mean_at: position of ``mean`` on the scale (0 to 1).
    """

    breakdown: Breakdown
    bars: tuple[RateBar, ...]
    folded: tuple[RateBar, ...]
    mean: float
    mean_at: float


@dataclass(frozen=True)
class Cell:
    """One cell of a heat map.

    Attributes:
        text: a count; on the diagonal, the percentage of the row that is correct.
        heat: 0 to 1, relative to the largest count off the diagonal; 0 on the diagonal.
        diagonal: the cell counts correct syllables.
        count: number of syllables.
    """

    text: str
    heat: float
    diagonal: bool
    count: int


@dataclass(frozen=True)
class HeatMap:
    """A confusion matrix as a heat map.

    Attributes:
        part: ``initial``, ``final`` or ``tone``.
        labels: labels of rows and columns.
        rows: (label, syllables of the reference, cells).
        pairs: the most frequent confusions as (reference, recognised, count, share of the row).
        never_confused: labels without any confusion; they have no row.
    """

    part: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, int, tuple[Cell, ...]], ...]
    pairs: tuple[tuple[str, str, int, float], ...]
    never_confused: tuple[str, ...]


def bars(counts: Mapping[str, int]) -> list[Bar]:
    """The counts that are not 0, the largest first."""
    found = sorted(((name, count) for name, count in counts.items() if count), key=lambda item: -item[1])
    total = sum(count for _, count in found)
    return [Bar(name, count, count / total, count / found[0][1]) for name, count in found]


def breakdown_chart(breakdown: Breakdown) -> BreakdownChart:
    """The bars of a breakdown. Of many speakers only the worst are shown at first."""
    groups = list(breakdown.groups)
    highest = max(group.rate for group in groups)
    scale = min(max(group.high for group in groups), SCALE_LIMIT * highest) or 1.0
    if breakdown.name == "speaker":
        groups.sort(key=lambda group: -group.rate)
    shown = [
        RateBar(group, *(min(value / scale, 1.0) for value in (group.rate, group.low, group.high)))
        for group in groups
    ]
    visible = (
        SPEAKERS_SHOWN if breakdown.name == "speaker" and len(shown) > SPEAKERS_SHOWN + 2 else len(shown)
    )
    errors = sum(group.counts.errors for group in groups)
    mean = errors / max(sum(group.counts.reference for group in groups), 1)
    return BreakdownChart(
        breakdown, tuple(shown[:visible]), tuple(shown[visible:]), mean, min(mean / scale, 1.0)
    )


def heat_map(matrix: Matrix) -> HeatMap:
    """A heat map without the labels that were never confused; its scale ignores the diagonal."""
    counts, size = matrix.counts, range(len(matrix.labels))
    confused = [
        n for n in size if any(other != n and (counts[n][other] or counts[other][n]) for other in size)
    ]
    pairs = sorted(
        ((counts[i][j], i, j) for i in confused for j in confused if i != j and counts[i][j]),
        key=lambda pair: (-pair[0], pair[1:]),
    )
    largest = pairs[0][0] if pairs else 1
    names = [label if label != NO_LABEL else NO_SYLLABLE for label in matrix.labels]
    rows = tuple((names[i], sum(counts[i]), _cells(counts[i], i, confused, largest)) for i in confused)
    top = [pair for pair in pairs if NO_LABEL not in (matrix.labels[pair[1]], matrix.labels[pair[2]])]
    return HeatMap(
        part=matrix.part,
        labels=tuple(names[n] for n in confused),
        rows=rows,
        pairs=tuple((names[i], names[j], count, count / sum(counts[i])) for count, i, j in top[:PAIRS_SHOWN]),
        never_confused=tuple(names[n] for n in size if n not in confused and any(counts[n])),
    )


def _cells(counts: Sequence[int], row: int, columns: Sequence[int], largest: int) -> tuple[Cell, ...]:
    total = sum(counts)
    cells = []
    for column in columns:
        count = counts[column]
        if column == row:
            share = f"{100 * count / total:.0f}" if total and count else ""
            cells.append(Cell(share, 0.0, True, count))
        else:
            cells.append(Cell(str(count or ""), round(math.sqrt(count / largest), 2), False, count))
    return tuple(cells)
