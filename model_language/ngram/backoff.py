"""Kneser–Ney tables in, log-probabilities of words after their histories out; saved as one ``.npz`` file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from model_language.ngram.kneser_ney import NgramTable, bits_needed
from utils import files
from utils.errors import RunError
from utils.files import replacing

_PARTS = ("keys", "log_probs", "backoffs")  # of the table of each order


class BackoffModel:
    """P(word | words before).

    Args:
        tables: one an order, 1-grams first (:func:`model_language.ngram.kneser_ney.estimate`).
        size: ids are below it; 0 is the boundary of a sentence.
    """

    def __init__(self, tables: Sequence[NgramTable], size: int):
        self._tables, self._bits = tuple(tables), bits_needed(size)
        self.size = size

    @property
    def history(self) -> int:
        """How many words back the model looks."""
        return len(self._tables) - 1

    @property
    def ngrams(self) -> tuple[int, ...]:
        """Distinct n-grams of each order."""
        return tuple(len(table.keys) for table in self._tables)

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Log-probabilities of words after histories.

        Args:
            histories: (N, history) int, oldest first; 0 where the sentence has not begun.
            words: (N, K) int; 0 asks for the end of the sentence.

        Returns:
            (N, K) float32; over all ``size`` ids they sum to 1.
        """
        histories, words = histories.astype(np.int64), words.astype(np.int64)
        result = self._tables[0].log_probs[words]
        context = np.zeros(len(histories), np.int64)
        for n, (lower, table) in enumerate(zip(self._tables, self._tables[1:], strict=False), start=1):
            # One word further back than the order below: it comes in front of the key.
            context |= histories[:, -n] << (self._bits * (n - 1))
            place, known = find(lower.keys, context)
            result += np.where(known, lower.backoffs[place], 0.0)[:, None].astype(np.float32)
            keys = (context[known, None] << self._bits) | words[known]
            place, found = find(table.keys, keys)
            result[known] = np.where(found, table.log_probs[place], result[known])
        return result

    def save(self, path: str | Path) -> None:
        """Write all arrays into one ``.npz`` file."""
        with replacing(path) as temporary:
            np.savez_compressed(temporary, **self._arrays())

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"size": np.array(self.size)}
        for n, table in enumerate(self._tables, start=1):
            arrays |= {
                f"keys_{n}": table.keys,
                f"log_probs_{n}": table.log_probs,
                f"backoffs_{n}": table.backoffs,
            }
        return arrays


def read_arrays(path: str | Path, also: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The arrays that :meth:`BackoffModel.save` wrote.

    Args:
        path: the ``.npz`` file.
        also: names that must be there beside the tables.

    Raises:
        RunError: the file is missing or damaged.
    """
    try:
        arrays = files.read_arrays(path)
        parts = {f"{part}_{n}" for n in range(1, 1 + max(1, _orders(arrays))) for part in _PARTS}
        missing = {"size", *parts, *also} - arrays.keys()
        if missing:
            raise ValueError(f"no {min(missing)}")
    except (OSError, ValueError) as error:
        raise RunError(f"can't read the n-gram model ({error})", where=path, hint="train it again") from error
    return arrays


def tables_of(arrays: Mapping[str, np.ndarray]) -> list[NgramTable]:
    """The tables among the arrays of :func:`read_arrays`, 1-grams first."""
    return [NgramTable(*(arrays[f"{part}_{n}"] for part in _PARTS)) for n in range(1, _orders(arrays) + 1)]


def _orders(arrays: Mapping[str, np.ndarray]) -> int:
    return sum(name.startswith("keys_") for name in arrays)


def find(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in sorted ``keys`` (valid indices in any case) and whether each wanted one is there."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted
