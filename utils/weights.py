"""A model's weights → a file in Keras's format, whole or not at all."""

from __future__ import annotations

import math
from pathlib import Path

import keras

from utils.files import replacing, reserve

_VALUE = 4  # bytes; variables are float32 whatever the precision of the computation
_OVERHEAD, _PER_VARIABLE = 1 << 16, 1 << 12  # bytes of HDF5's own, generously


def save_weights(model: keras.Model, path: str | Path) -> None:
    """Write all variables of the model to ``path``, which ends in ``.weights.h5``.

    Raises:
        OSError: the disk is full, or the file can't be written.
    """
    # HDF5 ends the process (a segmentation fault) when the disk gets full under it.
    sizes = [_VALUE * math.prod(variable.shape) for variable in model.variables]
    reserve(path, sum(sizes) + _PER_VARIABLE * len(sizes) + _OVERHEAD)
    with replacing(path) as temporary:
        model.save_weights(temporary)
