"""A batch with a loss that is not finite in; the utterances that cause it out.

Through batch normalisation, one such utterance affects all losses of its batch, and the step has damaged the
weights. So the losses are computed again in inference mode, with earlier weights.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from keras import ops

from training.backends.step import compiled


def broken_rows(losses_of: Callable[..., Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Find the rows of a batch with values that are not finite; if there is none, those with such a loss.

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
    broken = ~np.logical_and.reduce(finite) if finite else np.zeros(_rows(arrays), bool)
    if broken.any() or not len(broken):
        return broken
    losses = compiled(partial(losses_of, training=False))(arrays)
    return ~np.isfinite(ops.convert_to_numpy(losses))


def _rows(arrays: dict[str, np.ndarray]) -> int:
    return len(next(iter(arrays.values())))
