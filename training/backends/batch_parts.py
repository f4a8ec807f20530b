"""Computes a batch in parts, so that on a CPU each core computes operations of its own.

The operations of a small model are short, and threads that share one wait for each other at its end. Parts of
a batch are independent until their gradients are added.
"""

from itertools import pairwise
from typing import Any

from keras import ops

from training.backends.step import Losses


def in_parts(losses: Losses, parts: int) -> Losses:
    """The same losses, computed for so many parts of the rows: each part is a batch of its own.

    Layers with statistics of a batch have those of a part (ghost batch normalisation: Hoffer et al.,
    arXiv:1705.08741). Evaluation is as before.
    """
    if parts == 1:
        return losses

    def parted(arrays: dict[str, Any], training: bool) -> Any:
        if not training:
            return losses(arrays, training)
        rows = ops.shape(next(iter(arrays.values())))[0]
        # No part may be empty; rows of zeros are padding. JAX knows the number of rows when it compiles.
        missing = max(parts - rows, 0) if isinstance(rows, int) else ops.maximum(parts - rows, 0)
        arrays = {name: _pad_rows(value, missing) for name, value in arrays.items()}
        edges = [part * (rows + missing) // parts for part in range(parts + 1)]
        of_parts = [
            losses({name: value[start:end] for name, value in arrays.items()}, True)
            for start, end in pairwise(edges)
        ]
        return ops.concatenate(of_parts)[:rows]

    return parted


def _pad_rows(value: Any, missing: Any) -> Any:
    """Append rows of zeros: (B, …) → (B + missing, …)."""
    return ops.pad(value, [(0, missing), *[(0, 0)] * (len(value.shape) - 1)])
