"""Batches of any shape in, a model's outputs as NumPy arrays out, with few shapes to compile for on JAX.

JAX compiles a function anew for each shape of its arguments, which takes seconds. There batches are padded to
one of a few shapes; the other backends take them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np


def pad_to_few_shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays (batch, …) or (batch, length, …) with zeros appended to both axes, on JAX; else as they are.

    Sizes are rounded up to four steps an octave (… 8, 10, 12, 14, 16, 20 …; at most a quarter more, a tenth
    in the mean). Zeros must mean padding: labels and tokens 0 beyond the end, lengths 0 of added rows.
    """
    if keras.backend.backend() != "jax":
        return dict(arrays)
    return {name: _padded(array) for name, array in arrays.items()}


def prepare_prediction(model: keras.Model) -> None:
    """Decide how ``predict_on_batch`` is compiled: always on JAX, whose single operations are slow.

    On TensorFlow never with XLA: left to itself, Keras compiles each new shape with it on a GPU.
    """
    model.compile(optimizer=None, jit_compile=keras.backend.backend() == "jax")


def predict(model: keras.Model, inputs: Mapping[str, np.ndarray]) -> Any:
    """``model.predict_on_batch`` of (batch, length, …) inputs, for batches of many shapes.

    Returns:
        NumPy arrays in the structure of the model's outputs, of as many rows as the inputs; axis 1 may be
        longer than the inputs ask for: what is beyond belongs to padding.
    """
    rows = len(next(iter(inputs.values())))
    outputs = model.predict_on_batch(pad_to_few_shapes(inputs))
    return keras.tree.map_structure(lambda output: output[:rows], outputs)


def round_up_size(size: int) -> int:
    """The next of four sizes an octave."""
    step = 1 << max((size - 1).bit_length() - 3, 0)
    return -(-size // step) * step


def _padded(array: np.ndarray) -> np.ndarray:
    added = [(0, round_up_size(size) - size) if axis < 2 else (0, 0) for axis, size in enumerate(array.shape)]
    return np.pad(array, added)
