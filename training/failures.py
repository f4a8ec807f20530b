"""Finds the cause of a failed training step: too little memory, or utterances whose loss is not finite.

If memory runs out, on a GPU or a CPU, an error names the setting to lower. If a loss is not finite, the
utterances that cause this are found: in training mode, batch normalisation spreads the fault of one utterance
over all losses of its batch, and the step has damaged the weights, so the losses are computed again in
inference mode, with earlier weights.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from keras import ops

from training.backends.step import compiled
from utils.errors import TrainingError, shorten

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
        if not is_out_of_memory(error):
            raise
        section, name = BATCH_SIZES[task].split(".")
        value = getattr(getattr(config, section), name)
        reason = shorten(" ".join(str(error).split()), _LONGEST_REASON) or type(error).__name__
        raise TrainingError(
            f"memory has run out ({reason})",
            hint=f"lower {section}.{name} (now {value:,}), e.g. {section}.{name}={value // 2}, in a new run "
            "(another --run); doctor.py --machine --config RECIPE tests a step",
        ) from error


def broken_rows(losses_of: Callable[..., Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Find the rows of a batch with input values that are not finite; if there is none, with such a loss.

    Args:
        losses_of: ``losses`` of a task whose model has finite weights, such as those of a checkpoint.
        arrays: the batch, as ``losses_of`` takes it.

    Returns:
        (batch,) bool. The losses are computed in inference mode, in which rows are independent.
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
    return ~np.isfinite(ops.convert_to_numpy(losses))
