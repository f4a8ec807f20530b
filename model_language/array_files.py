"""Saves and loads the arrays of a model as an ``.npz`` file; errors name the file and the model part."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from utils.errors import RunError
from utils.files import read_arrays, replacing

Part = TypeVar("Part")
_SCALES = "_scales"
_HIGHEST = 127


def save_arrays(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write compressed arrays, the whole file or nothing."""
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def load_part(
    path: str | Path,
    name: str,
    build: Callable[[dict[str, np.ndarray]], Part],
    hint: str = "copy the run folder again",
) -> Part:
    """Build a part of a model from the arrays of a file.

    Args:
        path: the file.
        name: what the file holds, for the message.
        build: arrays → the part; raises KeyError, IndexError, TypeError or ValueError for unsuitable arrays.
        hint: what the user can do about a damaged file.

    Raises:
        RunError: the file is missing or damaged, or the arrays are unsuitable.
    """
    try:
        return build(read_arrays(path))
    except KeyError as error:
        raise RunError(f"cannot read {name} (no array {error})", where=path, hint=hint) from error
    except OSError as error:
        raise RunError(f"cannot read {name} ({error.strerror})", where=path, hint=hint) from error
    except (ValueError, IndexError, TypeError) as error:
        raise RunError(f"cannot read {name} ({error})", where=path, hint=hint) from error


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
