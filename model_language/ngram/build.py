"""Hanzi ids of a text in; its n-grams, counted, estimated, pruned and packed, out."""

from __future__ import annotations

import logging
import time

import numpy as np

from model_language.ngram.kneser_ney import bits_needed, count_ngrams, estimate_counted, occurrences
from model_language.ngram.packed import pack
from model_language.ngram.pruning import prune_to
from utils.errors import ConfigError, TrainingError

log = logging.getLogger("train")


def build_packed(ids: np.ndarray, size: int, order: int, ngrams: int) -> dict[str, np.ndarray]:
    """Build the arrays of :class:`model_language.ngram.packed.PackedNgrams`.

    Some 70 bytes of memory a hanzi of the text, for order 4.

    Args:
        ids: (tokens,) int, lines with one 0 before, between and after them.
        size: ids are below it.
        order: length of the longest n-grams, ≥ 2.
        ngrams: how many of two hanzi and more are kept, the ones that change the model most.

    Raises:
        ConfigError: the order, or the number of n-grams, is not possible.
        TrainingError: the text is empty.
    """
    if order < 2 or order * bits_needed(size) > 63:
        raise ConfigError(f"order {order} is not possible", where="model.order", hint="2, 3 or 4")
    if ngrams < 1:
        raise ConfigError(f"{ngrams} n-grams can't be kept", where="model.ngrams", hint="1 or more")
    if not np.any(ids):
        raise TrainingError("no training text for the n-grams", hint="see data.train of the config")
    began = time.perf_counter()
    grams = count_ngrams(ids, order, size)
    counts, tables = occurrences(grams), estimate_counted(grams)
    del grams
    log.info("counted %s in %.0f s", _numbers(tables), time.perf_counter() - began)
    tables = prune_to(tables, counts, ngrams)
    log.info("kept %s after %.0f s", _numbers(tables), time.perf_counter() - began)
    arrays = pack(tables)
    log.info("packed after %.0f s", time.perf_counter() - began)
    return arrays


def _numbers(tables: list) -> str:
    return ", ".join(f"{len(table.keys):,} {order}-grams" for order, table in enumerate(tables, start=1))
