"""Runs a Keras model on batches of many different shapes without compiling it again for each shape.

TensorFlow builds one graph for all shapes. JAX compiles a function for each shape of its arguments, which
takes seconds. With JAX, batches are therefore padded to one of a few shapes, and the outputs are cut back;
with other backends they are unchanged.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np


def pad_to_few_shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Pad arrays (batch, …) or (batch, length, …) with zeros on both axes, with JAX only.

    Lengths are rounded up to four steps per octave (… 8, 10, 12, 14, 16, 20 …): at most a quarter more, a
    tenth on average. Numbers of rows are rounded up to two, those of ``labels`` to powers of two: each
    combination of the three is compiled, which may take longer than many steps, and labels cost little. Zeros
    must mean padding: labels and tokens 0 beyond the end, length 0 for added rows.
    """
    if keras.backend.backend() != "jax":
        return dict(arrays)
    return {name: _padded(array, length_steps=1 if name == "labels" else 4) for name, array in arrays.items()}


def prepare_prediction(model: keras.Model) -> None:
    """Set how ``predict_on_batch`` is compiled: with XLA on JAX only, whose single operations are slow.

    With TensorFlow on a GPU, Keras would otherwise compile each new shape with XLA.
    """
    model.compile(optimizer=None, jit_compile=keras.backend.backend() == "jax")


def predict(model: keras.Model, inputs: Mapping[str, np.ndarray]) -> Any:
    """``model.predict_on_batch`` of (batch, length, …) inputs, for batches of many shapes.

    Returns:
        NumPy arrays in the structure of the model's outputs, with as many rows as the inputs. Axis 1 may be
        longer than without padding; the additional values belong to padding.
    """
    rows = len(next(iter(inputs.values())))
    padded = pad_to_few_shapes(inputs)
    if keras.backend.backend() == "tensorflow" and model.predict_function is None:
        # Keras by itself builds a graph for the first shape, and again for the second and the third.
        model.make_predict_function()
        predict: Any = model.predict_function
        predict.get_concrete_function([(any_shapes(padded),)])
    outputs = model.predict_on_batch(padded)
    return keras.tree.map_structure(lambda output: output[:rows], outputs)


def any_shapes(arrays: Any) -> Any:
    """TensorFlow's signature of nested arrays for all batches: only dimensions after the second are fixed."""
    import tensorflow as tf  # not on other backends

    return keras.tree.map_structure(
        lambda value: tf.TensorSpec([None] * min(value.ndim, 2) + list(value.shape[2:]), value.dtype), arrays
    )


def round_up_size(size: int, steps: int = 4) -> int:
    """Round up to the next of ``steps`` sizes per octave; ``steps`` is a power of two."""
    step = 1 << max((size - 1).bit_length() - steps.bit_length(), 0)
    return -(-size // step) * step


def _padded(array: np.ndarray, length_steps: int) -> np.ndarray:
    sizes = [round_up_size(size, steps) for size, steps in zip(array.shape, (2, length_steps), strict=False)]
    added = [(0, rounded - size) for rounded, size in zip(sizes, array.shape, strict=False)]
    return np.pad(array, added + [(0, 0)] * (array.ndim - len(added)))
