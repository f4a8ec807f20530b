"""A batch whose loss is not finite → which of its utterances are to blame.

Batch normalisation spreads one broken utterance over the losses of its whole batch, and the step that found
it has ruined the weights: the utterances are looked at one by one, with weights from before.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from keras import ops

from training.step import compiled

if TYPE_CHECKING:
    from training.loop import Task


def broken_rows(task: Task, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Rows of a batch that hold a value that isn't finite; if none does, those with such a loss.

    Args:
        task: its model holds sound weights (of a checkpoint, say).
        arrays: of the batch, as ``task.losses`` takes them.

    Returns:
        (batch,) bool. The losses are those of inference, in which no row sees another one.
    """
    finite = [
        np.isfinite(value).all(axis=tuple(range(1, value.ndim)))  # (batch,)
        for value in arrays.values()
        if np.issubdtype(value.dtype, np.floating)
    ]
    broken = ~np.logical_and.reduce(finite) if finite else np.zeros(_rows(arrays), bool)
    if broken.any() or not len(broken):
        return broken
    losses = compiled(partial(task.losses, training=False))(arrays)
    return ~np.isfinite(ops.convert_to_numpy(losses))


def _rows(arrays: dict[str, np.ndarray]) -> int:
    return len(next(iter(arrays.values())))
