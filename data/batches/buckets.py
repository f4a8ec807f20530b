"""Batches of few different shapes, for backends that compile a training step for each shape.

Utterances are divided into ranges of length (buckets). All batches of a bucket have the same number of
utterances, of frames and of labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Buckets:
    """The shapes of the batches.

    Attributes:
        frames: (buckets,) int64, ascending: padded length of each bucket.
        labels: (buckets,) int64: padded number of labels.
        rows: (buckets,) int64: utterances in a batch.
    """

    frames: np.ndarray
    labels: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(
        cls,
        frames: np.ndarray,
        labels: Sequence[int],
        buckets: int,
        batch_frames: int,
        max_batch: int,
        multiple: int,
    ) -> Self:
        """The buckets with the least padding.

        Args:
            frames: (utterances, copies) lengths.
            labels: (utterances,) number of labels.
            buckets: largest number of buckets, at least 1.
            batch_frames: largest number of frames in a batch, padding included.
            max_batch: largest number of utterances in a batch.
            multiple: padded lengths are multiples of this.
        """
        edges = least_padding(-(-frames.ravel().astype(np.int64) // multiple) * multiple, buckets)
        first = np.searchsorted(edges, frames.min(axis=1))  # bucket of the shortest copy
        most = [
            max((count for count, own in zip(labels, first, strict=True) if own <= bucket), default=1)
            for bucket in range(len(edges))
        ]
        return cls(edges, np.maximum(most, 1), np.clip(batch_frames // edges, 1, max_batch))

    def plan(self, frames: np.ndarray, rng: np.random.Generator | None) -> tuple[list[np.ndarray], list[int]]:
        """Divide utterances into batches.

        What is left of a bucket after whole batches joins the next one. The last batch of an epoch is filled
        with utterances that are drawn again.

        Args:
            frames: (utterances,) lengths.
            rng: for the order; None for evaluation: the longest first, and nothing is filled.

        Returns:
            indices of the utterances of each batch, and its bucket.
        """
        bucket_of = np.searchsorted(self.frames, frames)
        left, batches = np.empty(0, np.int64), []
        for bucket, rows in enumerate(self.rows.tolist()):
            own = np.flatnonzero(bucket_of == bucket)
            members = np.concatenate([left, own if rng is None else rng.permutation(own)])
            whole = len(members) // rows * rows
            batches += [(batch, bucket) for batch in members[:whole].reshape(-1, rows)]
            left = members[whole:]
        if len(left) and rng is not None:
            left = np.concatenate([left, rng.integers(len(frames), size=self.rows[-1] - len(left))])
        batches += [(left, len(self.frames) - 1)] * bool(len(left))
        order = range(len(batches))[::-1] if rng is None else rng.permutation(len(batches))
        return [batches[index][0] for index in order], [batches[index][1] for index in order]


def least_padding(lengths: np.ndarray, buckets: int) -> np.ndarray:
    """Upper limits of the buckets into which ``lengths`` (n,) fit with the least padding: (≤ buckets,)."""
    values, counts = np.unique(lengths, return_counts=True)
    below = np.cumsum(counts)  # utterances up to each length
    padded = below * values  # least sum of padded lengths up to each length, with one bucket
    previous: list[np.ndarray] = []
    for _ in range(min(buckets, len(values)) - 1):
        # Another bucket from above length j to length i.
        sums = padded[:, None] + (below[None, :] - below[:, None]) * values[None, :]  # (j, i)
        sums[np.tril_indices(len(values))] = np.iinfo(np.int64).max  # only j < i
        previous.append(sums.argmin(axis=0))
        padded = np.minimum(sums.min(axis=0), padded)  # the shortest length has no j
    last = len(values) - 1
    edges = [last]
    for steps in reversed(previous):
        last = int(steps[last])
        edges.insert(0, last)
        if last == 0:
            break
    return values[edges]
