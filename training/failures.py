"""Finds the cause of a failed training step: too little memory, or values that are not finite.

If memory runs out, on a GPU or a CPU, an error names the setting to lower. If a loss is not finite, the
utterances that cause this are found: in training mode, batch normalisation spreads the fault of one utterance
over all losses of its batch, and the step has damaged the weights, so the losses are computed again in
inference mode, with earlier weights. The last step before an evaluation or a checkpoint has no next loss that
shows its damage, so weights and dev figures are checked too.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from training.backends.step import compiled
from utils.errors import TrainingError, UserError, shorten
from utils.run_folder.run import LOWER_RATE, NOT_FINITE

log = logging.getLogger("train")

BATCH_SIZES = {
    "speech": "data.batch_frames",
    "language": "data.batch_syllables",
    "keyword": "training.batch_clips",
}
"""Task → the setting that determines the memory of a step."""

# Exceptions of TensorFlow, PyTorch, Python and NumPy; JAX and XLA have no class for it.
_NAMES = {"ResourceExhaustedError", "OutOfMemoryError", "MemoryError"}
_LONGEST_REASON = 160  # characters: a backend lists its whole allocation table
_PHRASES = ("RESOURCE_EXHAUSTED", "out of memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of any backend means that memory has run out."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _NAMES) or any(phrase in str(error) for phrase in _PHRASES)


@contextmanager
def memory_errors_explained(task: str, config: Any) -> Iterator[None]:
    """Inside the block, running out of memory raises an error that names the setting to lower.

    Args:
        task: ``speech``, ``language`` or ``keyword``.
        config: the recipe.

    Raises:
        TrainingError: memory has run out.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) or not is_out_of_memory(error):  # a UserError has its own advice
            raise
        section, name = BATCH_SIZES[task].split(".")
        value = getattr(getattr(config, section), name)
        reason = shorten(" ".join(str(error).split()), _LONGEST_REASON) or type(error).__name__
        raise TrainingError(
            f"memory has run out ({reason})",
            hint=f"lower {section}.{name} (now {value:,}), e.g. {section}.{name}={value // 2}, in a new run "
            "(another --run)",
        ) from error


def loss_error(bad: Sequence[str], ids: Sequence[str], step: int, run: Path) -> TrainingError:
    """Log that losses of a step are not finite, and return the error for it.

    Args:
        bad: the utterances that are the cause; empty if no single one is.
        ids: all utterances of the batch.
        step: number of the step, from 1.
        run: the run folder.
    """
    log.error("loss %s at step %d: %s", NOT_FINITE, step, " ".join(bad or ids))
    if bad:
        shown = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        message = f"the loss is {NOT_FINITE} for utterances {shown} at step {step}"
        hint = "correct or remove them: the same command then goes on from the last checkpoint"
    else:
        message = f"the loss is {NOT_FINITE} at step {step}, and no single utterance is the cause"
        hint = LOWER_RATE
    return TrainingError(message, where=run, hint=hint)


def check_values(values: Mapping[str, float], step: int, run: Path) -> None:
    """Check the figures of an evaluation, or the weights (see :func:`largest_weight`).

    Args:
        values: name → value.
        step: number of the step after which they were computed; 0: before the training.
        run: the run folder.

    Raises:
        TrainingError: a value is NaN or infinite. The training must not be saved: it has diverged.
    """
    bad = ", ".join(name for name, value in values.items() if not np.isfinite(value))
    if not bad:
        return
    moment = f"after step {step}" if step else "before the training"
    message = f"the training has diverged: {bad} {NOT_FINITE} {moment}"
    log.error("%s", message)
    raise TrainingError(
        message,
        where=run,
        hint=LOWER_RATE if step else "check the run in initialise_from: doctor.py RUN",
    )


def largest_weight(model: keras.Model) -> dict[str, float]:
    """The largest absolute value of all variables of a model; NaN if one of them is NaN."""
    largest = [np.abs(np.asarray(variable)).max(initial=0) for variable in model.variables]
    return {"weights": float(np.max(largest))}


def broken_rows(losses_of: Callable[..., Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Find the rows of a batch with input values that are not finite; if there is none, with such a loss.

    Args:
        losses_of: ``losses`` of a task whose model has finite weights, such as those of a checkpoint.
        arrays: the batch, as ``losses_of`` takes it.

    Returns:
        (batch,) bool. The losses are computed in inference mode, in which rows are independent. If those of
        all rows are broken, no row is: then the weights are the cause, finite but too large.
    """
    finite = [
        np.isfinite(value).all(axis=tuple(range(1, value.ndim)))  # (batch,)
        for value in arrays.values()
        if np.issubdtype(value.dtype, np.floating)
    ]
    broken = ~np.logical_and.reduce(finite) if finite else np.zeros(len(next(iter(arrays.values()))), bool)
    if broken.any() or not len(broken):
        return broken
    losses = compiled(partial(losses_of, training=False))(arrays)
    broken = ~np.isfinite(ops.convert_to_numpy(losses))
    return broken & (len(broken) == 1 or not broken.all())
