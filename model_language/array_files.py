"""Saves and loads the arrays of a model as an ``.npz`` file; errors name the file and the model part."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from utils.errors import RunError
from utils.files import read_arrays, replacing

Part = TypeVar("Part")


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
