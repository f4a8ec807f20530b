"""A model's weights ↔ a file in Keras's format, whole or not at all; why a file doesn't fit."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import h5py
import keras

from utils.errors import RunError
from utils.files import replacing, reserve
from utils.run_folder.checksums import verified

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


def load_weights(model: keras.Model, path: str | Path, explain: Callable[[], RunError]) -> None:
    """Read all variables of the model from ``path``.

    Args:
        model: what they are for.
        path: of :func:`save_weights`.
        explain: the error to raise if the weights are of another model.

    Raises:
        RunError: there is no such file, it is damaged or changed, or its weights don't fit.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # Keras warns of what the error says better
            model.load_weights(verified(path))
    except FileNotFoundError as error:
        raise RunError("no such weights file", where=path, hint="best, last, or a path") from error
    except ValueError as error:
        raise explain() from error
    except OSError as error:
        raise RunError(f"the weights file is damaged ({error})", where=path, hint="copy it again") from error


def unmatched_shapes(model: keras.Model, path: str | Path) -> list[tuple[int, ...]]:
    """Shapes of the arrays in a weights file for which the model has no place."""
    stored: list[tuple[int, ...]] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: stored.append(item.shape) if isinstance(item, h5py.Dataset) else None)
    return list(Counter(stored) - Counter(tuple(weight.shape) for weight in model.weights))


def different_classes(strange: list[tuple[int, ...]]) -> int | None:
    """The classes of weights that differ in the last dimension of kernel and bias of the output layer alone.

    Args:
        strange: of :func:`unmatched_shapes`.

    Returns:
        Their number; None where more differs.
    """
    biases = [shape[0] for shape in strange if len(shape) == 1]
    return biases[0] if len(biases) == 1 and {shape[-1] for shape in strange} == set(biases) else None


def wrong_model_error(strange: list[tuple[int, ...]], path: str | Path) -> RunError:
    """The error that says that weights are of another model altogether."""
    shown = ", ".join(map(str, strange[:4])) or "fewer arrays"
    return RunError(f"the weights are of another model than config.yaml says (there: {shown})", where=path)
