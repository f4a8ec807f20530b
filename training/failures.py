"""Finds the cause of a failed training step: too little memory, or values that are not finite.

If memory runs out, on a GPU or a CPU, an error names the setting to lower. If a loss is not finite, an error
names its utterances. The last step before an evaluation or a checkpoint has no next loss that shows its
damage, so weights and dev figures are checked too.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np

from utils.errors import TrainingError, UserError, shorten
from utils.run_folder.run import LOWER_RATE, NOT_FINITE
from utils.vocabulary import first_few

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


def check_losses(losses: np.ndarray, ids: Sequence[str], step: int, run: Path) -> None:
    """Check the losses of a step, (batch,).

    Raises:
        TrainingError: a loss is NaN or infinite; the error names the utterances. With batch normalisation the
            fault of one utterance spreads to all of its batch.
    """
    bad = [name for name, loss in zip(ids, losses, strict=True) if not np.isfinite(loss)]
    if not bad:
        return
    log.error("loss %s at step %d: %s", NOT_FINITE, step, " ".join(bad))
    raise TrainingError(
        f"the loss is {NOT_FINITE} for utterances {first_few(bad)} at step {step}",
        where=run,
        hint=f"correct or remove a damaged recording among them, or {LOWER_RATE}",
    )


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
