"""Chooses the utterances that an epoch reads from several corpora with weights.

A corpus is read pass after pass, each in another random order. An epoch reads the next part of that sequence,
of a length proportional to the weight. A corpus of weight 0.25 contributes another quarter of its utterances
to each epoch, and all of them in four; one of weight 3 is read three times per epoch. The result depends on
the seed and the epoch only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_MIXTURE = 3  # purpose of a random generator, beside those of data/batches/batching.py


@dataclass(frozen=True)
class WeightedCorpus:
    """A corpus in a list of utterances, and how often an epoch reads it.

    Attributes:
        utterances: number of utterances in the corpus.
        weight: passes per epoch, above 0.
    """

    utterances: int
    weight: float = 1.0

    def count(self, epoch: int) -> int:
        """Number of utterances that an epoch (counted from 1) reads, repeated ones counted each time."""
        return self._total(epoch) - self._total(epoch - 1)

    def indices(self, epoch: int, seed: int, corpus: int) -> np.ndarray:
        """Indices of the utterances that an epoch reads: (count,) int64, ascending.

        Args:
            epoch: counted from 1.
            seed: seed of the orders.
            corpus: number of the corpus; others have other orders.
        """
        stream = np.arange(self._total(epoch - 1), self._total(epoch))
        passes, indices = np.divmod(stream, max(self.utterances, 1))
        for number in np.unique(passes):
            part = passes == number
            if part.sum() < self.utterances:  # the order of a complete pass doesn't matter
                order = np.random.default_rng([seed, number, _MIXTURE, corpus]).permutation(self.utterances)
                indices[part] = order[indices[part]]
        return np.sort(indices)

    def _total(self, epoch: int) -> int:
        """Utterances read up to the end of ``epoch``; only this is rounded, so errors don't add up."""
        return int(epoch * self.weight * self.utterances + 0.5)


def epoch_indices(corpora: Sequence[WeightedCorpus], seed: int, epoch: int) -> np.ndarray:
    """The utterances of a list that an epoch reads.

    Args:
        corpora: the corpora that the list consists of, in their order.
        seed: seed of the random orders.
        epoch: counted from 1.

    Returns:
        (entries,) int64 indices into the list, ascending; an utterance read several times occurs as often.
    """
    starts = np.cumsum([0, *(corpus.utterances for corpus in corpora)])
    parts = [
        start + corpus.indices(epoch, seed, number)
        for number, (start, corpus) in enumerate(zip(starts, corpora, strict=False))
    ]
    return np.concatenate([np.zeros(0, np.int64), *parts])
