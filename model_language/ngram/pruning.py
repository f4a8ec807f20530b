"""Prunes a Kneser–Ney model: keeps the n-grams whose removal would change the model most.

Seymore and Rosenfeld, "Scalable backoff language models" (ICSLP 1996), section 3, the weighted difference:
the cost of removing an n-gram is its count times the change of its log-probability,

    count · |log P(w | context) − (log backoff(context) + log P(w | shorter context))|.

Entropy pruning (Stolcke 1998) takes the count of a context from the model. The lower orders of Kneser–Ney do
not contain it (Chelba et al. 2010, "Study on interaction between entropy pruning and Kneser–Ney smoothing"),
so here it is counted in the text.

A kept n-gram needs two shorter ones, which are kept too: its context, which holds the back-off weight, and
its suffix without the first word, by which :mod:`model_language.ngram.packed` encodes it. The cost of an
n-gram is therefore at least that of any n-gram that needs it, and pruning compares all costs with one
threshold.
"""

from collections.abc import Sequence

import numpy as np

from model_language.ngram.kneser_ney import NgramTable, bits_needed

# Lowest remaining probability of a context, because of rounding.
_LOWEST_REST = 1e-7


def prune_to(tables: Sequence[NgramTable], counts: Sequence[np.ndarray], ngrams: int) -> list[NgramTable]:
    """Keep ``ngrams`` n-grams of two ids and more, those of the highest cost; ties are kept too.

    Args:
        tables: one for each order, 1-grams first, which all stay (:func:`kneser_ney.estimate_counted`).
        counts: (N,) int for each table, occurrences of each n-gram (:func:`kneser_ney.occurrences`).
        ngrams: number of n-grams.

    Returns:
        Tables of the remaining n-grams with their former probabilities, and with back-off weights so that the
        probabilities sum to 1 again. Highest orders without n-grams are omitted.

    Raises:
        ValueError: ``ngrams`` is below 1.
    """
    if ngrams < 1:
        raise ValueError(f"cannot keep {ngrams} n-grams")
    costs = _costs(tables, counts)
    longer = np.concatenate(costs[1:])
    removed = max(len(longer) - ngrams, 0)
    threshold = np.partition(longer, removed)[removed] if len(longer) else 0.0
    del longer
    return _above(tables, costs, threshold)


def _costs(tables: Sequence[NgramTable], counts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(N,) float32 for each table: the cost of removing the n-gram and all that need it."""
    costs = [np.full(len(tables[0].keys), np.inf, np.float32)]
    costs += [np.zeros(len(table.keys), np.float32) for table in tables[1:]]
    for n in range(len(tables) - 1, 0, -1):
        below, table = tables[n - 1], tables[n]
        context, end = _needed(tables, n)
        step = np.abs(table.log_probs - below.backoffs[context] - below.log_probs[end])
        np.maximum(costs[n], counts[n] * step, out=costs[n])
        np.maximum.at(costs[n - 1], context, costs[n])
        np.maximum.at(costs[n - 1], end, costs[n])
    return costs


def _needed(tables: Sequence[NgramTable], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices in table ``n - 1`` of the contexts and of the suffixes of the n-grams in table ``n``."""
    bits = bits_needed(len(tables[0].keys))
    below, keys = tables[n - 1].keys, tables[n].keys
    return np.searchsorted(below, keys >> bits), np.searchsorted(below, keys & ((1 << bits * n) - 1))


def _above(tables: Sequence[NgramTable], costs: Sequence[np.ndarray], threshold: float) -> list[NgramTable]:
    """The n-grams that cost ``threshold`` or more."""
    kept = [cost >= threshold for cost in costs]
    backoffs = [table.backoffs for table in tables]
    for n in range(1, len(tables)):
        if not kept[n].all():
            backoffs[n - 1] = _new_backoffs(tables, n, kept[n])
    orders = sum(1 for mask in kept if mask.any())  # only the highest orders can be empty
    return [
        NgramTable(table.keys[mask], table.log_probs[mask], backoff[mask])
        for table, backoff, mask in list(zip(tables, backoffs, kept, strict=True))[:orders]
    ]


def _new_backoffs(tables: Sequence[NgramTable], n: int, kept: np.ndarray) -> np.ndarray:
    """Log back-off weights of table ``n - 1`` if only ``kept`` of the n-grams of table ``n`` remain.

    (1 − Σ P(w | context)) / (1 − Σ P(w | shorter context)) over the remaining w of a context.
    """
    below, table = tables[n - 1], tables[n]
    context, end = _needed(tables, n)
    size = len(below.keys)
    fewer = np.bincount(context[~kept], minlength=size) > 0
    context, end = context[kept], end[kept]
    rest = 1 - np.bincount(context, np.exp(table.log_probs[kept], dtype=np.float64), minlength=size)
    lower = 1 - np.bincount(context, np.exp(below.log_probs[end], dtype=np.float64), minlength=size)
    weights = np.log(np.maximum(rest, _LOWEST_REST) / np.maximum(lower, _LOWEST_REST))  # or log 1
    return np.where(fewer, weights, below.backoffs).astype(np.float32)
