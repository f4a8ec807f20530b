"""Two weights files in; array by array what differs, as text or JSON, out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from analysis.text_table import text_table
from analysis.weights.weight_file import WeightFile

_HEADINGS = ("layer / weight", "state", "A", "B", "largest difference", "relative")


class State(StrEnum):
    """How an array of one file compares with that of the other."""

    EQUAL = "equal"
    DIFFERENT = "different"
    SHAPE = "other shape"
    ONLY_A = "only in A"
    ONLY_B = "only in B"


@dataclass(frozen=True)
class ArrayDifference:
    """One array of two files.

    Attributes:
        name: its layer's and its own: ``conv2d_1/kernel``.
        state: how it differs.
        shape_a, shape_b: None where the file lacks it.
        absolute: the largest absolute difference of two values; None unless the shapes are the same.
        relative: the largest difference as a share of the larger of the two values.
    """

    name: str
    state: State
    shape_a: tuple[int, ...] | None
    shape_b: tuple[int, ...] | None
    absolute: float | None = None
    relative: float | None = None


def weight_differences(a: WeightFile, b: WeightFile) -> list[ArrayDifference]:
    """Compare all arrays of two files by the names of their layers, in A's order, then what only B has."""
    arrays_a, arrays_b = _arrays(a), _arrays(b)
    return [
        _compared(name, arrays_a.get(name), arrays_b.get(name))
        for name in dict.fromkeys([*arrays_a, *arrays_b])
    ]


def are_equal(found: Sequence[ArrayDifference]) -> bool:
    """Whether all arrays are in both files, with the same values."""
    return all(one.state is State.EQUAL for one in found)


def difference_text(found: Sequence[ArrayDifference]) -> str:
    """A table of the arrays that differ, and how many there are of each state."""
    rows = [
        (one.name, one.state, _shape(one.shape_a), _shape(one.shape_b), _g(one.absolute), _g(one.relative))
        for one in found
        if one.state is not State.EQUAL
    ]
    counts = Counter(one.state for one in found)
    summary = ", ".join(f"{counts[state]} {state}" for state in State if counts[state])
    return (text_table(_HEADINGS, rows) + "\n" if rows else "") + f"{summary or 'no arrays'}\n"


def difference_json(found: Sequence[ArrayDifference]) -> dict[str, Any]:
    """The same for programs, with the equal arrays; an infinite difference is the text ``inf``."""
    values = [
        {key: str(value) if value == np.inf else value for key, value in asdict(one).items()} for one in found
    ]
    return {"equal": are_equal(found), "arrays": values}


def _arrays(file: WeightFile) -> dict[str, np.ndarray]:
    return {f"{layer.name}/{weight.name}": weight.array for layer in file.layers for weight in layer.weights}


def _compared(name: str, a: np.ndarray | None, b: np.ndarray | None) -> ArrayDifference:
    if a is None or b is None:
        state = State.ONLY_B if a is None else State.ONLY_A
        return ArrayDifference(name, state, *(None if one is None else one.shape for one in (a, b)))
    if a.shape != b.shape:
        return ArrayDifference(name, State.SHAPE, a.shape, b.shape)
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if same.all():
        return ArrayDifference(name, State.EQUAL, a.shape, b.shape, 0.0, 0.0)
    with np.errstate(invalid="ignore"):
        absolute = np.abs(first - second)[~same]
        relative = absolute / np.maximum(np.abs(first), np.abs(second))[~same]
    # One of the two is not a number, or infinite: nothing is further apart.
    largest = (float(np.nan_to_num(one, nan=np.inf, posinf=np.inf).max()) for one in (absolute, relative))
    return ArrayDifference(name, State.DIFFERENT, a.shape, b.shape, *largest)


def _shape(shape: tuple[int, ...] | None) -> str:
    return "" if shape is None else " x ".join(map(str, shape)) or "scalar"


def _g(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
