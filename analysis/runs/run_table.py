"""Makes the columns of a table of runs from their summaries, and sorts the runs by a column.

``compare_runs.py`` writes the table as text or CSV.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.runs.summaries import RunSummary, differing
from utils.errors import ConfigError

Value = str | float | None
MISSING = "–"
_LAST_FIGURES = ("seconds_per_epoch", "training_seconds", "speed")
_HEADINGS = {
    "parameters": "parameters",
    "best_epoch": "best epoch",
    "seconds_per_epoch": "s/epoch",
    "training_seconds": "trained",
    "speed": "× real time",
}


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        key: name of the column on the command line and in CSV.
        heading: name of the column in text.
        values: value of each run; None if a run has none.
        shown: function that rounds a value and formats it as text.
    """

    key: str
    heading: str
    values: tuple[Value, ...]
    shown: Callable[[Any], str] = str

    def cells(self) -> list[str]:
        """The values as rounded text."""
        return [MISSING if value is None else self.shown(value) for value in self.values]

    def exact(self) -> list[str]:
        """The values unrounded, for CSV; ``""`` if there is none."""
        return ["" if value is None else str(value) for value in self.values]


def run_columns(runs: Sequence[RunSummary], folder: str | Path) -> list[Column]:
    """All columns of a table of these runs; columns without any value are left out.

    Args:
        runs: summaries of the runs, in the order of the rows.
        folder: runs are named by their paths relative to it.
    """
    top = Path(folder)
    names = [top.resolve().name if run.path == top else run.path.relative_to(top).as_posix() for run in runs]
    keys = differing(runs)
    columns = [
        Column("run", "run", tuple(names)),
        Column("state", "state", tuple(run.state for run in runs)),
        Column("task", "task", tuple(run.task or None for run in runs)),
        Column("model.name", "model", tuple(run.model or None for run in runs)),
        *(_hyper_column(key, keys, runs) for key in keys),
        Column("data.train", "data", tuple(", ".join(run.train) or None for run in runs), _data_text),
        *(_figure_column(key, runs) for key in _figure_keys(runs)),
    ]
    return [column for column in columns if any(value is not None for value in column.values)]


def sorted_runs(
    runs: Sequence[RunSummary], columns: Sequence[Column], by: str, descending: bool
) -> list[RunSummary]:
    """The runs in the order of a column, those without a value last.

    Args:
        runs: the rows of ``columns``.
        columns: columns from :func:`run_columns`.
        by: key or heading of a column, or a part that no other column has.
        descending: largest value first.

    Raises:
        ConfigError: no column, or more than one, matches.
    """
    exact = [column for column in columns if by in (column.key, column.heading)]
    found = exact or [column for column in columns if by in column.key or by in column.heading]
    if len(found) != 1:
        message = "more than one column matches" if found else "no such column"
        raise ConfigError(f"--sort {by}: {message}", hint=_column_hint(found or columns))
    values = found[0].values
    known = [row for row in range(len(runs)) if values[row] is not None]
    numbers = all(isinstance(values[row], int | float) for row in known)
    known.sort(key=lambda row: values[row] if numbers else str(values[row]), reverse=descending)
    without_value = [row for row in range(len(runs)) if values[row] is None]
    return [runs[row] for row in [*known, *without_value]]


def _column_hint(columns: Sequence[Column]) -> str:
    return f"there are: {', '.join(repr(column.key) for column in columns)}"


def _hyper_column(key: str, keys: Sequence[str], runs: Sequence[RunSummary]) -> Column:
    last = key.rpartition(".")[2]
    unique = sum(other.rpartition(".")[2] == last for other in keys) == 1
    values = tuple(_plain(run.hyper[key]) if key in run.hyper else None for run in runs)
    return Column(
        key,
        last if unique else key,
        values,
        lambda value: f"{value:g}" if isinstance(value, float) else str(value),
    )


def _plain(value: Any) -> Value:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _data_text(value: str) -> str:
    """``datasets/aishell/learn.tsv`` → ``aishell/learn``."""
    return re.sub(r"[^,]*?([^/,]+/)?([^/,]+?)\.(tsv|txt)(?=,|$)", r" \1\2", value).strip()


def _figure_keys(runs: Sequence[RunSummary]) -> list[str]:
    found = dict.fromkeys(key for run in runs for key in run.figures)
    first = [key for key in ("parameters", "best_epoch") if key in found]
    dev = [key for key in found if key.startswith("dev_")]
    tests = [key for key in found if " " in key]
    return [*first, *dev, *sorted(tests), *(key for key in _LAST_FIGURES if key in found)]


def _figure_column(key: str, runs: Sequence[RunSummary]) -> Column:
    values = tuple(run.figures.get(key) for run in runs)
    heading = _HEADINGS.get(key, key.replace("_error_rate", " error").replace("dev_", "dev "))
    return Column(key, heading.replace(" cer", " CER"), values, _shown(key))


def _shown(key: str) -> Callable[[Any], str]:
    texts: Mapping[str, Callable[[Any], str]] = {
        "parameters": lambda value: f"{value:,.0f}",
        "best_epoch": lambda value: f"{value:.0f}",
        "training_seconds": _duration,
    }
    if key.endswith(("_error_rate", "cer", "accuracy")):
        return lambda value: f"{100 * value:.2f} %"
    return texts.get(key, lambda value: f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
