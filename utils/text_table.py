"""Writes headings and rows as a table: in the terminal (Rich), or as aligned text, CSV, TSV or Markdown."""

import csv
import io
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len  # the width in a terminal: a hanzi takes two columns
from rich.console import Console
from rich.table import Column, Table

Rows = Sequence[Sequence[str]]
_LOG_WIDTH = 200  # of tables in a file or a pipe, where nothing is cut off at the edge of a terminal


def percent(rate: float | None) -> str:
    """``0.0534`` → ``5.34 %``; ``–`` for a rate that is not defined."""
    return "–" if rate is None else f"{100 * rate:.2f} %"


def print_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str | int]],
    left: int = 1,
) -> None:
    """Print a table that fits the terminal; numbers are written with commas.

    Args:
        title: title of the table.
        headings: headings of the columns.
        rows: each with one cell a column.
        left: number of columns, from the first, that are aligned left; the others are aligned right.
    """
    columns = [Column(heading, overflow="fold") for heading in headings[:left]]
    columns += [Column(heading, justify="right", no_wrap=True) for heading in headings[left:]]
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, str) else f"{cell:,}" for cell in row))
    # Without markup, which would take a [red] in a text for a colour.
    Console(width=None if sys.stdout.isatty() else _LOG_WIDTH, markup=False).print(table)


def text_table(headings: Sequence[str], rows: Rows, left: int = 1) -> str:
    """A text table with two spaces between columns. Lines are never wrapped, for ``less -S`` and ``grep``.

    Args:
        headings: headings of the columns.
        rows: each with one cell a column.
        left: number of columns, from the first, that are aligned left; the others are aligned right.
    """
    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    lines = []
    for row in (headings, *rows):
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(cell + space if column < left else space + cell)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def csv_table(headings: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """CSV with a header line; a cell with a comma, a quote or a line break is quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([headings, *rows])
    return text.getvalue()


def tsv_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lines of cells separated by tabs, the headings first; no cell may contain a tab or a line break."""
    return "".join("\t".join(map(str, row)) + "\n" for row in (headings, *rows))


def markdown_table(headings: Sequence[str], rows: Rows, left: int = 1) -> str:
    """A Markdown table; the arguments are those of :func:`text_table`."""
    ruler = [":--" if column < left else "--:" for column in range(len(headings))]
    lines = [_markdown_cells(headings), ruler, *map(_markdown_cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown_cells(cells: Sequence[str]) -> list[str]:
    return [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
