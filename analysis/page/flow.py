"""Fates of hanzi in (what happened to the syllable, who is to blame, what became of them); a flow drawn out.

Three columns of boxes, as high as many hanzi went through them, and ribbons between them (a Sankey diagram):
from what the first stage did, over whose error it is, to what was written. Hanzi that are right from a right
syllable are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.errors.attribution import ATTRIBUTIONS
from analysis.results.results import Flow

WIDTH = 724
BOX = 12  # width of a box
COLUMNS = (128, 304, 474)  # left edges; labels stand outside on the left and right, within in the middle
FLOWING = 300  # height of all hanzi together
GAP = 17  # between boxes: a line of text
TOP = 34  # room for the headings
HEADINGS = ("what was heard", "whose error", "what was written")
RIGHT_TITLES = ("right syllable", "", "right hanzi")


@dataclass(frozen=True)
class Box:
    """A fate: its column, its name, how many hanzi, and where it stands."""

    column: int
    name: str
    count: int
    top: float
    height: float


@dataclass(frozen=True)
class Ribbon:
    """Hanzi that go from one fate to the next; ``left`` and ``right`` are the upper ends."""

    column: int
    names: tuple[str, str]
    attribution: str
    count: int
    left: float
    right: float
    height: float


def lay_out(flow: Sequence[Flow]) -> tuple[list[Box], list[Ribbon]]:
    """Where everything stands; heights are proportional to counts."""
    wrong = [one for one in flow if one.attribution]
    total = sum(one.count for one in wrong)
    if not total:
        return [], []
    scale = FLOWING / total
    boxes = [box for column in range(3) for box in _column(wrong, column, scale)]
    tops = {(box.column, box.name): box.top for box in boxes}
    order = {key: number for number, key in enumerate(tops)}
    ribbons = []
    for column in (0, 1):
        counts: Counter[tuple[str, str, str]] = Counter()
        for one in wrong:
            fates = _fates(one)
            counts[fates[column], fates[column + 1], one.attribution] += one.count
        # Ribbons leave and arrive in the order of the boxes at their other end, so that few of them cross.
        pairs = sorted(counts, key=lambda key: (order[column, key[0]], order[column + 1, key[1]]))
        ribbons += _ribbons(pairs, counts, column, dict(tops), scale)
    return boxes, ribbons


def draw_flow(flow: Sequence[Flow], name: str) -> Markup:
    """An SVG element; ``name`` makes its ids unique on the page. Empty if nothing is wrong."""
    boxes, ribbons = lay_out(flow)
    if not boxes:
        return Markup("")
    height = max(box.top + box.height for box in boxes) + 12
    count = sum(box.count for box in boxes if box.column == 0)
    title = f"{count:,} hanzi, from what was heard to what was written; the same as a table below"
    parts = [
        f'<svg class="flow" role="img" aria-labelledby="{escape(name)}" viewBox="0 0 {WIDTH} {height:.0f}">',
        f'<title id="{escape(name)}">{escape(title)}</title>',
        *(_draw_ribbon(one) for one in sorted(ribbons, key=lambda one: -one.count)),
        *(_draw_box(one) for one in boxes),
        *(_heading(column) for column in range(3)),
        "</svg>",
    ]
    return Markup("\n".join(parts))


def _fates(one: Flow) -> tuple[str, str, str]:
    return one.syllable, one.attribution, one.hanzi


def _column(flow: Sequence[Flow], column: int, scale: float) -> list[Box]:
    """Boxes of a column: most frequent first; attributions in their own order, as everywhere."""
    counts: Counter[str] = Counter()
    for one in flow:
        counts[_fates(one)[column]] += one.count
    names = sorted(counts, key=lambda name: (-counts[name], name))
    if column == 1:
        names = [name for name in ATTRIBUTIONS if counts[name]]
    boxes, top = [], float(TOP)
    for name in names:
        height = counts[name] * scale
        boxes.append(Box(column, name, counts[name], top, height))
        top += height + GAP
    return boxes


def _ribbons(
    pairs: Sequence[tuple[str, str, str]],
    counts: Mapping[tuple[str, str, str], int],
    column: int,
    free: dict[tuple[int, str], float],
    scale: float,
) -> list[Ribbon]:
    """``free`` holds the upper end of what is still free of each box."""
    left = dict(free)
    ribbons = []
    for key in pairs:
        one, other, attribution = key
        height = counts[key] * scale
        ribbon = Ribbon(
            column, (one, other), attribution, counts[key], left[column, one], free[column + 1, other], height
        )
        ribbons.append(ribbon)
        left[column, one] += height
        free[column + 1, other] += height
    return ribbons


def _draw_ribbon(one: Ribbon) -> str:
    start, end = COLUMNS[one.column] + BOX, COLUMNS[one.column + 1]
    height = max(one.height, 0.75)
    there = _curve(start, one.left, end, one.right)
    back = _curve(end, one.right + height, start, one.left + height)
    names = " → ".join(_title(name, one.column + side) for side, name in enumerate(one.names))
    title = f"<title>{escape(names)}: {one.count:,}</title>"
    return (
        f'<path class="by-{escape(one.attribution)}" d="M{start} {one.left:.1f}{there}'
        f'V{one.right + height:.1f}{back}Z">{title}</path>'
    )


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{middle:.0f} {y:.1f} {middle:.0f} {to_y:.1f} {to_x} {to_y:.1f}"


def _draw_box(one: Box) -> str:
    left = COLUMNS[one.column]
    kind = f"by-{one.name}" if one.column == 1 else "fate"
    x, anchor = {0: (left - 8, "end"), 1: (left + BOX + 6, "start"), 2: (left + BOX + 8, "start")}[one.column]
    label = f'{escape(_title(one.name, one.column))} <tspan class="count">{one.count:,}</tspan>'
    height = max(one.height, 1)
    place = f'x="{left}" y="{one.top:.1f}" width="{BOX}" height="{height:.1f}" rx="2"'
    return (
        f'<rect class="{escape(kind)}" {place}/>'
        f'<text x="{x}" y="{one.top + one.height / 2 + 4:.1f}" text-anchor="{anchor}">{label}</text>'
    )


def _heading(column: int) -> str:
    x = (COLUMNS[0] + BOX, COLUMNS[1] + BOX / 2, COLUMNS[2])[column]
    anchor = ("end", "middle", "start")[column]
    return f'<text class="heading" x="{x}" y="14" text-anchor="{anchor}">{HEADINGS[column]}</text>'


def _title(name: str, column: int) -> str:
    return RIGHT_TITLES[column] if name == "right" else name
