"""Keeps the numbers of a model in little memory: a hash table, a set of pairs, code books, and steps.

The hash table looks up small numbers for many n-grams at once, by their hashes. It is a chain of levels; a
hash has one slot in each. If several hashes share a slot, one of them stays and the others go to the next
level, which is a fraction of the size. A look-up ends at its hash or at an empty slot, mostly in the first
level. Everything is done by NumPy's gathers and scatters; nothing is sorted. A slot keeps 20 bits of the
hash, so one look-up in a million finds a value for a hash that is not there.

A code book rounds floats to a few levels; integers that ascend are stored as steps.
"""

from collections.abc import Iterable

import numpy as np

VALUE_BITS = 12  # a slot has 32 bits: 12 for the value, the other 20 for a part of the hash
_MARK_BITS = 32 - VALUE_BITS
_VALUE = np.uint32((1 << VALUE_BITS) - 1)
_MARK = np.uint64((1 << _MARK_BITS) - 1)
_SLOTS_PER_HASH = 2  # least number of slots in a level for each hash
_BITS = (1 << np.arange(8)).astype(np.uint8)  # of a byte of a PairSet
_HALF = np.uint64(32)
# Odd constants with well mixed bits: the golden ratio's, and one of SplitMix64's (Steele et al. 2014).
_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
LEVELS = 64
"""Levels of a code book; code 0 means that there is no value."""
_HISTOGRAM, _LLOYD_ROUNDS = 4096, 40  # Lloyd's algorithm: bins of the histogram that it reads, and rounds
_LOWEST = -30.0  # lower log-probabilities and log-weights are raised to this


class HashTable:
    """Finds values by hashes.

    Args:
        size: number of entries.
        parts: the entries, part by part: different hashes (n,) uint64 of :func:`extend_hashes`, and values
            (n,) unsigned, from 1 to below ``2 ** VALUE_BITS``. Small parts need little memory.
    """

    def __init__(self, size: int, parts: Iterable[tuple[np.ndarray, np.ndarray]]):
        self._levels: list[np.ndarray] = []  # the slots of each
        self._size = size
        parts = ((hashes, _marks(hashes) | values) for hashes, values in parts)
        while size:
            slots = np.zeros(_SLOTS_PER_HASH * size, np.uint32)
            left = [_put(slots, hashes, entries) for hashes, entries in parts]
            self._levels.append(slots)
            parts = [part for part in left if len(part[0])]
            size = sum(len(entries) for _, entries in parts)

    def __len__(self) -> int:
        return self._size

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The values of hashes (n,), 0 for a hash that is not there: (n,) uint32."""
        result = np.zeros(len(hashes), np.uint32)
        pending, marks = None, _marks(hashes)  # indices without a result yet; None: all
        for slots in self._levels:
            entries = slots.take(_slots(hashes, len(slots)))
            # Equal marks cancel; only the value remains.
            values = entries ^ marks
            found = values <= _VALUE
            values *= found
            if pending is None:
                result = values
            else:
                result[pending] = values
            left = (~found & (entries > 0)).nonzero()[0]
            if not len(left):
                break
            pending = left if pending is None else pending.take(left)
            hashes, marks = hashes.take(left) * _SPREAD, marks.take(left)
        return result


class PairSet:
    """A set of pairs of ids as a bitmap, for look-ups that mostly find nothing: one bit for each pair.

    Args:
        numbers: (n,) int, the pairs as first · size + second.
        size: number of ids.
    """

    def __init__(self, numbers: np.ndarray, size: int):
        self._bytes = np.zeros(size * size // 8 + 1, np.uint8)
        np.bitwise_or.at(self._bytes, numbers >> 3, _BITS.take(numbers & 7))

    def find(self, numbers: np.ndarray) -> np.ndarray:
        """Whether pairs (n,) are in the set: (n,) uint8, 0 if not."""
        return self._bytes.take(numbers >> 3) & _BITS.take(numbers & 7)


def _put(slots: np.ndarray, hashes: np.ndarray, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put entries into free slots; returns the others with their hashes for the next level."""
    slot = _slots(hashes, len(slots))
    free = (slots.take(slot) == 0).nonzero()[0]
    slots[slot.take(free)] = entries.take(free)  # of several, the last one stays
    left = (slots.take(slot) != entries).nonzero()[0]
    return hashes.take(left) * _SPREAD, entries.take(left)


def _slots(hashes: np.ndarray, count: int) -> np.ndarray:
    """Slots (n,) int64 below ``count`` of hashes (n,), by their upper halves.

    Lemire 2019, "Fast Random Integer Generation in an Interval": a product and a shift, no remainder.
    """
    upper = hashes >> _HALF
    upper *= np.uint64(count)
    upper >>= _HALF
    return upper.view(np.int64)


def extend_hashes(hashed: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Hashes of n-grams with one more word: hashes (n,) and ids (n,) → (n,) uint64.

    The hash of a single word is its id.
    """
    result = hashed.astype(np.uint64) * _SPREAD
    result += words.astype(np.uint64)
    result += np.uint64(1)
    result *= _MIX
    result ^= result >> np.uint64(31)
    return result


def _marks(hashes: np.ndarray) -> np.ndarray:
    """The part of each hash that its slot keeps, in the bits above the value: (n,) uint32."""
    return (hashes & _MARK).astype(np.uint32) << np.uint32(VALUE_BITS)


def code_book(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise values with a code book of ``LEVELS`` levels.

    Lloyd, "Least squares quantization in PCM" (IEEE Transactions on Information Theory 28, 1982).

    Args:
        values: (n,) float.

    Returns:
        The levels, ascending, (LEVELS,) float32, the first unused, and the code of each value, (n,) uint8.
    """
    if not len(values):
        return np.zeros(LEVELS, np.float32), np.zeros(0, np.uint8)
    values = np.maximum(values, _LOWEST)
    counts, edges = np.histogram(values, _HISTOGRAM)
    centres = (edges[:-1] + edges[1:]) / 2
    levels = np.linspace(edges[0], edges[-1], LEVELS - 1)
    for _ in range(_LLOYD_ROUNDS):
        nearest = np.searchsorted((levels[:-1] + levels[1:]) / 2, centres)
        mass = np.bincount(nearest, counts, minlength=len(levels))
        sums = np.bincount(nearest, counts * centres, minlength=len(levels))
        levels = np.where(mass > 0, sums / np.maximum(mass, 1), levels)
    codes = np.searchsorted((levels[:-1] + levels[1:]) / 2, values)
    mass, sums = (np.bincount(codes, weights, minlength=len(levels)) for weights in (None, values))
    levels = np.where(mass > 0, sums / np.maximum(mass, 1), levels)  # not of histogram bins
    return np.append(0.0, levels).astype(np.float32), (codes + 1).astype(np.uint8)


def group_steps(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Values that ascend within each group → the first value of each group, then the differences.

    Args:
        values: (n,) int, group after group.
        counts: (groups,) int, sizes of the groups.

    Returns:
        (n,) int64, small numbers that compress well.
    """
    steps = np.diff(values.astype(np.int64), prepend=0)
    first = (np.cumsum(counts) - counts)[counts > 0]
    steps[first] = values[first]
    return steps


def undo_group_steps(steps: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The inverse of :func:`group_steps`: steps (n,) and counts (groups,) → values (n,).

    They have the type of ``steps``, whose overflows cancel.
    """
    sums = np.cumsum(steps, dtype=steps.dtype)
    first = np.cumsum(counts, dtype=np.int32) - counts
    before = np.append(steps.dtype.type(0), sums).take(first)  # the sum of all earlier groups
    return sums - np.repeat(before, counts)
