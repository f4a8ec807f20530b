"""Headings and rows in; text with aligned columns, CSV or Markdown out."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rich.cells import cell_len  # a hanzi is two columns wide

Rows = Sequence[Sequence[str]]


def text_table(headings: Sequence[str], rows: Rows, left: int = 1) -> str:
    """Columns two spaces apart, however wide the terminal is: lines stay whole for ``less -S`` and ``grep``.

    Args:
        headings: of the columns.
        rows: as many cells each.
        left: so many columns, the first ones, are set flush left, the others flush right.
    """
    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    lines = []
    for row in (headings, *rows):
        cells = []
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(cell + space if place < left else space + cell)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def csv_table(headings: Sequence[str], rows: Rows) -> str:
    """CSV with a header line; a cell with a comma, a quote or a line break is quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([headings, *rows])
    return text.getvalue()


def markdown_table(headings: Sequence[str], rows: Rows, left: int = 1) -> str:
    """A Markdown table; arguments as of :func:`text_table`."""
    ruler = [":--" if place < left else "--:" for place in range(len(headings))]
    lines = [_markdown_cells(headings), ruler, *map(_markdown_cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown_cells(cells: Sequence[str]) -> list[str]:
    return [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
