"""Estimates a modified Kneser–Ney n-gram model from the token ids of a text, and looks up probabilities.

Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling" (TR-10-98, 1998),
section 3: interpolated, three discounts for each order. As in KenLM (Heafield et al. 2013), an n-gram that
begins a sentence keeps its count in the lower orders, because nothing can precede it, and the unigrams are
interpolated with the uniform distribution, so that every token has a probability.

An n-gram is one int64: its ids one after the other, ``bits`` each, the oldest first. All arrays are sorted by
this key, so the n-grams with the same context are adjacent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from model_language.array_files import save_arrays
from model_language.search.grid import HistoryModel
from utils.errors import ConfigError

BOUNDARY = 0
"""Id of the beginning of a sentence in a context, and of its end as the last token."""
_PARTS = ("keys", "log_probs", "backoffs")  # of the table of each order


@dataclass(frozen=True)
class NgramTable:
    """All n-grams of one order.

    Attributes:
        keys: (N,) int64, sorted.
        log_probs: (N,) float32, log P(last id | the ids before it), natural logarithm.
        backoffs: (N,) float32, log of the weight of the lower order after this n-gram as a context; 0 (weight
            1) if nothing follows it in the text, and in the highest order.
    """

    keys: np.ndarray
    log_probs: np.ndarray
    backoffs: np.ndarray


@dataclass(frozen=True)
class NgramCounts:
    """The Kneser–Ney counts of the n-grams of one order.

    Attributes:
        keys: (N,) int64, sorted.
        counts: (N,) int64. In the highest order, and for n-grams that begin a sentence: occurrences. For the
            others: number of distinct ids that precede them.
    """

    keys: np.ndarray
    counts: np.ndarray


def bits_needed(size: int) -> int:
    """Bits of an id below ``size``."""
    return max(int(size - 1).bit_length(), 1)


def check_order(order: int, size: int) -> None:
    """Check that n-grams of ``order`` ids below ``size`` fit into a key.

    Raises:
        ConfigError: they do not, or the order is below 2.
    """
    highest = 63 // bits_needed(size)
    if not 2 <= order <= highest:
        raise ConfigError(f"order {order} is not possible", where="model.order", hint=f"2 to {highest}")


def estimate(ids: np.ndarray, order: int, size: int) -> list[NgramTable]:
    """Estimate a model.

    Args:
        ids: (tokens,) int, sentences with one 0 before, between and after them.
        order: length of the longest n-grams, see :func:`check_order`.
        size: number of ids; 0 is the end of a sentence among the predicted tokens.

    Returns:
        One table for each order, 1-grams first; the first table holds all ``size`` ids.
    """
    return estimate_counted(count_ngrams(ids, order, size))


def count_ngrams(ids: np.ndarray, order: int, size: int) -> list[NgramCounts]:
    """Count the n-grams of each order, 1-grams first; arguments as of :func:`estimate`."""
    bits = bits_needed(size)
    ids = np.asarray(ids, np.int64)
    grams = [NgramCounts(*np.unique(_windows(ids, order, bits), return_counts=True))]
    for n in range(order - 1, 1, -1):
        keys, counts = _ends(grams[0].keys, n, bits)
        windows = _windows(ids, n, bits)
        first, times = np.unique(windows[windows >> bits * (n - 1) == BOUNDARY], return_counts=True)
        # No end begins with a boundary, so all of ``first`` sort before all ends.
        grams.insert(0, NgramCounts(np.append(first, keys), np.append(times, counts)))
    unigrams = np.zeros(size, np.int64)  # the 1-gram 0 is the end of a sentence, which has predecessors
    keys, counts = _ends(grams[0].keys, 1, bits)
    unigrams[keys] = counts
    return [NgramCounts(np.arange(size), unigrams), *grams]


def estimate_counted(grams: Sequence[NgramCounts]) -> list[NgramTable]:
    """Estimate a model from the counts of :func:`count_ngrams`; the tables are aligned with them."""
    bits = bits_needed(len(grams[0].keys))
    probabilities = [_unigram_probabilities(grams[0].counts)]
    backoffs = [np.zeros(len(gram.keys), np.float32) for gram in grams]
    for n, (lower, gram) in enumerate(pairwise(grams), start=2):
        starts, fractions, weights = _discounted(gram.keys >> bits, gram.counts)
        suffix = np.searchsorted(lower.keys, gram.keys & ((1 << bits * (n - 1)) - 1))
        of_context = np.repeat(weights, np.diff(np.append(starts, len(gram.keys))))
        probabilities.append(fractions + of_context * probabilities[-1][suffix])
        contexts = np.searchsorted(lower.keys, gram.keys[starts] >> bits)
        backoffs[n - 2][contexts] = np.log(weights)
    return [
        NgramTable(gram.keys, np.log(p).astype(np.float32), b)
        for gram, p, b in zip(grams, probabilities, backoffs, strict=True)
    ]


def occurrences(grams: Sequence[NgramCounts]) -> list[np.ndarray]:
    """Occurrences of each n-gram in the text, aligned with the arrays of :func:`count_ngrams`.

    Kneser–Ney counts do not contain them below the highest order. But an n-gram that does not begin a
    sentence occurs as often as all the n-grams together that end with it and are one token longer.
    """
    bits = bits_needed(len(grams[0].keys))
    result = [grams[-1].counts]
    for n in range(len(grams) - 1, 0, -1):
        shorter, longer = grams[n - 1], grams[n]
        ends = np.searchsorted(shorter.keys, longer.keys & ((1 << bits * n) - 1))
        # float64 adds whole numbers exactly up to 2^53.
        times = np.bincount(ends, result[0], minlength=len(shorter.keys)).astype(np.int64)
        if n > 1:
            begun = np.searchsorted(shorter.keys, 1 << bits * (n - 1))  # n-grams that begin with 0 come first
            times[:begun] = shorter.counts[:begun]
        result.insert(0, times)
    return result


def _ends(longer: np.ndarray, n: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The last ``n`` ids of distinct n-grams, and the number of distinct ids before each."""
    return np.unique(longer & ((1 << bits * n) - 1), return_counts=True)


def _windows(ids: np.ndarray, n: int, bits: int) -> np.ndarray:
    """All n-grams that do not cross a sentence; its two boundaries belong to it."""
    count = max(len(ids) - n + 1, 0)
    keys = np.zeros(count, np.int64)
    inside = np.ones(count, bool)
    for offset in range(n):
        token = ids[offset : offset + count]
        keys = (keys << bits) | token
        if 0 < offset < n - 1:
            inside &= token != BOUNDARY
    return keys[inside]


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Discounts of the counts 0, 1, 2 and ≥ 3 (Chen and Goodman, equation 26).

    A text that is tiny or repeats itself may lack n-grams that occur 1, 2, 3 or 4 times, or have so many of
    them that a discount is not positive; its discounts are 0.5, 1 and 1.5, as in KenLM. Without a discount
    nothing would be left for tokens that were not seen after a context.
    """
    fixed = np.array([0.0, 0.5, 1.0, 1.5])
    n1, n2, n3, n4 = (np.count_nonzero(counts == times) for times in (1, 2, 3, 4))
    if min(n1, n2, n3, n4) == 0:
        return fixed
    y = n1 / (n1 + 2 * n2)
    found = np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
    return np.minimum(found, [0.0, 1.0, 2.0, 3.0]) if found[1:].min() > 0 else fixed


def _discounted(contexts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start of each context, discounted fraction of each n-gram, remaining weight of each context."""
    starts = np.flatnonzero(np.diff(contexts, prepend=-1))
    removed = _discounts(counts)[np.minimum(counts, 3)]
    totals = np.add.reduceat(counts, starts)
    fractions = (counts - removed) / np.repeat(totals, np.diff(np.append(starts, len(counts))))
    return starts, fractions, np.add.reduceat(removed, starts) / totals


def _unigram_probabilities(counts: np.ndarray) -> np.ndarray:
    """Probabilities of all ids, (size,) float64; ids that never occur have one too."""
    seen = counts[counts > 0]
    removed = np.where(counts > 0, _discounts(seen)[np.minimum(counts, 3)], 0.0)
    return (counts - removed + removed.sum() / len(counts)) / counts.sum()


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
