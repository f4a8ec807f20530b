"""The weights of a trained context network ⇄ ``network.npz``, two bytes a number; without a framework."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from model_language.context_network import KERNEL, ContextWeights
from utils.errors import RunError
from utils.files import read_arrays, replacing

_INTEGERS = {"dilations": np.uint16, "candidates": np.uint16, "rated": np.uint16}


def save_weights_file(path: str | Path, weights: ContextWeights) -> None:
    """Write the weights, floats as float16."""
    arrays = {
        one.name: np.asarray(getattr(weights, one.name)).astype(_INTEGERS.get(one.name, np.float16))
        for one in fields(weights)
    }
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def load_weights_file(path: str | Path) -> ContextWeights:
    """Read what :func:`save_weights_file` wrote.

    Raises:
        RunError: the file is missing or damaged, or its parts don't belong together.
    """
    hint = "copy the folder again"
    try:
        saved = read_arrays(path)
        arrays = {one.name: saved[one.name] for one in fields(ContextWeights)}
        weights = ContextWeights(**{**arrays, "rated": int(arrays["rated"])})
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise RunError(f"the network can't be read ({error})", where=path, hint=hint) from error
    if not _consistent(weights):
        raise RunError("the parts of the network don't belong together", where=path, hint=hint)
    return weights


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
