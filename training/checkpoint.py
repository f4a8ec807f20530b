"""Saves and loads the checkpoint of a training run; also keeps the weights of selected epochs as files.

A checkpoint holds all variables of model and optimiser, the position in the data, and the history. A file is
written under a temporary name and renamed, so a kill at any moment leaves a complete file.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

from utils.backend.weights import save_weights
from utils.errors import RunError
from utils.files import read_arrays, replacing
from utils.run_folder.run import RunFolder

_MODEL = "model_"  # prefix of the model's variables in the file


@dataclass
class TrainingState:
    """Progress of a training run: what is needed to resume it, besides the variables.

    ``step`` counts all optimiser steps, ``epoch_step`` those of the current epoch; epochs are counted from 1.
    ``loss``, ``utterances`` and ``seconds`` are sums since the last evaluation. ``history`` has a row of
    metrics for each evaluation; ``best_row`` is the number of the best one, from 1, and ``best`` its error
    rate and loss. ``initial`` has the metrics of the initial weights, if they were evaluated: they may be the
    best, as row 0.
    """

    epoch: int = 1
    epoch_step: int = 0
    step: int = 0
    loss: float = 0.0
    utterances: int = 0
    seconds: float = 0.0
    best: list[float] | None = None
    best_row: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    initial: dict[str, float] = field(default_factory=dict)

    def best_metrics(self) -> dict[str, float]:
        """The metrics of the best evaluation."""
        return dict(self.history[self.best_row - 1] if self.best_row else self.initial)

    @property
    def best_epoch(self) -> int:
        """The epoch of the best evaluation; 0 if the initial weights are the best."""
        return int(self.best_metrics().get("epoch", 0))


def save_checkpoint(
    path: Path, model: keras.Model, optimizer: keras.optimizers.Optimizer, state: TrainingState
) -> None:
    """Write the state and all variables of model and optimiser, including the seeds of dropout."""
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in _variables(model, optimizer).items()}
    arrays["state"] = np.asarray(json.dumps(asdict(state)))
    with replacing(path) as temporary:
        np.savez(temporary, **arrays)


def load_checkpoint(path: Path, model: keras.Model, optimizer: keras.optimizers.Optimizer) -> TrainingState:
    """Assign the saved values to the variables and return the state.

    Raises:
        RunError: the file can't be read, is damaged, or belongs to another model or optimiser.
    """
    variables = _variables(model, optimizer)
    try:
        arrays = read_arrays(path)
        state = TrainingState(**json.loads(str(arrays.pop("state"))))
    except OSError as error:  # it may be complete
        raise RunError(
            f"the checkpoint can't be read ({error.strerror or error})",
            where=path,
            hint="check the permissions and the disk",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"the checkpoint can't be read ({error})", where=path, hint="delete it to start again"
        ) from error
    hint = "has the code changed? delete the run folder to start again"
    if set(arrays) != set(variables):
        counts = f"{len(arrays)} variables saved, {len(variables)} in model and optimiser"
        raise RunError(f"the checkpoint belongs to another model ({counts})", where=path, hint=hint)
    for name, variable in variables.items():
        if tuple(variable.shape) != arrays[name].shape:
            shapes = f"{arrays[name].shape} saved, {tuple(variable.shape)} here"
            raise RunError(
                f"the checkpoint belongs to another model ('{variable.path}': {shapes})",
                where=path,
                hint=hint,
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])
    return state


def keep_weights(run: RunFolder, model: keras.Model, metric: str, state: TrainingState, kept: int) -> None:
    """Save the model's weights for the last evaluation of ``state``.

    The files of the last ``kept`` evaluations and of the best one stay; all others are deleted.

    Args:
        run: the weights go into its folder ``weights/``.
        model: the model whose weights are saved.
        metric: key of the error rate in the rows of the history.
        state: progress; its history ends with this evaluation.
        kept: number of evaluations, at least 1.
    """
    save_weights(model, run.kept_weights / weights_name(state.history[-1], metric))
    rows = [*state.history[-kept:], *state.history[max(state.best_row - 1, 0) : state.best_row]]
    names = {weights_name(row, metric) for row in rows}
    for path in run.kept_weights.glob("step_*.weights.h5"):
        if path.name not in names:
            path.unlink()


def weights_name(row: Mapping[str, float], metric: str) -> str:
    """File name for a row of the history, with the accuracy in place of an error rate.

    Such as ``step_000400_accuracy_0.9531.weights.h5`` or ``step_000400_dev_perplexity_46.1000.weights.h5``.
    """
    is_rate = metric.endswith("error_rate")
    figure = f"accuracy_{1 - row[metric]:.4f}" if is_rate else f"{metric}_{row[metric]:.4f}"
    return f"step_{int(row['step']):06}_{figure}.weights.h5"


def _variables(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> dict[str, keras.Variable]:
    # By position, not by name: automatic names in Keras are numbered over all models of a process.
    named = {f"{_MODEL}{index:04}": variable for index, variable in enumerate(model.variables)}
    return named | {f"optimizer_{index:04}": variable for index, variable in enumerate(optimizer.variables)}
