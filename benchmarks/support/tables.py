"""Prints the table of a benchmark in the terminal: a title, columns and rows of text."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

_LOG_WIDTH = 200  # in a file or a pipe, where nothing is cut off at the edge of a terminal


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> None:
    """Print a table whose first ``left`` columns are aligned to the left, the others to the right."""
    table = Table(title=title)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else _LOG_WIDTH).print(table)
