"""Lists all that a weights file contains: each dataset with its path, shape and type, and all attributes.

Unlike :mod:`analysis.weights.layer_statistics` it also shows the state of the optimiser and of random
generators, and the attributes of groups, for an audit of a file from elsewhere.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py

from analysis.weights.layer_statistics import shortened
from analysis.weights.weight_file import attribute_text, is_state, open_hdf5
from utils.errors import RunError
from utils.files import read_arrays
from utils.text_table import text_table

WEIGHTS, STATE = "weights", "state"
_HEADINGS = ("dataset", "part", "type", "shape", "values")
_SEVERAL = 1  # dimensions of an attribute that is a list of names, which is never shortened


def contents_text(path: Path) -> str:
    """A line for each attribute and dataset of an HDF5 file, a Keras zip or a checkpoint (``.npz``).

    ``part`` is ``state`` for datasets of an optimiser or a random generator.

    Raises:
        RunError: the file is missing, of another kind or damaged.
    """
    rows, attributes = _checkpoint(path) if path.suffix == ".npz" else _hdf5(path)
    count = sum(row[1] == STATE for row in rows)
    title = f"{path}: {len(rows)} datasets, {count} of them of an optimiser or of random generators"
    return "\n".join([title, *attributes, "", text_table(_HEADINGS, rows, left=3)])


def _hdf5(path: Path) -> tuple[list[Sequence[str]], list[str]]:
    rows: list[Sequence[str]] = []
    attributes: list[str] = []

    def add(name: str, item: Any) -> None:
        for key, value in item.attrs.items():
            text = attribute_text(value)
            shown = text if getattr(value, "ndim", 0) == _SEVERAL else shortened(text)
            attributes.append(f"attribute {name}/{key}: {shown}".replace(" /", " "))
        if isinstance(item, h5py.Dataset):
            rows.append(_row(name, STATE if is_state(name) else WEIGHTS, item))

    with open_hdf5(path) as file:
        add("", file)
        file.visititems(add)
    return rows, attributes


def _checkpoint(path: Path) -> tuple[list[Sequence[str]], list[str]]:
    """The arrays of the checkpoint of a run, which has the optimiser's state beside the weights."""
    try:
        arrays = read_arrays(path)
    except (OSError, ValueError) as error:
        raise RunError(f"the checkpoint can't be read ({error})", where=path, hint="copy it again") from error
    rows = [
        _row(name, WEIGHTS if name.startswith("model_") else STATE, array) for name, array in arrays.items()
    ]
    return rows, []


def _row(name: str, part: str, array: Any) -> Sequence[str]:
    """A row of the table, of a dataset or an array."""
    if array.shape is None:  # HDF5's empty dataset, which has a type alone
        return name, part, str(array.dtype), "empty", "0"
    return name, part, str(array.dtype), "×".join(map(str, array.shape)) or "scalar", f"{array.size:,}"
