"""The weights of a trained context network ⇄ ``network.npz``, a byte a weight; without a framework.

Matrices are whole numbers from -127 to 127, each row with a scale of its own; all else has two bytes.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from model_language.networks.gated_cnn_numpy import KERNEL, ContextWeights
from utils.errors import RunError
from utils.files import read_arrays, replacing

_INTEGERS = {"dilations": np.uint16, "candidates": np.uint16, "rated": np.uint16}
_MATRICES = ("embeddings", "kernels", "hanzi")
_SCALES = "_scales"
_HIGHEST = 127


def save_weights_file(path: str | Path, weights: ContextWeights) -> None:
    """Write the weights, matrices as int8, other floats as float16."""
    arrays = {}
    for one in fields(weights):
        values = np.asarray(getattr(weights, one.name))
        if one.name in _MATRICES:
            arrays[one.name], arrays[one.name + _SCALES] = _in_bytes(values)
        else:
            arrays[one.name] = values.astype(_INTEGERS.get(one.name, np.float16))
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def load_weights_file(path: str | Path) -> ContextWeights:
    """Read what :func:`save_weights_file` wrote.

    Raises:
        RunError: the file is missing or damaged, or its parts don't belong together.
    """
    hint = "copy the folder again, or train it again if an earlier version made it"
    try:
        saved = read_arrays(path)
        arrays = {one.name: saved[one.name] for one in fields(ContextWeights)}
        arrays |= {name: arrays[name] * np.float32(saved[name + _SCALES]) for name in _MATRICES}
        weights = ContextWeights(**{**arrays, "rated": int(arrays["rated"])})
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise RunError(f"the network can't be read ({error})", where=path, hint=hint) from error
    if not _consistent(weights):
        raise RunError("the parts of the network don't belong together", where=path, hint=hint)
    return weights


def _in_bytes(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (…, n) → int8 (…, n), and scales (…, 1) float16; their product is about the rows."""
    highest = np.abs(matrix).max(axis=-1, keepdims=True)
    # Rounded up: a scale that float16 rounds down would need more than 127 steps.
    scales = np.nextafter((highest / _HIGHEST).astype(np.float16), np.float16(np.inf))
    return np.round(matrix / scales.astype(np.float32)).astype(np.int8), scales


def _consistent(weights: ContextWeights) -> bool:
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
