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

The table has the hyper-parameters with different values in two of the runs; where it is wider than the
terminal, they follow below it, with the numbers of the runs. A hyper-parameter that a run does not have
(another model) does not count as different. Tests are read from the folders of the runs, where test.py writes
them. Unfinished and broken runs are marked. In the browser: tensorboard --logdir runs, HPARAMS.
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
    """One table; if it is wider than the terminal, the hyper-parameters follow as lists of their values."""
    width = shutil.get_terminal_size((_LOG_WIDTH, 0)).columns
    whole = _table(columns)
    settings = [column for column in columns if column.is_setting]
    if not settings or max(map(cell_len, whole.splitlines())) <= width:
        return whole
    numbers = tuple(map(str, range(1, len(columns[0].values) + 1)))
    others = [Column("number", "#", numbers), *(column for column in columns if not column.is_setting)]
    key = max(len(column.heading) for column in settings)
    lines = [
        textwrap.fill(
            f"{column.heading:{key}}  {_values(column, numbers)}", width, subsequent_indent=" " * (key + 2)
        )
        for column in settings
    ]
    return "\n".join([_table(others), *lines, ""])


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
