"""Turns running out of memory, on a GPU or a CPU, into an error that names the setting to lower."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from utils.errors import TrainingError, shorten

BATCH_SIZES = {
    "speech": "data.batch_frames",
    "language": "data.batch_syllables",
    "keyword": "training.batch_clips",
}
"""Task → the setting that determines the memory of a step."""

# Of TensorFlow, PyTorch, Python and NumPy; JAX and XLA have no class for it.
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
