"""Finds the runs below a folder, reads a summary of each, and makes a table of them, sorted by a column.

A run is a folder with a ``config.yaml`` or another file of a run. A damaged run raises no error: its
``state`` says what is damaged, and its summary has everything that could be read. ``compare_runs.py`` writes
the table.
"""

import csv
import json
import math
import os
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.weights.weight_file import count_parameters
from utils.config import flatten
from utils.errors import ConfigError, RunError, UserError, require
from utils.run_folder.checksums import verified
from utils.run_folder.run import NOT_FINITE, NOT_OF_THE_RECIPE, RunFolder

FINISHED = "finished"
DIVERGED = "diverged"
NOT_TRAINED_HERE = "not trained here"  # imported, packed or made from another run
RATES = ("syllable_error_rate", "cer", "accuracy")  # the rates of a test that are shown
# Keys of config.yaml that are not hyper-parameters: they have their own columns, or no effect on the result.
_NOT_COMPARED = re.compile(
    rf"task|model\.name|({'|'.join(NOT_OF_THE_RECIPE)})\..*|data\.(train|dev|test|cache|workers)"
)
# Errors from files of another format, or damaged ones.
_UNREADABLE = (UserError, OSError, ValueError, TypeError, AttributeError, KeyError)
_NGRAMS = re.compile(r"([\d,]+) \d+-grams")


@dataclass(frozen=True)
class RunSummary:
    """Summary of one run.

    Attributes:
        path: folder of the run.
        state: ``finished``, ``diverged``, ``unfinished, epoch 3 of 10`` (also after the last epoch, until
            ``train.py`` has written ``metrics.json``), ``in its first epoch``, ``not begun``, ``not trained
            here`` or ``broken: …``.
        task, model: names from its config; ``""`` if the config cannot be read.
        hyper: hyper-parameters by dotted key.
        train: training manifests.
        figures: numbers by key: ``parameters`` (of an n-gram model, its n-grams), ``best_epoch``, ``dev_…``
            of that epoch, ``<test> <rate>`` of each test, ``seconds_per_epoch``, ``training_seconds``, and
            ``speed``, the seconds of audio recognised in a second in all tests.
    """

    path: Path
    state: str
    task: str = ""
    model: str = ""
    hyper: Mapping[str, Any] = field(default_factory=dict)
    train: Sequence[str] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


def find_runs(folder: str | Path) -> list[Path]:
    """Folders of runs at or below ``folder``, sorted; hidden folders and folders inside a run are left out.

    Raises:
        RunError: the folder does not exist or contains no run.
    """
    folder = Path(folder)
    if not folder.is_dir():
        hint = "train a model, or give the folder that holds the runs"
        raise RunError("no such folder", where=folder, hint=hint)
    found = []
    for parent, folders, _ in os.walk(folder):
        run = RunFolder(Path(parent))
        parts = (run.config_file, run.history, run.log, run.best_weights, run.last_weights)
        if any(part.is_file() for part in parts):
            found.append(run.path)
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    if not found:
        raise RunError("no run below this folder", where=folder, hint="a run is a folder that train.py wrote")
    return sorted(found)


def read_run(path: Path) -> RunSummary:
    """Read the summary of one run; what cannot be read is reported in its state, never raised."""
    run, problems = RunFolder(path), []
    try:
        config = run.config()
    except (UserError, OSError) as error:
        return RunSummary(path, f"broken: {error.message if isinstance(error, UserError) else error}")
    figures: dict[str, float] = {}
    for part in (_parameters, _training, _tests):
        try:
            figures |= part(run)
        except _UNREADABLE as error:
            problems.append(error.message if isinstance(error, UserError) else " ".join(str(error).split()))
    settings = flatten(config)
    return RunSummary(
        path,
        f"broken: {'; '.join(problems)}" if problems else _state(run, settings, figures),
        str(settings.get("task") or ""),
        str(settings.get("model.name") or ""),
        {key: value for key, value in settings.items() if not _NOT_COMPARED.fullmatch(key)},
        _train_lists(settings),
        figures,
    )


def read_history(path: str | Path) -> dict[str, list[float]]:
    """Read the columns of a ``history.csv``, with one value an epoch; NaN for one that is empty.

    Raises:
        RunError: the file is missing, changed, empty, or not a table of numbers.
    """
    path = Path(path)
    try:
        with verified(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        columns = {
            name: [math.nan if row[name] == "" else float(row[name]) for row in rows] for name in rows[0]
        }
    except (OSError, UnicodeDecodeError, ValueError, TypeError, IndexError) as error:
        raise RunError(
            f"not a valid training history ({error})", where=path, hint="train it again"
        ) from error
    return columns


def differing(runs: Sequence[RunSummary]) -> list[str]:
    """Keys of the hyper-parameters that have different values in two runs, in the order of the configs.

    A hyper-parameter that a run does not have (another model) does not count as different.
    """
    values: dict[str, set[str]] = {}
    for run in runs:
        for key, value in run.hyper.items():
            values.setdefault(key, set()).add(repr(value))
    return [key for key, found in values.items() if len(found) > 1]


def _train_lists(settings: Mapping[str, Any]) -> tuple[str, ...]:
    lists = settings.get("data.train") or []
    return tuple(map(str, lists)) if isinstance(lists, list) else ()


def _state(run: RunFolder, settings: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    if NOT_FINITE in run.last_logged():
        return DIVERGED
    if run.metrics.is_file():
        return FINISHED
    if "epochs_done" in figures:
        return f"unfinished, epoch {figures['epochs_done']:.0f} of {settings.get('training.epochs', '?')}"
    if run.checkpoint.is_file():
        return "in its first epoch"
    has_network = run.best_weights.is_file() or run.packed_network.is_file()
    return NOT_TRAINED_HERE if has_network else "not begun"


def _parameters(run: RunFolder) -> dict[str, float]:
    if run.best_weights.is_file():
        return {"parameters": count_parameters(run.best_weights)}
    summary = run.model_summary
    text = verified(summary).read_text(encoding="utf-8", errors="replace") if summary.is_file() else ""
    counts = [int(number.replace(",", "")) for number in _NGRAMS.findall(text)]
    return {"parameters": sum(counts)} if counts else {}


def _training(run: RunFolder) -> dict[str, float]:
    """Metrics of the best epoch and times, from the history; an n-gram model only has metrics."""
    metrics = _read_json(run.metrics) if run.metrics.is_file() else {}
    if not run.history.is_file():
        return _dev(metrics.get("best") or {})
    history = read_history(run.history)
    rows = [dict(zip(history, row, strict=True)) for row in zip(*history.values(), strict=True)]
    metric = metrics.get("metric") or next(
        (key for key in history if key.endswith("_error_rate")), "dev_loss"
    )
    best = metrics.get("best") or min(rows, key=lambda row: row.get(metric, 0.0))
    seconds = history.get("seconds") or [0.0]
    return {
        "epochs_done": max(history.get("epoch") or [0]),
        **({"best_epoch": best["epoch"]} if "epoch" in best else {}),
        **_dev(best),
        "seconds_per_epoch": statistics.median(seconds),
        "training_seconds": sum(seconds),
    }


def _dev(best: Mapping[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in best.items() if key.startswith("dev_")}


def _tests(run: RunFolder) -> dict[str, float]:
    """Rates of each test in the run's folder, and the speed over all of them."""
    figures: dict[str, float] = {}
    seconds, audio = 0.0, 0.0
    for name, results in _results(run.tests):
        figures |= {f"{name} {rate}": float(results[rate]) for rate in RATES if rate in results}
        seconds += float(results.get("seconds") or 0)
        audio += float(results.get("audio_seconds") or 0)
    return {**figures, "speed": audio / seconds} if seconds and audio else figures


def _results(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Results of the tests in ``test/<name>/results.json`` and ``test/<name>.json``."""
    for path in sorted([*folder.glob("*/results.json"), *folder.glob("*.json")]):
        yield path.parent.name if path.name == "results.json" else path.stem, _read_json(path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(verified(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{path.name} is damaged", where=path) from error
    require(isinstance(values, dict), f"{path.name} is damaged", where=path, error=RunError)
    return values


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
        is_setting: whether it is a hyper-parameter.
    """

    key: str
    heading: str
    values: tuple[Value, ...]
    shown: Callable[[Any], str] = str
    is_setting: bool = False

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
        Column(
            "data.train",
            "data",
            tuple(", ".join(run.train) or None for run in runs),
            _data_text,
            is_setting=True,
        ),
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
    sortable: list[Any] = list(values) if numbers else list(map(str, values))
    known.sort(key=sortable.__getitem__, reverse=descending)
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
        is_setting=True,
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
