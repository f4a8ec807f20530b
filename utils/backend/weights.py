"""Saves and loads the weights of a Keras model (``.weights.h5``), and explains why a file doesn't fit."""

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
from utils.run_folder.run import check_finite

SUFFIX = ".weights.h5"
_VALUE = 4  # bytes; variables are always float32
_OVERHEAD, _PER_VARIABLE = 1 << 16, 1 << 12  # upper limits of the bytes that HDF5 adds


def save_weights(model: keras.Model, path: str | Path) -> None:
    """Write all variables of the model to ``path``, which must end in :data:`SUFFIX`.

    Raises:
        OSError: the disk is full, or the file can't be written.
    """
    # HDF5 crashes the process (segmentation fault) when the disk is full.
    sizes = [_VALUE * math.prod(variable.shape) for variable in model.variables]
    reserve(path, sum(sizes) + _PER_VARIABLE * len(sizes) + _OVERHEAD)
    with replacing(path) as temporary:
        model.save_weights(temporary)


def load_weights(
    model: keras.Model, path: str | Path, explain_classes: Callable[[int], RunError] | None = None
) -> None:
    """Read all variables of the model from ``path``.

    Args:
        model: the model that gets the weights.
        path: a file of :func:`save_weights`.
        explain_classes: returns the error for weights that fit except for the number of classes, which is its
            argument; None: no special error.

    Raises:
        RunError: there is no such file, it is damaged or changed, or its weights don't fit or are not finite.
    """
    if not Path(path).is_file():
        raise RunError("no such weights file", where=path, hint="best, last, or a path")
    if not str(path).endswith(SUFFIX):
        raise RunError("not a weights file", where=path, hint=f"its name must end in {SUFFIX}")
    try:
        with warnings.catch_warnings(action="ignore"):  # the errors below are clearer than Keras's warnings
            model.load_weights(verified(path))
    except (ValueError, KeyError) as error:
        unmatched = _unmatched_shapes(model, path)
        classes = _classes(unmatched)
        if classes is not None and explain_classes:
            raise explain_classes(classes) from error
        shown = ", ".join(map(str, unmatched[:4])) or "fewer arrays"
        raise RunError(
            f"the weights belong to another model than config.yaml says ({shown})",
            where=path,
            hint="config.yaml and vocabulary/ must be those of the training",
        ) from error
    except OSError as error:
        raise RunError(f"the weights file is damaged ({error})", where=path, hint="copy it again") from error
    check_finite({variable.path: keras.ops.convert_to_numpy(variable) for variable in model.variables}, path)


def _unmatched_shapes(model: keras.Model, path: str | Path) -> list[tuple[int, ...]]:
    """Shapes of the arrays in a weights file that match no weight of the model."""
    stored: list[tuple[int, ...]] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: stored.append(item.shape) if isinstance(item, h5py.Dataset) else None)
    return list(Counter(stored) - Counter(tuple(weight.shape) for weight in model.weights))


def _classes(unmatched: list[tuple[int, ...]]) -> int | None:
    """The number of classes in the file, if only the output layer differs: its kernel and bias; else None."""
    biases = [shape[0] for shape in unmatched if len(shape) == 1]
    return biases[0] if len(biases) == 1 and {shape[-1] for shape in unmatched} == set(biases) else None
