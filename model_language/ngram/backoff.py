"""Back-off n-gram model: looks up log-probabilities of Kneser–Ney estimation; saved as one ``.npz`` file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from model_language.array_files import save_arrays
from model_language.ngram.kneser_ney import NgramTable, bits_needed
from model_language.search.grid import HistoryModel

_PARTS = ("keys", "log_probs", "backoffs")  # of the table of each order


class BackoffModel(HistoryModel):
    """Back-off n-gram model: P(token | the tokens before it), by the longest n-gram that was seen.

    Args:
        tables: one for each order, 1-grams first (:func:`model_language.ngram.kneser_ney.estimate`).
        size: number of ids; 0 is the boundary of a sentence.
    """

    def __init__(self, tables: Sequence[NgramTable], size: int):
        self._tables, self._bits = tuple(tables), bits_needed(size)
        self.size, self.history = size, len(tables) - 1

    @property
    def ngrams(self) -> tuple[int, ...]:
        """Number of distinct n-grams of each order."""
        return tuple(len(table.keys) for table in self._tables)

    def score(self, histories: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`; over all ``size`` ids the probabilities sum to 1."""
        histories, tokens = histories.astype(np.int64), tokens.astype(np.int64)
        result = self._tables[0].log_probs[tokens]
        context = np.zeros(len(histories), np.int64)
        for n, (lower, table) in enumerate(zip(self._tables, self._tables[1:], strict=False), start=1):
            # One word further back than the order below: it comes first in the key.
            context |= histories[:, -n] << (self._bits * (n - 1))
            index, known = find(lower.keys, context)
            result += np.where(known, lower.backoffs[index], 0.0).astype(np.float32).take(rows)
            followed = known.take(rows).nonzero()[0]
            keys = (context.take(rows.take(followed)) << self._bits) | tokens.take(followed)
            index, found = find(table.keys, keys)
            result[followed] = np.where(found, table.log_probs[index], result.take(followed))
        return result

    def save(self, path: str | Path) -> None:
        """Write all arrays into one ``.npz`` file."""
        save_arrays(path, self._arrays())

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"size": np.array(self.size)}
        for n, table in enumerate(self._tables, start=1):
            arrays |= {f"{part}_{n}": getattr(table, part) for part in _PARTS}
        return arrays


def tables_of(arrays: Mapping[str, np.ndarray]) -> list[NgramTable]:
    """The tables among the arrays that :meth:`BackoffModel.save` wrote, 1-grams first.

    Raises:
        KeyError: an array is missing.
    """
    orders = max(1, sum(name.startswith("keys_") for name in arrays))
    return [NgramTable(*(arrays[f"{part}_{n}"] for part in _PARTS)) for n in range(1, orders + 1)]


def ngram_counts(counts: Sequence[int]) -> str:
    """Numbers of n-grams as text: ``1,200 1-grams, 5,000 2-grams``."""
    return ", ".join(f"{count:,} {order}-grams" for order, count in enumerate(counts, start=1))


def find(keys: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices in sorted ``keys`` (always valid) and whether each wanted key is there."""
    index = np.minimum(np.searchsorted(keys, queries), len(keys) - 1)
    return index, keys[index] == queries
