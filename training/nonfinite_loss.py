"""A batch whose loss is not finite in; which of its utterances cause that, out.

Batch normalisation spreads one broken utterance over the losses of its whole batch, and the step that found
it has ruined the weights: the utterances are looked at one by one, with weights from before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from keras import ops

from training.backends.step import compiled


def broken_rows(losses_of: Callable[..., Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Rows of a batch that hold a value that isn't finite; if none does, those with such a loss.

    Args:
        losses_of: a task's ``losses``; its model holds finite weights (of a checkpoint, say).
        arrays: of the batch, as ``losses_of`` takes them.

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
    losses = compiled(partial(losses_of, training=False))(arrays)
    return ~np.isfinite(ops.convert_to_numpy(losses))


def _rows(arrays: dict[str, np.ndarray]) -> int:
    return len(next(iter(arrays.values())))
