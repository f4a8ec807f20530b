"""Kneser–Ney tables and counts in; the tables of those n-grams that change the model most out.

Seymore and Rosenfeld, "Scalable backoff language models" (ICSLP 1996), section 3, the weighted difference: an
n-gram is worth how often it occurs times the step that its log-probability would make without it,

    count · |log P(w | context) − (log backoff(context) + log P(w | shorter context))|.

Entropy pruning (Stolcke 1998) asks the model itself how often a context occurs; Kneser–Ney's lower orders
don't know (Chelba et al. 2010, "Study on interaction between entropy pruning and Kneser–Ney smoothing"), so
here the text is asked.

What an n-gram needs stays with it: its context, since its back-off weight would be lost, and its end, one
token shorter, since :mod:`model_language.ngram.packed` tells the n-gram by it. So an n-gram is worth at
least as much as any that needs it, and to prune is to compare with one threshold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model_language.ngram.kneser_ney import NgramTable, bits_needed

# Probability left over for a context that rounding would leave none, or less.
_LEAST = 1e-7


def prune(tables: Sequence[NgramTable], counts: Sequence[np.ndarray], threshold: float) -> list[NgramTable]:
    """Leave out what is worth less than ``threshold``.

    Args:
        tables: one an order, 1-grams first, which all stay (:func:`kneser_ney.estimate_counted`).
        counts: (N,) int beside each table, how often each n-gram occurs (:func:`kneser_ney.occurrences`).
        threshold: occurrences times natural logarithm; 0 changes nothing.

    Returns:
        tables of the n-grams that are left, with the probabilities they had, and back-off weights with which
        all sum to 1 again. Highest orders of which nothing is left aren't there.
    """
    return _reduced(tables, _worths(tables, counts), threshold)


def prune_to(tables: Sequence[NgramTable], counts: Sequence[np.ndarray], ngrams: int) -> list[NgramTable]:
    """Leave the ``ngrams`` best n-grams of two ids and more, and those worth as much as the least of them.

    Other arguments and the result are those of :func:`prune`.

    Raises:
        ValueError: ``ngrams`` is below 1.
    """
    if ngrams < 1:
        raise ValueError(f"{ngrams} n-grams can't be kept")
    worths = _worths(tables, counts)
    longer = np.concatenate(worths[1:])
    ahead = max(len(longer) - ngrams, 0)
    threshold = np.partition(longer, ahead)[ahead] if len(longer) else 0.0
    del longer
    return _reduced(tables, worths, threshold)


def _worths(tables: Sequence[NgramTable], counts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(N,) float32 beside each table: what it would cost to lose the n-gram and all that need it."""
    worths = [np.full(len(tables[0].keys), np.inf, np.float32)]
    worths += [np.zeros(len(table.keys), np.float32) for table in tables[1:]]
    for n in range(len(tables) - 1, 0, -1):
        below, table = tables[n - 1], tables[n]
        context, end = _needed(tables, n)
        step = np.abs(table.log_probs - below.backoffs[context] - below.log_probs[end])
        np.maximum(worths[n], counts[n] * step, out=worths[n])
        np.maximum.at(worths[n - 1], context, worths[n])
        np.maximum.at(worths[n - 1], end, worths[n])
    return worths


def _needed(tables: Sequence[NgramTable], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Places in the table ``n - 1`` of the contexts, and of the ends, of the n-grams in the table ``n``."""
    bits = bits_needed(len(tables[0].keys))
    below, keys = tables[n - 1].keys, tables[n].keys
    return np.searchsorted(below, keys >> bits), np.searchsorted(below, keys & ((1 << bits * n) - 1))


def _reduced(
    tables: Sequence[NgramTable], worths: Sequence[np.ndarray], threshold: float
) -> list[NgramTable]:
    """The n-grams worth ``threshold`` and more."""
    kept = [worth >= threshold for worth in worths]
    backoffs = [table.backoffs for table in tables]
    for n in range(1, len(tables)):
        if not kept[n].all():
            backoffs[n - 1] = _new_backoffs(tables, n, kept[n])
    left = sum(1 for mask in kept if mask.any())  # by what needs what, only the highest orders can be empty
    return [
        NgramTable(table.keys[mask], table.log_probs[mask], backoff[mask])
        for table, backoff, mask in list(zip(tables, backoffs, kept, strict=True))[:left]
    ]


def _new_backoffs(tables: Sequence[NgramTable], n: int, kept: np.ndarray) -> np.ndarray:
    """Back-off weights of the table ``n - 1``, logs, where only ``kept`` of the n-grams above are left.

    (1 − Σ P(w | context)) / (1 − Σ P(w | shorter context)) over the w that are left after a context.
    """
    below, table = tables[n - 1], tables[n]
    context, end = _needed(tables, n)
    size = len(below.keys)
    fewer = np.bincount(context[~kept], minlength=size) > 0
    context, end = context[kept], end[kept]
    rest = 1 - np.bincount(context, np.exp(table.log_probs[kept], dtype=np.float64), minlength=size)
    lower = 1 - np.bincount(context, np.exp(below.log_probs[end], dtype=np.float64), minlength=size)
    weights = np.log(np.maximum(rest, _LEAST) / np.maximum(lower, _LEAST))  # nothing left: log 1
    return np.where(fewer, weights, below.backoffs).astype(np.float32)
