"""Hashes of n-grams and a small number for each in; the numbers of many hashes at once, looked up, out.

A chain of tables: a hash has one slot in each. Of those that share a slot one stays, the others go on to the
next table, a fraction of the size. A look-up ends where it finds its hash or an empty slot, mostly in the
first table. All is done by NumPy's gathers and scatters; nothing is sorted.

A slot keeps 20 bits of the hash, so what isn't there is taken for something else once in a million look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

VALUE_BITS = 12
_MARK_BITS = 32 - VALUE_BITS  # of the hash, kept in the slot
_VALUE = np.uint32((1 << VALUE_BITS) - 1)
_MARK = np.uint64((1 << _MARK_BITS) - 1)
_ROOM = 2  # slots for each hash, at least
# Odd constants with well mixed bits: the golden ratio's, and one of SplitMix64's (Steele et al. 2014).
_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class CodeTable:
    """Finds numbers by hashes.

    Args:
        size: how many there are.
        parts: of all, one after the other: hashes (n,) uint64, of :func:`extended`, all different, and values
            (n,) unsigned, from 1 to below ``2 ** VALUE_BITS``. Small parts take little memory.
    """

    def __init__(self, size: int, parts: Iterable[tuple[np.ndarray, np.ndarray]]):
        self._levels: list[tuple[np.ndarray, np.uint64]] = []  # slots, and the shift that leaves their number
        self._size = size
        parts = ((hashes, _marks(hashes) | values) for hashes, values in parts)
        while size:
            bits = int(_ROOM * size - 1).bit_length()
            slots, shift = np.zeros(1 << bits, np.uint32), np.uint64(64 - bits)
            left = [_put(slots, shift, hashes, entries) for hashes, entries in parts]
            self._levels.append((slots, shift))
            parts = [part for part in left if len(part[0])]
            size = sum(len(entries) for _, entries in parts)

    def __len__(self) -> int:
        return self._size

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The numbers of hashes (n,), 0 where there is none: (n,) uint32."""
        result = np.zeros(len(hashes), np.uint32)
        asked, marks = None, _marks(hashes)  # places of those that are still asked for; None: all
        for slots, shift in self._levels:
            entries = slots.take((hashes >> shift).view(np.int64))
            # Equal marks leave nothing but the value.
            values = entries ^ marks
            found = values <= _VALUE
            values *= found
            if asked is None:
                result = values
            else:
                result[asked] = values
            left = (~found & (entries > 0)).nonzero()[0]
            if not len(left):
                break
            asked = left if asked is None else asked.take(left)
            hashes, marks = hashes.take(left) * _SPREAD, marks.take(left)
        return result


def _put(
    slots: np.ndarray, shift: np.uint64, hashes: np.ndarray, entries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put entries into the slots that are free; those for which there is none, with hashes for the next."""
    place = (hashes >> shift).view(np.int64)
    free = (slots.take(place) == 0).nonzero()[0]
    slots[place.take(free)] = entries.take(free)  # the last one stays
    left = (slots.take(place) != entries).nonzero()[0]
    return hashes.take(left) * _SPREAD, entries.take(left)


def extended(hashed: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Hashes of n-grams with one word more; that of a single word is its id."""
    result = hashed.astype(np.uint64) * _SPREAD
    result += words.astype(np.uint64)
    result += np.uint64(1)
    result *= _MIX
    result ^= result >> np.uint64(31)
    return result


def _marks(hashes: np.ndarray) -> np.ndarray:
    """What of a hash stands in its slot, above the value: (n,) uint32."""
    return (hashes & _MARK).astype(np.uint32) << np.uint32(VALUE_BITS)
