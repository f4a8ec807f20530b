"""Draws the attention weights of a language model for one sentence as heat maps: HTML page or picture.

The page is one file without network access, in which single heads and positions can be examined. The picture
(PNG, SVG, PDF) has a large map of the average and a small map of every head. The colours of each map range
from 0 to its largest weight.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.ft2font import FT2Font

from analysis.page.colours import FAINT, GRID, INK
from analysis.page.rendering import page_environment
from utils.files import replacing, write_text

COLOURS = ("#ffffff", "#99d5cf", "#0f766e", "#042f2e")
# File names of fonts with hanzi on Linux, Windows and macOS.
_CJK_FILES = re.compile(
    r"(CJK|SourceHan|NotoSansSC|NotoSerifSC).*(Regular|VF)|wqy|uming|ukai|DroidSansFallback|"
    r"simhei|simsun|msyh|PingFang|STHeiti|Hiragino Sans GB",
    re.IGNORECASE,
)
_STEPS = 65535  # the page contains weights as 16-bit fractions
_MAX_HORIZONTAL = 12  # positions; the labels of longer sentences are vertical
_MAX_LABELLED = 60  # positions; longer sentences have a label at every second or third position


@dataclass(frozen=True)
class AttentionMaps:
    """The attention weights of one sentence of L syllables.

    Attributes:
        title: title of page and picture, such as the name of the run.
        syllables: the L syllables of the sentence.
        hanzi: output of the model, one hanzi per syllable.
        weights: (blocks, heads, L, L) float32; row i has the attention of position i to all positions.
    """

    title: str
    syllables: Sequence[str]
    hanzi: str
    weights: np.ndarray


def write_attention_page(maps: AttentionMaps, path: str | Path) -> None:
    """Write the HTML page.

    Raises:
        OSError: the file cannot be written.
    """
    blocks, heads, length, _ = maps.weights.shape
    fractions = np.round(np.clip(maps.weights, 0, 1) * _STEPS).astype("<u2")
    data = {
        "syllables": list(maps.syllables),
        "hanzi": list(maps.hanzi),
        "blocks": blocks,
        "heads": heads,
        "length": length,
        "colours": COLOURS,
        "weights": base64.b64encode(fractions.tobytes()).decode("ascii"),
    }
    page = page_environment().get_template("attention.html.j2")
    write_text(path, page.render(title=maps.title, blocks=blocks, heads=heads, data=data))


def draw_attention(maps: AttentionMaps, path: str | Path) -> None:
    """Write a picture: the average of all heads with labels, then each head and the average of each block.

    Labels contain hanzi only if a font with hanzi is installed.

    Raises:
        OSError: the file cannot be written.
        ValueError: matplotlib does not know this file type.
    """
    blocks, heads, length, _ = maps.weights.shape
    side = min(max(4.5, 0.34 * length + 1.4), 16.0)  # inches
    small = min(max(side / blocks, 0.9), 1.6)
    size = (side + small * (heads + 1), max(side, small * blocks) + 0.4)
    font = cjk_font()
    with rc_context({"font.family": ["DejaVu Sans", *([font] if font else [])]}):
        figure = Figure(figsize=size, layout="constrained", dpi=110)
        figure.suptitle(maps.title, color=INK, fontsize=11)
        large, grid = figure.subfigures(1, 2, width_ratios=(side, small * (heads + 1)))
        _draw_average(large.subplots(), maps, with_hanzi=font is not None)
        _draw_heads(grid, maps.weights)
        with replacing(path) as temporary:
            figure.savefig(temporary)


def cjk_font() -> str | None:
    """Register an installed font with hanzi with matplotlib, and return its name; None if there is none.

    matplotlib's own list is a cache, which misses fonts that were installed later.
    """
    for path in sorted(font_manager.findSystemFonts()):
        if _CJK_FILES.search(Path(path).stem) and (font := FT2Font(path)).get_char_index(ord("语")):
            font_manager.fontManager.addfont(path)
            return font.family_name
    return None


def _draw_average(axes: Axes, maps: AttentionMaps, with_hanzi: bool) -> None:
    average = maps.weights.mean(axis=(0, 1))
    _draw_map(axes, average)
    axes.set_title(f"average of all heads, 0 to {100 * average.max():.0f} %", fontsize=9, color=INK)
    pairs = list(zip(maps.syllables, maps.hanzi, strict=True))
    positions = range(0, len(pairs), -(-len(pairs) // _MAX_LABELLED))
    axes.set_yticks(positions, [_label(*pairs[n], with_hanzi, " ") for n in positions], fontsize=8)
    vertical = len(pairs) > _MAX_HORIZONTAL
    between = " " if vertical else "\n"
    axes.set_xticks(positions, [_label(*pairs[n], with_hanzi, between) for n in positions], fontsize=8)
    axes.tick_params(axis="x", rotation=90 if vertical else 0, top=True, labeltop=True, bottom=False)
    axes.tick_params(axis="x", labelbottom=False)
    axes.set_ylabel("position", color=FAINT)
    axes.set_xlabel("attends to", color=FAINT)


def _label(syllable: str, hanzi: str, with_hanzi: bool, between: str) -> str:
    return f"{syllable}{between}{hanzi}" if with_hanzi else syllable


def _draw_heads(figure: SubFigure, weights: np.ndarray) -> None:
    blocks, heads = weights.shape[:2]
    for block, row in enumerate(figure.subplots(blocks, heads + 1, squeeze=False)):
        for column, axes in enumerate(row):
            _draw_map(axes, weights[block].mean(axis=0) if column == 0 else weights[block, column - 1])
            axes.set_xticks([])
            axes.set_yticks([])
            if block == 0:
                axes.set_title("average" if column == 0 else f"head {column}", fontsize=8, color=INK)
        row[0].set_ylabel(f"block {block + 1}", fontsize=8, color=INK)


def _draw_map(axes: Axes, weights: np.ndarray) -> None:
    colours = LinearSegmentedColormap.from_list("attention", COLOURS)
    axes.imshow(weights, cmap=colours, vmin=0, vmax=float(weights.max()), interpolation="nearest")
    axes.tick_params(colors=INK, length=0)
    for spine in axes.spines.values():
        spine.set_color(GRID)
