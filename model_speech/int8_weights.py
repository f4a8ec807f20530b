"""Saves and loads the int8-quantised weights of an acoustic model, ``network.npz`` of a packed run.

Matrices are integers from -127 to 127 with a scale for each output channel, those of chosen layers float16;
scales, biases and statistics stay float32. The names are those of the layers and variables of the Keras model
(``block_1_mix/kernel``), so that the file serves the Keras model, for adaptation and export, and the NumPy
one, which needs no framework.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from utils.errors import RunError
from utils.features.speech import FeatureConfig
from utils.files import read_arrays, replacing
from utils.run_folder.checksums import verified
from utils.run_folder.run import RunFolder, check_finite, open_run
from utils.vocabulary import Vocabulary

Model = TypeVar("Model")

_SCALES = ":scales"  # ends the name of the array with the scales of a matrix
_HIGHEST = 127
_SMALLEST_MATRIX = 4096  # values; smaller arrays stay float32, because they are not worth a loss of precision
_HINT = "copy the folder again"


def int8_weights_file(run: RunFolder) -> Path:
    """Path of the weights of a packed speech run; an ordinary run has ``best.weights.h5`` instead."""
    return run.path / "network.npz"


def is_packed(run: RunFolder) -> bool:
    """Whether a speech run was written by :mod:`model_speech.pack`."""
    return int8_weights_file(run).is_file() and not run.best_weights.is_file()


def save_int8_weights(path: str | Path, weights: Mapping[str, np.ndarray], half_precision: str = "") -> None:
    """Write weights by name, the whole file or nothing; matrices lose precision.

    Args:
        path: the file.
        weights: float arrays by name; the last axis of a matrix or convolution kernel is its output channels.
        half_precision: prefix of the names of matrices that are kept as float16; empty for none.
    """
    arrays = {}
    for name, values in weights.items():
        values = np.asarray(values, np.float32)
        if values.ndim < 2 or values.size < _SMALLEST_MATRIX:
            arrays[name] = values
            continue
        if half_precision and name.startswith(half_precision):
            arrays[name] = values.astype(np.float16)
            continue
        highest = np.abs(values).max(axis=tuple(range(values.ndim - 1)))  # (channels,)
        scales = np.maximum(highest / np.float32(_HIGHEST), np.finfo(np.float32).tiny)
        arrays[name] = np.round(values / scales).astype(np.int8)
        arrays[name + _SCALES] = scales
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **{name.replace("/", "|"): array for name, array in arrays.items()})


def read_int8_weights(path: str | Path) -> dict[str, np.ndarray]:
    """Read what :func:`save_int8_weights` wrote, as float32 arrays by name.

    Raises:
        RunError: the file is missing, damaged or changed, or has weights that are not finite.
    """
    try:
        arrays = read_arrays(verified(path))
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read the network ({error})", where=path, hint=_HINT) from error
    named = {name.replace("|", "/"): array for name, array in arrays.items()}
    scales = {name: named.pop(name) for name in [*named] if name.endswith(_SCALES)}
    try:
        weights = {
            name: values * scales[name + _SCALES] if values.dtype == np.int8 else values.astype(np.float32)
            for name, values in named.items()
        }
    except (KeyError, ValueError) as error:
        raise RunError(f"cannot read the network ({error})", where=path, hint=_HINT) from error
    check_finite(weights, path)
    return weights


def load_packed(
    path: str | Path,
    build: Callable[[RunFolder, dict[str, np.ndarray], FeatureConfig, Vocabulary], Model],
) -> Model:
    """Open a packed speech run.

    Args:
        path: the folder.
        build: run, weights by name, settings of the features and vocabulary → the model, tried on a few
            frames; raises KeyError, TypeError or ValueError if they don't match.

    Raises:
        RunError: a file is missing or damaged, or the weights don't match the vocabulary.
    """
    run = open_run(path, "speech")
    vocabulary = Vocabulary.load(run.part(run.vocabulary("acoustic.txt")))
    features = run.section("features", FeatureConfig)
    weights = read_int8_weights(run.part(int8_weights_file(run)))
    try:
        return build(run, weights, features, vocabulary)
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"the weights don't match config.yaml and the vocabulary ({error})", where=run.path, hint=_HINT
        ) from error


def weights_by_name(model: Any) -> dict[str, np.ndarray]:
    """The weights of a Keras model by the names of their layers, without the states of random generators."""
    return {
        variable.path: np.asarray(variable)
        for variable in model.variables
        if not re.search(r"seed_generator", variable.path)
    }


def assign_weights(model: Any, weights: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Give a Keras model the weights of a file.

    Raises:
        RunError: the file belongs to another model; ``path`` is named.
    """
    own = {v.path: v for v in model.variables if "seed_generator" not in v.path}
    wrong = sorted(own.keys() ^ weights.keys()) or [
        name for name, variable in own.items() if tuple(variable.shape) != weights[name].shape
    ]
    if wrong:
        shown = ", ".join(wrong[:4])
        raise RunError(
            f"the weights belong to another model than config.yaml says ({shown})",
            where=path,
            hint="config.yaml and vocabulary/ must be those of the training",
        )
    for name, variable in own.items():
        variable.assign(weights[name])
