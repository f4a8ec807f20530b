"""Right pinyin in, pinyin with the mistakes of an acoustic model out: to train and to test converters.

The mistakes are drawn by :class:`utils.mandarin.confusion_statistics.PinyinNoise`, of our own acoustic models
or of yours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from utils.errors import CorpusError
from utils.mandarin.confusion_statistics import PinyinNoise, is_canonical, shipped_noise, up_to_one
from utils.mandarin.pinyin import full_inventory
from utils.mandarin.substitutions import relative_frequencies

RIGHT, SUBSTITUTED, DELETED, INSERTED = range(4)


def corrupted(
    sentences: Sequence[Sequence[str]], rate: float, seed: int, noise: PinyinNoise | None = None
) -> list[list[str]]:
    """Sentences with mistakes as an acoustic model makes them: about ``rate`` errors for each syllable.

    Each syllable is hit by itself with this probability, and then replaced by another, left out, or has one
    too much beside it, as often as counted. A short sentence may lose all its syllables.

    Args:
        sentences: of canonical syllables.
        rate: 0 to 1.
        seed: the same one gives the same mistakes.
        noise: None: the shipped statistics.

    Raises:
        CorpusError: something is no canonical syllable.
        ValueError: the rate isn't one.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"{rate} is no rate from 0 to 1")
    noise = noise or shipped_noise()
    random = np.random.default_rng(seed)
    names, ids = _numbered([syllable for sentence in sentences for syllable in sentence])
    kinds = np.where(random.random(len(ids)) < rate, _drawn_errors(noise, len(ids), random), RIGHT)
    counts = np.choose(kinds, [1, 1, 0, 2])  # syllables that each one becomes
    replaced = kinds == SUBSTITUTED
    ids[replaced] = _heard_for(ids[replaced], names, noise, random)
    starts = np.cumsum(counts) - counts
    output = np.repeat(ids, counts)
    doubled = starts[kinds == INSERTED]
    output[doubled + random.integers(0, 2, len(doubled))] = _too_much(noise, len(doubled), random)
    heard = np.array(names, dtype=object)[output].tolist()
    ends = np.cumsum([0, *map(len, sentences)])  # of the sentences, among what was said
    bounds = np.append(starts, len(heard))[ends].tolist()
    return [heard[start:end] for start, end in pairwise(bounds)]


def _drawn_errors(noise: PinyinNoise, count: int, random: np.random.Generator) -> np.ndarray:
    """So many kinds of error, as often as counted."""
    shares = up_to_one(np.array([noise.substitutions, noise.deletions, noise.insertions]))
    return np.searchsorted(shares, random.random(count), side="right") + SUBSTITUTED


def _heard_for(
    said: np.ndarray, names: Sequence[str], noise: PinyinNoise, random: np.random.Generator
) -> np.ndarray:
    """For each id said, the place in the inventory of another syllable that is heard for it."""
    draws, heard = random.random(len(said)), np.zeros(len(said), np.intp)
    order = np.argsort(said, kind="stable")
    ids, firsts = np.unique(said[order], return_index=True)
    inventory = len(full_inventory())
    for one, places in zip(ids.tolist(), np.split(order, firsts)[1:], strict=True):
        row = noise.cumulated[one] if one < inventory else up_to_one(noise.matrix([names[one]])[0])
        heard[places] = np.searchsorted(row, draws[places], side="right")
    return heard


def _too_much(noise: PinyinNoise, count: int, random: np.random.Generator) -> np.ndarray:
    """Places in the inventory of so many syllables that nobody said, by how frequent they are."""
    shares = up_to_one(relative_frequencies(noise.frequencies, full_inventory()))
    return np.searchsorted(shares, random.random(count), side="right")


def _numbered(said: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Names of ids, the inventory first, and the ids of these syllables."""
    ids = {name: place for place, name in enumerate(full_inventory())}
    for name in dict.fromkeys(said):
        if name not in ids:
            if not is_canonical(name):
                raise CorpusError(f"'{name}' is no canonical syllable", hint="write syllables like zhong1")
            ids[name] = len(ids)
    return list(ids), np.array([ids[name] for name in said], np.intp)
