"""Compare the runs in a folder: a table of their differing hyper-parameters, metrics and error rates."""

from utils.command.entry import run_command

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from tqdm import tqdm

from analysis.runs import MISSING, Column, find_runs, read_run, run_columns, sorted_runs
from utils.command.parser import CommandParser
from utils.errors import RunError
from utils.text_table import csv_table, text_table

MAX_CELL = 60  # characters in the terminal; CSV has everything
_LOG_WIDTH = 200  # of a file or a pipe
EXAMPLES = """\
examples:
  python compare_runs.py runs
  python compare_runs.py runs --task speech --sort dev_syllable_error_rate
  python compare_runs.py runs --sort speed --descending
  python compare_runs.py runs --csv > runs.csv

The table has the hyper-parameters with different values in two of the runs. Where it is wider than the
terminal, they follow below it with the numbers of the runs, and so do the last other columns. A
hyper-parameter that a run does not have (another model) does not count as different. Tests are read from the
folders of the runs, where test.py writes them. Unfinished and broken runs are marked. In the browser:
tensorboard --logdir runs, HPARAMS.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and print the table."""
    options = _parser().parse_args(arguments)
    found = find_runs(options.folder)
    runs = [read_run(path) for path in tqdm(found, unit="run", disable=None, leave=False)]
    if options.task:
        runs = [run for run in runs if run.task == options.task]
        if not runs:
            raise RunError(f"no run of task '{options.task}' below this folder", where=options.folder)
    if options.sort:
        runs = sorted_runs(runs, run_columns(runs, options.folder), options.sort, options.descending)
    if options.csv:
        columns = run_columns(runs, options.folder)
        rows = zip(*(column.exact() for column in columns), strict=True)
        print(csv_table([column.key for column in columns], list(rows)), end="")
        return
    # One table for each task: speech and language models are not comparable.
    tasks = list(dict.fromkeys(run.task for run in runs))
    by_task = [[run for run in runs if run.task == task] for task in tasks]
    print("\n".join([_tables(run_columns(group, options.folder)) for group in by_task]), end="")


def _tables(columns: list[Column]) -> str:
    """One table; what makes it wider than the terminal stands below it, as a list of values for each column.

    The hyper-parameters go there first, then the last columns. Names of runs that take a third of the width
    stand above the table.
    """
    width = shutil.get_terminal_size((_LOG_WIDTH, 0)).columns
    if _width(columns) <= width:
        return _table(columns)
    numbers = tuple(map(str, range(1, len(columns[0].values) + 1)))
    names, *others = (column for column in columns if not column.is_setting)
    parts, head = [], [Column("number", "#", numbers), names]
    if _width([names]) > width // 3:
        parts.append(text_table(["#", "run"], list(zip(numbers, names.cells(), strict=True)), left=2))
        head.remove(names)
    while others and _width([*head, *others]) > width:
        others.pop()
    parts.append(_table([*head, *others]))
    below = [column for column in columns if column not in (names, *others)]
    key = max((cell_len(column.heading) for column in below), default=0)
    for column in below:
        heading = f"{column.heading}{' ' * (key - cell_len(column.heading))}"
        text = f"{heading}  {_values(column, numbers)}"
        indent = " " * (key + 2)
        parts.append(textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False))
    return "\n".join([*parts, ""])


def _width(columns: list[Column]) -> int:
    return max(map(cell_len, _table(columns).splitlines()))


def _values(column: Column, numbers: Sequence[str]) -> str:
    """``256 (1, 3) · 320 (2)``: each value with the numbers of the runs that have it."""
    runs: dict[str, list[str]] = {}
    for number, cell in zip(numbers, column.cells(), strict=True):
        if cell != MISSING:
            runs.setdefault(cell or "''", []).append(number)
    return " · ".join(f"{cell} ({', '.join(found)})" for cell, found in runs.items())


def _table(columns: list[Column]) -> str:
    rows = zip(*(column.cells() for column in columns), strict=True)
    rows = [[cell if len(cell) <= MAX_CELL else f"{cell[: MAX_CELL - 1]}…" for cell in row] for row in rows]
    left = sum(all(isinstance(value, str | None) for value in column.values) for column in columns[:5])
    return text_table([column.heading for column in columns], rows, left)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs"), help="default: runs")
    parser.add_argument("--task", help="only runs of this task, such as speech or language")
    parser.add_argument("--sort", metavar="COLUMN", help="a column's name, or a part of it; default: run")
    parser.add_argument("--descending", action="store_true", help="largest value first")
    parser.add_argument("--csv", action="store_true", help="as CSV, unrounded, all runs in one table")
    return parser


if __name__ == "__main__":
    run_command(main)
