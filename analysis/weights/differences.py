"""Compares the weights of two runs or files layer by layer: what a training, or a conversion, has changed."""

from collections.abc import Sequence

import numpy as np

from analysis.weights.weight_file import WeightFile
from utils.errors import RunError, require
from utils.text_table import text_table
from utils.vocabulary import first_few

_HEADINGS = ("layer / weight", "shape", "relative difference", "largest change")
Pair = tuple[np.ndarray, np.ndarray]


def differences_text(first: WeightFile, second: WeightFile) -> str:
    """A line for each layer and weight of both, then the weights of another shape and those of only one file.

    The relative difference is ‖second − first‖ / ‖first‖ with the Euclidean norm over all values; the largest
    change is that of a single value.

    Raises:
        RunError: no layer has a weight of the same name and shape in both.
    """
    others = {(layer.name, weight.name): weight.array for layer in second.layers for weight in layer.weights}
    rows: list[Sequence[str]] = []
    every: list[Pair] = []
    lines: list[str] = []
    missing: list[str] = []
    for layer in first.layers:
        pairs: dict[str, Pair] = {}
        for weight in layer.weights:
            other = others.pop((layer.name, weight.name), None)
            name = f"{layer.name}/{weight.name}"
            if other is None:
                missing.append(name)
            elif other.shape != weight.array.shape:
                lines.append(f"other shapes: {name} {_shape(weight.array)}, {_shape(other)}")
            else:
                pairs[weight.name] = weight.array, other
        if pairs:
            rows.append((layer.name, "", *_figures(list(pairs.values()))))
            rows += [(f"  {name}", _shape(pair[0]), *_figures([pair])) for name, pair in pairs.items()]
            every += pairs.values()
    message = f"no weight of {second.path} has the same layer, name and shape"
    require(every, message, where=first.path, hint="inspect_model.py weights lists both", error=RunError)
    rows.append(("all", "", *_figures(every)))
    only = ((first, missing), (second, ["/".join(key) for key in others]))
    lines += [f"only in {file.path}: {first_few(names, 5)}" for file, names in only if names]
    return "\n".join([text_table(_HEADINGS, rows, left=2), *lines]).rstrip("\n") + "\n"


def _figures(pairs: Sequence[Pair]) -> tuple[str, str]:
    """The relative difference and the largest change over pairs of arrays, computed in float64."""
    changes = [second.astype(np.float64) - first for first, second in pairs]
    norm = np.linalg.norm([np.linalg.norm(first.astype(np.float64)) for first, _ in pairs])
    change = np.linalg.norm([np.linalg.norm(each) for each in changes])
    largest = max(float(np.abs(each).max(initial=0.0)) for each in changes)
    if change == 0:
        return "0", "0"
    return (f"{100 * change / norm:.4g} %" if norm else "–"), f"{largest:.4g}"


def _shape(array: np.ndarray) -> str:
    return "×".join(map(str, array.shape)) or "scalar"
