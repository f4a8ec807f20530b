"""Draws how hanzi errors arise as a Sankey diagram (SVG): from syllable error through cause to hanzi error.

The diagram has three columns of boxes, for the syllable errors, the causes and the hanzi errors, and ribbons
between the columns. The height of a box or ribbon is proportional to its number of hanzi. Correct hanzi of
correct syllables are left out. A template draws what :func:`lay_out` computes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.errors.attribution import ATTRIBUTIONS
from analysis.page.rendering import page_environment
from analysis.results.results import Flow

WIDTH = 724  # all sizes in units of the SVG
BOX = 12  # width of a box
# Left edges of the boxes. The labels of the outer columns are outside, those of the middle column inside.
COLUMNS = (
    {
        "left": 128,
        "label_x": 120,
        "label_anchor": "end",
        "heading": "syllable",
        "heading_x": 140,
        "heading_anchor": "end",
        "correct": "correct syllable",
    },
    {
        "left": 304,
        "label_x": 322,
        "label_anchor": "start",
        "heading": "cause",
        "heading_x": 310,
        "heading_anchor": "middle",
        "correct": "",
    },
    {
        "left": 474,
        "label_x": 494,
        "label_anchor": "start",
        "heading": "hanzi",
        "heading_x": 474,
        "heading_anchor": "start",
        "correct": "correct hanzi",
    },
)
ALL_HANZI_HEIGHT = 300  # height of the boxes of a column together, without the gaps
GAP = 17  # between boxes: a line of text
TOP = 34  # room for the headings


@dataclass(frozen=True)
class Box:
    """A kind of error or a cause: its column, its name, the number of hanzi, and its position."""

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
    scale = ALL_HANZI_HEIGHT / total
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
    svg = (
        page_environment()
        .get_template("flow.svg.j2")
        .render(
            name=name,
            boxes=boxes,
            ribbons=sorted(ribbons, key=lambda ribbon: -ribbon.count),
            columns=COLUMNS,
            box_width=BOX,
            width=WIDTH,
            height=max(box.top + box.height for box in boxes) + 12,
            count=sum(box.count for box in boxes if box.column == 0),
        )
    )
    return Markup(svg)


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
