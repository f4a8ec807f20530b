"""Clips in memory-mapped stores → batches of features: altered anew each time for training, once for dev.

All chance comes from (seed, step, share), never from what came before: a training that goes on after a kill
sees the batches that it would have seen without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from data.augment import SpecAugmentConfig
from data.batching import prefetch
from data.keyword_augment import KeywordAugmentConfig, augment_clips, mask_features
from data.keyword_store import ClipStore
from model_keyword.loading import BATCH, as_float
from utils.keyword_features import KeywordFeatureConfig, keyword_features

_PREFETCHED = 4
# What a generator is for.
_ORDER, _ALTERATION = 1, 2


@dataclass(frozen=True)
class KeywordBatch:
    """Clips of a step.

    Attributes:
        ids: of all clips of the batch, also where the arrays hold a share of them.
        features: (B, T, F) float32, or samples (B, S) of the kind ``raw``.
        targets: (B,) int32, places in the list of labels.
    """

    ids: list[str]
    features: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class KeywordBatches:
    """Training batches: pass after pass over all clips, each pass in another order.

    Attributes:
        store: the clips.
        targets: (clips,) int32, places of their labels.
        size: clips a batch.
        features: settings of the front end.
        augment: what may happen to a clip.
        spec_augment: what may be masked in its features; nothing of the kind ``raw``.
        noises: of :func:`data.keyword_augment.load_noises`.
        seed: of all chance.
        share: (index, count): row i of a batch is in share i % count.
    """

    store: ClipStore
    targets: np.ndarray
    size: int
    features: KeywordFeatureConfig
    augment: KeywordAugmentConfig
    spec_augment: SpecAugmentConfig
    noises: Sequence[np.ndarray] = ()
    seed: int = 0
    share: tuple[int, int] = (0, 1)

    def between(self, first: int, last: int) -> Iterator[KeywordBatch]:
        """The batches of the steps from ``first`` up to ``last``, made in a thread of their own."""
        return prefetch(map(self.batch, range(first, last)), _PREFETCHED)

    def batch(self, step: int) -> KeywordBatch:
        """The batch of a step, counted from 0 over the whole training."""
        index, count = self.share
        rows = self._rows(step)
        own = rows[index::count]
        rng = np.random.default_rng([self.seed, _ALTERATION, step, index])
        samples, rate = as_float(self.store.samples[own]), self.features.sample_rate
        samples = augment_clips(samples, self.augment, rng, self.noises, rate)
        features = keyword_features(samples, self.features)
        if self.features.kind != "raw":
            features = mask_features(features, self.spec_augment, rng)
        return KeywordBatch([self.store.clips[row].id for row in rows], features, self.targets[own])

    def _rows(self, step: int) -> np.ndarray:
        """(size,) the clips of a step; a batch may end one pass and begin the next."""
        clips = len(self.store.clips)
        passes, places = np.divmod(step * self.size + np.arange(self.size), clips)
        rows = np.empty(self.size, np.int64)
        for one in np.unique(passes):
            order = np.random.default_rng([self.seed, _ORDER, one]).permutation(clips)
            rows[passes == one] = order[places[passes == one]]
        return rows


def features_of(store: ClipStore, config: KeywordFeatureConfig) -> np.ndarray:
    """Features of all clips as they are: (N, T, F) float32, or samples (N, S) of the kind ``raw``."""
    starts = range(0, len(store.samples), BATCH)
    return np.concatenate(
        [keyword_features(as_float(store.samples[start : start + BATCH]), config) for start in starts]
    )
