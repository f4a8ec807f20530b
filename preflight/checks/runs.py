"""Checks a run folder: changed or missing files, unfit weights, and a model that has learnt nothing.

In twenty successful runs the dev error falls below 99 % within 3 epochs and 200 steps.
"""

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from model_keyword.loading import load_keyword_model
from model_language.registry import load_language_model
from model_speech.acoustic_model import load_acoustic_model
from model_speech.packed_run import is_packed
from preflight.findings import ERROR, WARNING, Finding
from training.run import RECIPES
from utils.config import build_config
from utils.errors import RunError, UserError
from utils.run_folder import checksums
from utils.run_folder.run import LOWER_RATE, NOT_OF_THE_RECIPE, RunFolder, arrays_not_finite

_LOADERS: dict[str, Callable[[Path], Any]] = {
    "speech": load_acoustic_model,
    "language": load_language_model,
    "keyword": load_keyword_model,
}
_COLLAPSED = 0.99  # least dev error of a model that has learnt nothing
# Shorter histories are not judged; nor is the dev error of an unfinished training before so many steps.
_EPOCHS_TO_JUDGE, _STEPS_TO_JUDGE = 3, 1000
_AGAIN = "copy the run folder again, or train again"


def unreadable_config(run: RunFolder) -> Iterator[Finding]:
    """A config.yaml that cannot be read."""
    try:
        run.config()
    except RunError as error:
        problem, advice = "the config can't be read", error.hint or _AGAIN
        yield Finding(ERROR, str(run.config_file), "", problem, advice, error.message)


def changed_file(run: RunFolder) -> Iterator[Finding]:
    """Files that have changed since the training."""
    accept = f"python inspect_model.py accept {run.path}"
    if not checksums.exist(run.path):
        problem = "a run without checksums: damage to its files can't be detected"
        yield Finding(WARNING, str(run.path), "", problem, f"to add them: {accept}")
        return
    for name, state in checksums.differences(run.path).items():
        advice = f"{_AGAIN}; if it was changed on purpose: {accept}"
        yield Finding(ERROR, str(run.path), name, f"it is {state}", advice)


def unknown_config(run: RunFolder) -> Iterator[Finding]:
    """A config that this version cannot build: a finished run can be used, but not resumed."""
    if is_packed(run):  # its config is not that of a training: without data, with settings of the search
        return
    config = {key: value for key, value in run.config().items() if key not in NOT_OF_THE_RECIPE}
    if config.get("task") not in RECIPES:
        problem, advice = f"a run of task '{config.get('task')}'", f"known: {', '.join(RECIPES)}"
        yield Finding(ERROR, str(run.config_file), "", problem, advice)
        return
    schema, variants, _ = RECIPES[config["task"]]
    try:
        build_config(schema, config, variants, where="")
    except UserError as error:
        severity = WARNING if run.metrics.is_file() else ERROR
        advice = "to resume it, use the git revision in config.yaml"
        yield Finding(severity, str(run.config_file), "", "not a config of this code", advice, error.message)


def unfit_weights(run: RunFolder) -> Iterator[Finding]:
    """Weights and other files that are missing, damaged, or do not fit each other."""
    begun = run.checkpoint.is_file() and not run.best_weights.is_file()
    if begun and not run.history.is_file():
        problem = "no weights yet: the training is in its first epoch"
        advice = "wait until the epoch ends; if the training was stopped, repeat the train.py command"
        yield Finding(WARNING, str(run.path), "", problem, advice)
        return
    try:
        _LOADERS[run.config()["task"]](run.path)
    except UserError as error:
        hint = error.hint or "config.yaml, vocabulary/ and weights must come from one training"
        where = str(error.where or run.path)
        yield Finding(ERROR, where, "", "the run can't be loaded", " ".join(hint.split()), error.message)


def not_finite(run: RunFolder) -> Iterator[Finding]:
    """Weights that are NaN or infinite."""
    for path in (run.best_weights, run.last_weights):
        if path.is_file() and (bad := _not_finite(path)):
            detail = f"{len(bad)} arrays, e.g. {bad[0]}"
            problem = "weights that are NaN or infinite"
            yield Finding(ERROR, str(run.path), path.name, problem, f"{LOWER_RATE}, or in float32", detail)


def collapsed(run: RunFolder) -> Iterator[Finding]:
    """A dev error that stays at 100 %: the model has learnt nothing."""
    errors, steps = [], 0.0
    if run.history.is_file():
        with run.history.open(encoding="utf-8", errors="replace") as file, suppress(ValueError, TypeError):
            for row in csv.DictReader(file):
                rates = (row[name] for name in row if re.fullmatch("dev_.*_error_rate", name or ""))
                errors.append(float(next(rates, "") or "nan"))
                steps = float(row.get("step") or 0)
    if len(errors) < _EPOCHS_TO_JUDGE or not min(errors) >= _COLLAPSED:
        return
    if steps >= _STEPS_TO_JUDGE or run.metrics.is_file():
        problem = "the dev error stays at 100 %: the model has learnt nothing"
        test = f" (doctor.py {run.path} --overfit)" if run.config().get("task") == "speech" else ""
        advice = f"check texts and learning rate{test}, or train longer"
        detail = f"{min(errors):.1%} after {len(errors)} epochs, {steps:.0f} steps"
        yield Finding(ERROR, str(run.history), "", problem, advice, detail)


def _not_finite(path: Path) -> list[str]:
    """Names of the arrays in a weights file with NaN or infinite values; of a damaged file none."""
    bad: list[str] = []

    def visit(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            bad.extend(arrays_not_finite({name: np.asarray(item)}))

    try:
        with h5py.File(path) as file:
            file.visititems(visit)
    except (OSError, RuntimeError, KeyError):
        return []  # reported by unfit_weights
    return bad


OPENED = (unreadable_config,)
"""Checks that all others need."""
RUN = (changed_file, unknown_config, not_finite, collapsed)
"""Checks of the files of a run."""
LOADED = (unfit_weights,)
"""Checks that load the model; only for runs without another error."""
