"""Several corpora and their weights → which utterances an epoch reads, the same for the same seed and epoch.

A corpus is read pass after pass, each in a random order of its own; an epoch is the next stretch of that
stream, as long as the weight says. So a corpus of weight 0.25 shows another quarter of itself in each epoch
and all of it in four, and one of weight 3 comes three times an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_MIXTURE = 3  # purpose of a random generator, beside those of data/batches/batching.py


@dataclass(frozen=True)
class CorpusShare:
    """Utterances that stand together in a list, and how often an epoch reads them.

    Attributes:
        utterances: how many.
        weight: passes over them in an epoch, above 0.
    """

    utterances: int
    weight: float = 1.0

    def entries(self, epoch: int) -> int:
        """How many utterances an epoch (counted from 1) reads, repeated ones counted each time."""
        return self._place(epoch) - self._place(epoch - 1)

    def _place(self, epoch: int) -> int:
        """Utterances read when ``epoch`` has ended, in all; rounded here alone, so that nothing gets lost."""
        return int(epoch * self.weight * self.utterances + 0.5)

    def stretch(self, epoch: int, seed: int, corpus: int) -> np.ndarray:
        """Indices of the utterances that an epoch reads, (entries,) int64, ascending."""
        first, last, size = self._place(epoch - 1), self._place(epoch), self.utterances
        read = [np.zeros(0, np.int64)]
        for number in range(first // max(size, 1), -(-last // max(size, 1))):
            begin, end = max(first - number * size, 0), min(last - number * size, size)
            order = np.arange(size)
            if end - begin < size:
                order = np.random.default_rng([seed, number, _MIXTURE, corpus]).permutation(size)
            read.append(order[begin:end])
        return np.sort(np.concatenate(read))


def epoch_entries(shares: Sequence[CorpusShare], seed: int, epoch: int) -> np.ndarray:
    """Which utterances of a list an epoch reads.

    Args:
        shares: the list's corpora, one after the other.
        seed: of the parts that corpora of broken weights show.
        epoch: counted from 1.

    Returns:
        (entries,) int64 indices into the list, ascending; one that is read several times is there as often.
    """
    starts = np.cumsum([0, *(share.utterances for share in shares)])
    stretches = [
        start + share.stretch(epoch, seed, corpus)
        for corpus, (start, share) in enumerate(zip(starts, shares, strict=False))
    ]
    return np.concatenate([np.zeros(0, np.int64), *stretches])
