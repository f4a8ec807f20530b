"""Token ids of a text → a modified Kneser–Ney model: log-probabilities and back-off weights of its n-grams.

Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling" (TR-10-98, 1998),
section 3: interpolated, three discounts an order. As in KenLM (Heafield et al. 2013), an n-gram that begins
a sentence keeps its count in the lower orders, since nothing can stand before it, and the unigrams are
interpolated with the uniform distribution, so that every token has a probability.

An n-gram is one int64: its ids side by side, ``bits`` each, the oldest in front. All arrays are sorted by
it; so the n-grams that continue one context lie together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

BOUNDARY = 0
"""Begins and ends a sentence; as a context it is the beginning, as the last token the end."""


@dataclass(frozen=True)
class NgramTable:
    """All n-grams of one order.

    Attributes:
        keys: (N,) int64, sorted.
        log_probs: (N,) float32, log P(last id | the ids before it), natural logarithm.
        backoffs: (N,) float32, log of the weight of the lower order after this n-gram as a context; 0 (weight
            1) if nothing ever followed it, and in the highest order.
    """

    keys: np.ndarray
    log_probs: np.ndarray
    backoffs: np.ndarray


@dataclass(frozen=True)
class NgramCounts:
    """What Kneser–Ney counts of the n-grams of one order.

    Attributes:
        keys: (N,) int64, sorted.
        counts: (N,) int64, in the highest order, and of those that begin a sentence: how often each occurs;
            of others, after how many distinct ids.
    """

    keys: np.ndarray
    counts: np.ndarray


def bits_needed(size: int) -> int:
    """Bits of an id below ``size``."""
    return max(int(size - 1).bit_length(), 1)


def estimate(ids: np.ndarray, order: int, size: int) -> list[NgramTable]:
    """Estimate a model.

    Args:
        ids: (tokens,) int, sentences with one 0 before, between and after them.
        order: length of the longest n-grams, ≥ 2; ``order * bits_needed(size)`` ≤ 63.
        size: ids are below it; 0 is the sentence's end among the predicted tokens.

    Returns:
        One table an order, 1-grams first; these hold all ``size`` ids.
    """
    return estimate_counted(count_ngrams(ids, order, size))


def count_ngrams(ids: np.ndarray, order: int, size: int) -> list[NgramCounts]:
    """Count what a model is estimated from; arguments as of :func:`estimate`, one result an order."""
    bits = bits_needed(size)
    ids = np.asarray(ids, np.int64)
    grams = [NgramCounts(*np.unique(_windows(ids, order, bits), return_counts=True))]
    for n in range(order - 1, 1, -1):
        keys, counts = _ends(grams[0].keys, n, bits)
        windows = _windows(ids, n, bits)
        first, times = np.unique(windows[windows >> bits * (n - 1) == BOUNDARY], return_counts=True)
        # No end begins with a boundary, so all of ``first`` stand before all ends.
        grams.insert(0, NgramCounts(np.append(first, keys), np.append(times, counts)))
    unigrams = np.zeros(size, np.int64)  # the 1-gram 0 is the end, which has something before it
    keys, counts = _ends(grams[0].keys, 1, bits)
    unigrams[keys] = counts
    return [NgramCounts(np.arange(size), unigrams), *grams]


def estimate_counted(grams: Sequence[NgramCounts]) -> list[NgramTable]:
    """Estimate a model from what :func:`count_ngrams` counted; aligned with it."""
    bits = bits_needed(len(grams[0].keys))
    probabilities = [_unigram_probabilities(grams[0].counts)]
    backoffs = [np.zeros(len(gram.keys), np.float32) for gram in grams]
    for n, (lower, gram) in enumerate(pairwise(grams), start=2):
        starts, share, weights = _discounted(gram.keys >> bits, gram.counts)
        suffix = np.searchsorted(lower.keys, gram.keys & ((1 << bits * (n - 1)) - 1))
        of_context = np.repeat(weights, np.diff(np.append(starts, len(gram.keys))))
        probabilities.append(share + of_context * probabilities[-1][suffix])
        contexts = np.searchsorted(lower.keys, gram.keys[starts] >> bits)
        with np.errstate(divide="ignore"):  # no discount (a text too small for one): log 0 is right
            backoffs[n - 2][contexts] = np.log(weights)
    return [
        NgramTable(gram.keys, np.log(p).astype(np.float32), b)
        for gram, p, b in zip(grams, probabilities, backoffs, strict=True)
    ]


def occurrences(grams: Sequence[NgramCounts]) -> list[np.ndarray]:
    """How often each n-gram stands in the text that :func:`count_ngrams` saw, aligned with its arrays.

    Kneser–Ney forgets it below the highest order; but an n-gram that doesn't begin a sentence stands there as
    often as all those that it ends, one token longer.
    """
    bits = bits_needed(len(grams[0].keys))
    result = [grams[-1].counts]
    for n in range(len(grams) - 1, 0, -1):
        shorter, longer = grams[n - 1], grams[n]
        ends = np.searchsorted(shorter.keys, longer.keys & ((1 << bits * n) - 1))
        # float64 adds whole numbers exactly up to 2^53.
        times = np.bincount(ends, result[0], minlength=len(shorter.keys)).astype(np.int64)
        if n > 1:
            begun = np.searchsorted(shorter.keys, 1 << bits * (n - 1))  # those that begin with 0 come first
            times[:begun] = shorter.counts[:begun]
        result.insert(0, times)
    return result


def _ends(longer: np.ndarray, n: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The last ``n`` ids of distinct n-grams, and after how many distinct ids each stands."""
    return np.unique(longer & ((1 << bits * n) - 1), return_counts=True)


def _windows(ids: np.ndarray, n: int, bits: int) -> np.ndarray:
    """All n-grams inside one sentence, its two boundaries included."""
    count = max(len(ids) - n + 1, 0)
    keys = np.zeros(count, np.int64)
    inside = np.ones(count, bool)
    for place in range(n):
        token = ids[place : place + count]
        keys = (keys << bits) | token
        if 0 < place < n - 1:
            inside &= token != BOUNDARY
    return keys[inside]


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Discounts of the counts 0, 1, 2 and ≥ 3 (Chen and Goodman, equation 26).

    A tiny text may lack n-grams that occur 1, 2, 3 or 4 times; it gets 0.5, 1 and 1.5, as in KenLM.
    """
    n1, n2, n3, n4 = (np.count_nonzero(counts == times) for times in (1, 2, 3, 4))
    if min(n1, n2, n3, n4) == 0:
        return np.array([0.0, 0.5, 1.0, 1.5])
    y = n1 / (n1 + 2 * n2)
    found = np.array([0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
    return np.clip(found, 0.0, [0.0, 1.0, 2.0, 3.0])


def _discounted(contexts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First place of each context, each n-gram's discounted share of it, each context's left-over weight."""
    starts = np.flatnonzero(np.diff(contexts, prepend=-1))
    removed = _discounts(counts)[np.minimum(counts, 3)]
    totals = np.add.reduceat(counts, starts)
    share = (counts - removed) / np.repeat(totals, np.diff(np.append(starts, len(counts))))
    return starts, share, np.add.reduceat(removed, starts) / totals


def _unigram_probabilities(counts: np.ndarray) -> np.ndarray:
    """All ids' probabilities, those that never occur included: (size,) float64."""
    seen = counts[counts > 0]
    removed = np.where(counts > 0, _discounts(seen)[np.minimum(counts, 3)], 0.0)
    return (counts - removed + removed.sum() / len(counts)) / counts.sum()
