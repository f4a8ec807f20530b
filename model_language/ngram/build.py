"""Builds a Kneser–Ney n-gram model from a text of hanzi ids: counts, estimates, prunes and packs it."""

import logging
import time
from collections.abc import Sequence

import numpy as np

from model_language.ngram.backoff import ngram_counts
from model_language.ngram.kneser_ney import (
    NgramTable,
    check_order,
    count_ngrams,
    estimate_counted,
    occurrences,
)
from model_language.ngram.packed import pack
from model_language.ngram.pruning import prune_to
from utils.errors import TrainingError, require

log = logging.getLogger("train")


def build_packed(ids: np.ndarray, size: int, order: int, ngrams: int) -> dict[str, np.ndarray]:
    """Build the arrays of :class:`model_language.ngram.packed.PackedNgrams`.

    Order 4 needs some 70 bytes of memory for each hanzi of the text.

    Args:
        ids: (tokens,) int, lines with one 0 before, between and after them.
        size: number of ids.
        order: length of the longest n-grams.
        ngrams: number of n-grams of two hanzi and more to keep: those that change the model most.

    Raises:
        ConfigError: the order, or the number of n-grams, is not possible.
        TrainingError: the text is empty.
    """
    check_order(order, size)
    require(ngrams >= 1, f"cannot keep {ngrams} n-grams", where="model.ngrams", hint="1 or more")
    if not np.any(ids):
        raise TrainingError("no training text for the n-grams", hint="see data.train of the config")
    start = time.perf_counter()
    grams = count_ngrams(ids, order, size)
    counts, tables = occurrences(grams), estimate_counted(grams)
    del grams
    log.info("counted %s in %.0f s", _counts(tables), time.perf_counter() - start)
    tables = prune_to(tables, counts, ngrams)
    log.info("kept %s after %.0f s", _counts(tables), time.perf_counter() - start)
    arrays = pack(tables)
    log.info("packed after %.0f s", time.perf_counter() - start)
    return arrays


def _counts(tables: Sequence[NgramTable]) -> str:
    return ngram_counts([len(table.keys) for table in tables])
