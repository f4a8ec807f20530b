"""A finished epoch → its weights in a file of their own, named by step and accuracy; older ones go."""

from __future__ import annotations

from collections.abc import Mapping

import keras

from training.checkpoint import TrainingState
from utils.backend.weights import save_weights
from utils.run_folder.run import RunFolder


def keep_weights(run: RunFolder, model: keras.Model, metric: str, state: TrainingState, kept: int) -> None:
    """Save the model's weights as those of the last epoch of ``state``.

    Beside them stay those of the last ``kept`` epochs and of the best one; all other files of the folder go.

    Args:
        run: whose ``weights/`` it is.
        model: with the weights to save.
        metric: the error rate in the rows of the history.
        state: its history ends with the epoch that has just been finished.
        kept: how many, at least 1.
    """
    save_weights(model, run.kept_weights / weights_name(state.history[-1], metric))
    rows = [*state.history[-kept:], state.history[state.best_epoch - 1]]
    wanted = {weights_name(row, metric) for row in rows}
    for path in run.kept_weights.glob("step_*.weights.h5"):
        if path.name not in wanted:
            path.unlink()


def weights_name(row: Mapping[str, float], metric: str) -> str:
    """``step_000400_accuracy_0.9531.weights.h5`` for a row of the history."""
    return f"step_{int(row['step']):06}_accuracy_{1 - row[metric]:.4f}.weights.h5"
