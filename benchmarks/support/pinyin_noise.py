"""Adds random errors like those of an acoustic model to correct pinyin.

The benchmark of the converters uses it. The errors follow the counts of the shipped acoustic model:
:class:`utils.mandarin.confusion_statistics.ConfusionStatistics`.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from utils.errors import CorpusError
from utils.mandarin.confusion_statistics import (
    ConfusionStatistics,
    cumulative,
    is_canonical,
    relative_frequencies,
    shipped_statistics,
)
from utils.mandarin.pinyin import full_inventory

CORRECT, SUBSTITUTED, DELETED, INSERTED = range(4)


def corrupt_pinyin(sentences: Sequence[Sequence[str]], rate: float, seed: int) -> list[list[str]]:
    """Sentences with random recognition errors: about ``rate`` errors per syllable.

    Each syllable independently has an error with this probability. It is then replaced, deleted, or another
    syllable is inserted beside it, in the counted proportions. A short sentence may become empty.

    Args:
        sentences: of canonical syllables.
        rate: 0 to 1.
        seed: of the random numbers; the same seed gives the same errors.

    Raises:
        CorpusError: a token is not a canonical syllable.
    """
    statistics = shipped_statistics()
    random = np.random.default_rng(seed)
    names, ids = _encode([syllable for sentence in sentences for syllable in sentence])
    kinds = np.where(random.random(len(ids)) < rate, _draw_kinds(statistics, len(ids), random), CORRECT)
    counts = np.choose(kinds, [1, 1, 0, 2])  # output syllables for each input syllable
    substituted = kinds == SUBSTITUTED
    ids[substituted] = _draw_substitutions(ids[substituted], names, statistics, random)
    starts = np.cumsum(counts) - counts
    output = np.repeat(ids, counts)
    doubled = starts[kinds == INSERTED]
    insertions = _draw_syllables(statistics, len(doubled), random)
    output[doubled + random.integers(0, 2, len(doubled))] = insertions
    hypotheses = np.array(names, dtype=object)[output].tolist()
    ends = np.cumsum([0, *map(len, sentences)])  # ends of the sentences, in input syllables
    bounds = np.append(starts, len(hypotheses))[ends].tolist()
    return [hypotheses[start:end] for start, end in pairwise(bounds)]


def _draw_kinds(statistics: ConfusionStatistics, count: int, random: np.random.Generator) -> np.ndarray:
    """Random kinds of errors, in the counted proportions: (count,) int."""
    counts = np.array([statistics.substitutions, statistics.deletions, statistics.insertions])
    return np.searchsorted(cumulative(counts), random.random(count), side="right") + SUBSTITUTED


def _draw_substitutions(
    references: np.ndarray,
    names: Sequence[str],
    statistics: ConfusionStatistics,
    random: np.random.Generator,
) -> np.ndarray:
    """For each id a random other syllable, as its index in the inventory: (n,) int → (n,) int."""
    draws, hypotheses = random.random(len(references)), np.zeros(len(references), np.intp)
    order = np.argsort(references, kind="stable")
    ids, firsts = np.unique(references[order], return_index=True)
    table = cumulative(statistics.matrix([names[syllable] for syllable in ids])).astype(np.float32)
    for probabilities, rows in zip(table, np.split(order, firsts)[1:], strict=True):
        hypotheses[rows] = np.searchsorted(probabilities, draws[rows], side="right")
    return hypotheses


def _draw_syllables(statistics: ConfusionStatistics, count: int, random: np.random.Generator) -> np.ndarray:
    """Random syllables by their frequency, as indices in the inventory: (count,) int."""
    probabilities = cumulative(relative_frequencies(statistics.frequencies, full_inventory()))
    return np.searchsorted(probabilities, random.random(count), side="right")


def _encode(syllables: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The names of all ids, those of the inventory first, and the ids of the syllables."""
    ids = {name: index for index, name in enumerate(full_inventory())}
    for name in dict.fromkeys(syllables):
        if name not in ids:
            if not is_canonical(name):
                raise CorpusError(f"'{name}' is not a canonical syllable", hint="write syllables like zhong1")
            ids[name] = len(ids)
    return list(ids), np.array([ids[name] for name in syllables], np.intp)
