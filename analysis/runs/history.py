"""Reads a run's ``history.csv``: the metrics of each epoch, as columns of numbers."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from utils.errors import RunError
from utils.run_folder.checksums import verified

History = Mapping[str, Sequence[float]]


def read_history(path: str | Path) -> dict[str, list[float]]:
    """Read the columns of a ``history.csv``, with one value an epoch; NaN for one that is empty.

    Raises:
        RunError: the file is missing, changed, empty, or not a table of numbers.
    """
    path = Path(path)
    try:
        with verified(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        columns = {
            name: [math.nan if row[name] == "" else float(row[name]) for row in rows] for name in rows[0]
        }
    except (OSError, UnicodeDecodeError, ValueError, TypeError, IndexError) as error:
        raise RunError(
            f"not a valid training history ({error})", where=path, hint="train it again"
        ) from error
    return columns
