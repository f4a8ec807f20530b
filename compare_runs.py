"""Compare the runs in a folder: a table of their differing hyper-parameters, metrics and error rates."""

from utils.command.entry import run_command

import argparse
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from analysis.runs.run_table import Column, check_column, run_columns, sorted_runs
from analysis.runs.summaries import RunSummary, find_runs, read_run
from utils.errors import RunError
from utils.text_table import csv_table, markdown_table, text_table

MAX_CELL = 60  # characters in the terminal; CSV and Markdown have everything
EXAMPLES = """\
examples:
  python compare_runs.py runs
  python compare_runs.py runs --task speech --sort dev_syllable_error_rate
  python compare_runs.py runs --sort speed --descending --markdown > runs.md
  python compare_runs.py runs --csv > runs.csv

The table has the hyper-parameters with different values in two of the runs. A hyper-parameter that a run does
not have (another model) does not count as different. Tests are read from the folders of the runs, where
test.py writes them. Unfinished and broken runs are marked. In the browser: tensorboard --logdir runs,
HPARAMS.
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
    if options.sort and any(run.task for run in runs):  # runs that cannot be read have no columns to sort by
        check_column(run_columns(runs, options.folder), options.sort)
    if options.csv:
        print(csv_table(*_exact(_columns(runs, options))), end="")
        return
    # One table for each task: speech and language models are not comparable.
    tasks = list(dict.fromkeys(run.task for run in runs))
    by_task = [[run for run in runs if run.task == task] for task in tasks]
    print("\n".join([_readable(_columns(group, options), options) for group in by_task]), end="")


def _columns(runs: list[RunSummary], options: argparse.Namespace) -> list[Column]:
    columns = run_columns(runs, options.folder)
    if options.sort:
        runs = sorted_runs(runs, columns, options.sort, options.descending)
        columns = run_columns(runs, options.folder)
    return columns


def _exact(columns: list[Column]) -> tuple[list[str], list[tuple[str, ...]]]:
    return [column.key for column in columns], list(zip(*(column.exact() for column in columns), strict=True))


def _readable(columns: list[Column], options: argparse.Namespace) -> str:
    headings = [column.heading for column in columns]
    rows = list(zip(*(column.cells() for column in columns), strict=True))
    left = sum(all(isinstance(value, str | None) for value in column.values) for column in columns[:4])
    if options.markdown:
        return markdown_table(headings, rows, left)
    rows = [[cell if len(cell) <= MAX_CELL else f"{cell[: MAX_CELL - 1]}…" for cell in row] for row in rows]
    if not options.transpose:
        return text_table(headings, rows, left)
    first, *rest = list(zip(headings, *rows, strict=True))
    return text_table(first, rest)


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("runs"), help="default: runs")
    parser.add_argument("--task", help="only runs of this task, such as speech or language")
    parser.add_argument("--sort", metavar="COLUMN", help="a column's name, or a part of it; default: run")
    parser.add_argument("--descending", action="store_true", help="largest value first")
    form_of_output = parser.add_mutually_exclusive_group()
    form_of_output.add_argument("--csv", action="store_true", help="as CSV, unrounded, all runs in one table")
    form_of_output.add_argument("--markdown", action="store_true", help="as Markdown")
    form_of_output.add_argument("--transpose", action="store_true", help="a column for each run")
    return parser


if __name__ == "__main__":
    run_command(main)
