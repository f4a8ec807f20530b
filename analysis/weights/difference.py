"""Compares two weights files array by array and reports the largest differences, as text or JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from analysis.weights.weight_file import WeightFile
from utils.text_table import text_table

_HEADINGS = ("layer / weight", "state", "A", "B", "largest difference", "relative")


class ArrayState(StrEnum):
    """The relation of an array of one file to that of the other."""

    EQUAL = "equal"
    DIFFERENT = "different"
    SHAPE = "other shape"
    ONLY_A = "only in A"
    ONLY_B = "only in B"


@dataclass(frozen=True)
class ArrayDifference:
    """One array of two files.

    Attributes:
        name: names of layer and array: ``conv2d_1/kernel``.
        state: whether the array differs, and how.
        shape_a, shape_b: shape in each file; None if the file lacks the array.
        absolute: the largest absolute difference of two values; None unless the shapes are the same.
        relative: the largest |a - b| / max(|a|, |b|) of two values a and b.
    """

    name: str
    state: ArrayState
    shape_a: tuple[int, ...] | None
    shape_b: tuple[int, ...] | None
    absolute: float | None = None
    relative: float | None = None


def weight_differences(a: WeightFile, b: WeightFile) -> list[ArrayDifference]:
    """Compare the arrays of two files by their names: in A's order, then the arrays that only B has."""
    arrays_a, arrays_b = _arrays(a), _arrays(b)
    return [
        _compared(name, arrays_a.get(name), arrays_b.get(name))
        for name in dict.fromkeys([*arrays_a, *arrays_b])
    ]


def are_equal(found: Sequence[ArrayDifference]) -> bool:
    """Whether all arrays are in both files with the same values."""
    return all(each.state is ArrayState.EQUAL for each in found)


def difference_text(found: Sequence[ArrayDifference]) -> str:
    """A table of the arrays that differ, and the number of arrays in each state."""
    rows = [
        (
            each.name,
            each.state,
            _shape(each.shape_a),
            _shape(each.shape_b),
            _number(each.absolute),
            _number(each.relative),
        )
        for each in found
        if each.state is not ArrayState.EQUAL
    ]
    counts = Counter(each.state for each in found)
    summary = ", ".join(f"{counts[state]} {state}" for state in ArrayState if counts[state])
    return (text_table(_HEADINGS, rows) + "\n" if rows else "") + f"{summary or 'no arrays'}\n"


def difference_json(found: Sequence[ArrayDifference]) -> dict[str, Any]:
    """All arrays as plain values; an infinite difference is the text ``inf``."""
    values = [
        {key: str(value) if value == np.inf else value for key, value in asdict(each).items()}
        for each in found
    ]
    return {"equal": are_equal(found), "arrays": values}


def _arrays(file: WeightFile) -> dict[str, np.ndarray]:
    return {f"{layer.name}/{weight.name}": weight.array for layer in file.layers for weight in layer.weights}


def _compared(name: str, a: np.ndarray | None, b: np.ndarray | None) -> ArrayDifference:
    if a is None or b is None:
        state = ArrayState.ONLY_B if a is None else ArrayState.ONLY_A
        return ArrayDifference(name, state, *(None if array is None else array.shape for array in (a, b)))
    if a.shape != b.shape:
        return ArrayDifference(name, ArrayState.SHAPE, a.shape, b.shape)
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if same.all():
        return ArrayDifference(name, ArrayState.EQUAL, a.shape, b.shape, 0.0, 0.0)
    with np.errstate(invalid="ignore"):
        absolute = np.abs(first - second)[~same]
        relative = absolute / np.maximum(np.abs(first), np.abs(second))[~same]
    # If one of two values is NaN or infinite, the difference counts as infinite.
    largest = (
        float(np.nan_to_num(values, nan=np.inf, posinf=np.inf).max()) for values in (absolute, relative)
    )
    return ArrayDifference(name, ArrayState.DIFFERENT, a.shape, b.shape, *largest)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else " x ".join(map(str, shape)) or "scalar"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
