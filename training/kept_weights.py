"""Weights of the last epochs and of the best one, in files named by step and accuracy."""

from collections.abc import Mapping

import keras

from training.checkpoint import TrainingState
from utils.backend.weights import save_weights
from utils.run_folder.run import RunFolder


def keep_weights(run: RunFolder, model: keras.Model, metric: str, state: TrainingState, kept: int) -> None:
    """Save the model's weights for the last epoch of ``state``.

    The files of the last ``kept`` epochs and of the best epoch stay; all others are deleted.

    Args:
        run: the weights go into its folder ``weights/``.
        model: with the weights to save.
        metric: key of the error rate in the rows of the history.
        state: its history ends with the epoch that has just finished.
        kept: number of epochs, at least 1.
    """
    save_weights(model, run.kept_weights / weights_name(state.history[-1], metric))
    rows = [*state.history[-kept:], *state.history[state.best_epoch - 1 : state.best_epoch]]
    wanted = {weights_name(row, metric) for row in rows}
    for path in run.kept_weights.glob("step_*.weights.h5"):
        if path.name not in wanted:
            path.unlink()


def weights_name(row: Mapping[str, float], metric: str) -> str:
    """File name for a row of the history: ``step_000400_accuracy_0.9531.weights.h5``."""
    return f"step_{int(row['step']):06}_accuracy_{1 - row[metric]:.4f}.weights.h5"
