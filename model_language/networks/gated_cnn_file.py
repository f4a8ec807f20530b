"""Saves and loads the weights of a trained gated CNN, ``network.npz``, with one byte for each weight.

Matrices are integers from -127 to 127 with one scale for each row; other values have two bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from model_language.array_files import load_part, save_arrays
from model_language.networks.gated_cnn_numpy import KERNEL, GatedCnnWeights

_INTEGER_TYPES = {"dilations": np.uint16, "candidates": np.uint16, "rated": np.uint16}
_MATRICES = ("embeddings", "kernels", "hanzi")
_SCALES = "_scales"
_HIGHEST = 127


def save_weights(path: str | Path, weights: GatedCnnWeights) -> None:
    """Write the weights, matrices as int8, other floats as float16."""
    arrays = {field.name: np.asarray(getattr(weights, field.name)) for field in fields(weights)}
    integers = {name: arrays[name].astype(kind) for name, kind in _INTEGER_TYPES.items()}
    save_arrays(path, {**quantised(arrays, _MATRICES), **integers})


def load_weights(path: str | Path) -> GatedCnnWeights:
    """Read what :func:`save_weights` wrote.

    Raises:
        RunError: the file is missing or damaged, its arrays do not fit together, or weights are not finite.
    """
    hint = "copy the folder again, or train it again if an earlier version made it"
    return load_part(path, "the network", _from_arrays, hint, with_gaps=("priors",))


def _from_arrays(saved: Mapping[str, np.ndarray]) -> GatedCnnWeights:
    arrays = dequantised(saved, [field.name for field in fields(GatedCnnWeights)])
    weights = GatedCnnWeights(**{**arrays, "rated": int(arrays["rated"])})
    if not _consistent(weights):
        raise ValueError("its arrays do not fit together")
    return weights


def quantised(arrays: Mapping[str, np.ndarray], matrices: Sequence[str]) -> dict[str, np.ndarray]:
    """Arrays for a file: the matrices as int8 with a scale for each row, all others as float16."""
    saved = {name: values.astype(np.float16) for name, values in arrays.items() if name not in matrices}
    for name in matrices:
        saved[name], saved[name + _SCALES] = _quantise(arrays[name])
    return saved


def dequantised(saved: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays with these names of a file made by :func:`quantised`; the matrices are float32.

    Raises:
        KeyError: an array is missing.
    """
    return {
        name: saved[name] * np.float32(saved[name + _SCALES]) if name + _SCALES in saved else saved[name]
        for name in names
    }


def _quantise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (…, n) → int8 (…, n) and scales (…, 1) float16, whose product approximates the rows."""
    highest = np.abs(matrix).max(axis=-1, keepdims=True)
    # Rounded up: with a scale that float16 rounds down, the highest value would exceed 127 steps.
    scales = np.nextafter((highest / _HIGHEST).astype(np.float16), np.float16(np.inf))
    return np.round(matrix / scales.astype(np.float32)).astype(np.int8), scales


def _consistent(weights: GatedCnnWeights) -> bool:
    if weights.embeddings.ndim != 2 or weights.candidates.ndim != 2 or weights.hanzi.ndim != 2:
        return False
    tokens, width = weights.embeddings.shape
    layers = weights.dilations.size
    shapes = {
        "dilations": (layers,),
        "norms": (layers + 1, 2, width),
        "kernels": (layers, KERNEL * width, 2 * width),
        "biases": (layers, 2 * width),
        "hanzi": (len(weights.hanzi), width),
        "candidates": (tokens, weights.candidates.shape[1]),
        "priors": weights.candidates.shape,
    }
    fit = all(getattr(weights, name).shape == shape for name, shape in shapes.items())
    return (
        fit
        and 0 < weights.rated <= weights.candidates.shape[1]
        and int(weights.candidates.max(initial=0)) < len(weights.hanzi)
    )
