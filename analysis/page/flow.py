"""Histories of hanzi (syllable error, cause, hanzi error) with their counts in; a flow diagram as SVG out.

A Sankey diagram: three columns of boxes, whose heights are proportional to the number of hanzi, with ribbons
between them, from the syllable error over the cause to the hanzi error. Correct hanzi of correct syllables
are left out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from analysis.errors.attribution import ATTRIBUTIONS
from analysis.results.results import Flow

WIDTH = 724
BOX = 12  # width of a box
COLUMNS = (
    128,
    304,
    474,
)  # left edges; the labels of the outer columns are outside, those of the middle column inside
FLOWING = 300  # height of all hanzi together
GAP = 17  # between boxes: a line of text
TOP = 34  # room for the headings
HEADINGS = ("syllable", "cause", "hanzi")
CORRECT_TITLES = ("correct syllable", "", "correct hanzi")


@dataclass(frozen=True)
class Box:
    """A kind or a cause: its column, its name, the number of hanzi, and its position."""

    column: int
    name: str
    count: int
    top: float
    height: float


@dataclass(frozen=True)
class Ribbon:
    """Hanzi between two boxes; ``left`` and ``right`` are the upper ends of the ribbon."""

    column: int
    names: tuple[str, str]
    attribution: str
    count: int
    left: float
    right: float
    height: float


def lay_out(flow: Sequence[Flow]) -> tuple[list[Box], list[Ribbon]]:
    """The positions of all boxes and ribbons; heights are proportional to counts."""
    wrong = [history for history in flow if history.attribution]
    total = sum(history.count for history in wrong)
    if not total:
        return [], []
    scale = FLOWING / total
    boxes = [box for column in range(3) for box in _column(wrong, column, scale)]
    tops = {(box.column, box.name): box.top for box in boxes}
    order = {key: number for number, key in enumerate(tops)}
    ribbons = []
    for column in (0, 1):
        counts: Counter[tuple[str, str, str]] = Counter()
        for history in wrong:
            names = _names(history)
            counts[names[column], names[column + 1], history.attribution] += history.count
        # Ribbons are in the order of the boxes at their other end, so that few of them cross.
        pairs = sorted(counts, key=lambda key: (order[column, key[0]], order[column + 1, key[1]]))
        ribbons += _ribbons(pairs, counts, column, dict(tops), scale)
    return boxes, ribbons


def draw_flow(flow: Sequence[Flow], name: str) -> Markup:
    """The diagram as an SVG element, empty without errors; ``name`` makes its ids unique on the page."""
    boxes, ribbons = lay_out(flow)
    if not boxes:
        return Markup("")
    height = max(box.top + box.height for box in boxes) + 12
    count = sum(box.count for box in boxes if box.column == 0)
    title = f"{count:,} hanzi by syllable error, cause and hanzi error; the table below has the same figures"
    parts = [
        f'<svg class="flow" role="img" aria-labelledby="{escape(name)}" viewBox="0 0 {WIDTH} {height:.0f}">',
        f'<title id="{escape(name)}">{escape(title)}</title>',
        *(_draw_ribbon(ribbon) for ribbon in sorted(ribbons, key=lambda ribbon: -ribbon.count)),
        *map(_draw_box, boxes),
        *map(_heading, range(3)),
        "</svg>",
    ]
    return Markup("\n".join(parts))


def _names(history: Flow) -> tuple[str, str, str]:
    return history.syllable, history.attribution, history.hanzi


def _column(flow: Sequence[Flow], column: int, scale: float) -> list[Box]:
    """The boxes of a column, the most frequent first; causes in their fixed order."""
    counts: Counter[str] = Counter()
    for history in flow:
        counts[_names(history)[column]] += history.count
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
    """The ribbons of a column; ``free`` has the upper end of the unused part of each box."""
    left = dict(free)
    ribbons = []
    for key in pairs:
        first, second, attribution = key
        height = counts[key] * scale
        ribbon = Ribbon(
            column,
            (first, second),
            attribution,
            counts[key],
            left[column, first],
            free[column + 1, second],
            height,
        )
        ribbons.append(ribbon)
        left[column, first] += height
        free[column + 1, second] += height
    return ribbons


def _draw_ribbon(ribbon: Ribbon) -> str:
    start, end = COLUMNS[ribbon.column] + BOX, COLUMNS[ribbon.column + 1]
    height = max(ribbon.height, 0.75)
    there = _curve(start, ribbon.left, end, ribbon.right)
    back = _curve(end, ribbon.right + height, start, ribbon.left + height)
    names = " → ".join(_title(name, ribbon.column + side) for side, name in enumerate(ribbon.names))
    title = f"<title>{escape(names)}: {ribbon.count:,}</title>"
    return (
        f'<path class="by-{escape(ribbon.attribution)}" d="M{start} {ribbon.left:.1f}{there}'
        f'V{ribbon.right + height:.1f}{back}Z">{title}</path>'
    )


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{middle:.0f} {y:.1f} {middle:.0f} {to_y:.1f} {to_x} {to_y:.1f}"


def _draw_box(box: Box) -> str:
    left = COLUMNS[box.column]
    kind = f"by-{box.name}" if box.column == 1 else "fate"
    x, anchor = {0: (left - 8, "end"), 1: (left + BOX + 6, "start"), 2: (left + BOX + 8, "start")}[box.column]
    label = f'{escape(_title(box.name, box.column))} <tspan class="count">{box.count:,}</tspan>'
    height = max(box.height, 1)
    place = f'x="{left}" y="{box.top:.1f}" width="{BOX}" height="{height:.1f}" rx="2"'
    return (
        f'<rect class="{escape(kind)}" {place}/>'
        f'<text x="{x}" y="{box.top + box.height / 2 + 4:.1f}" text-anchor="{anchor}">{label}</text>'
    )


def _heading(column: int) -> str:
    x = (COLUMNS[0] + BOX, COLUMNS[1] + BOX / 2, COLUMNS[2])[column]
    anchor = ("end", "middle", "start")[column]
    return f'<text class="heading" x="{x}" y="14" text-anchor="{anchor}">{HEADINGS[column]}</text>'


def _title(name: str, column: int) -> str:
    return CORRECT_TITLES[column] if name == "right" else name
