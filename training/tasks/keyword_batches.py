"""Clips in memory-mapped stores → batches of features: altered anew each time for training, once for dev.

All chance comes from (seed, step, share), never from what came before: a training that goes on after a kill
sees the batches that it would have seen without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from data.batches.prefetch import prefetch
from data.features.spec_augment import SpecAugmentConfig
from data.keywords.augment import KeywordAugmentConfig, augment_clips, mask_features
from data.keywords.clip_cache import ClipStore
from model_keyword.loading import BATCH, after_silence, as_float
from utils.features.keyword import KeywordFeatureConfig, keyword_features

_PREFETCHED = 4
# What a generator is for.
_ORDER, _ALTERATION = 1, 2
_SILENT_CONTEXTS = 0.3  # share of the clips that come after digital silence, the others after another clip


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
        noises: of :func:`data.keywords.augment.load_noises`.
        seed: of all chance.
        share: (index, count): row i of a batch is in share i % count.
        context_samples: sound before each clip: the end of another one, or silence.
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
    context_samples: int = 0

    def between(self, first: int, last: int) -> Iterator[KeywordBatch]:
        """The batches of the steps from ``first`` up to ``last``, made in a thread of their own."""
        return prefetch(map(self.batch, range(first, last)), _PREFETCHED)

    def batch(self, step: int) -> KeywordBatch:
        """The batch of a step, counted from 0 over the whole training."""
        index, count = self.share
        rows = self._rows(step)
        own = rows[index::count]
        rng = np.random.default_rng([self.seed, _ALTERATION, step, index])
        samples = np.concatenate([self._contexts(len(own), rng), self._altered(own, rng)], axis=1)
        features = keyword_features(samples, self.features)
        if self.features.kind != "raw":
            features = mask_features(features, self.spec_augment, rng)
        return KeywordBatch([self.store.clips[row].id for row in rows], features, self.targets[own])

    def _altered(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The clips of these rows as a training hears them, (rows, clip_samples) float32."""
        samples = as_float(self.store.samples[rows])
        return augment_clips(samples, self.augment, rng, self.noises, self.features.sample_rate)

    def _contexts(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """What is heard before so many clips, (count, context_samples) float32."""
        if not self.context_samples:
            return np.zeros((count, 0), np.float32)
        contexts = self._altered(rng.integers(len(self.store.clips), size=count), rng)
        contexts[rng.random(count) < _SILENT_CONTEXTS] = 0.0
        missing = max(self.context_samples - contexts.shape[1], 0)
        return np.pad(contexts, ((0, 0), (missing, 0)))[:, -self.context_samples :]

    def _rows(self, step: int) -> np.ndarray:
        """(size,) the clips of a step; a batch may end one pass and begin the next."""
        clips = len(self.store.clips)
        passes, places = np.divmod(step * self.size + np.arange(self.size), clips)
        rows = np.empty(self.size, np.int64)
        for one in np.unique(passes):
            order = np.random.default_rng([self.seed, _ORDER, one]).permutation(clips)
            rows[passes == one] = order[places[passes == one]]
        return rows


def features_of(store: ClipStore, config: KeywordFeatureConfig, context_samples: int = 0) -> np.ndarray:
    """Features of all clips as they are: (N, T, F) float32, or samples (N, S) of the kind ``raw``."""
    starts = range(0, len(store.samples), BATCH)
    clips = (as_float(store.samples[start : start + BATCH]) for start in starts)
    return np.concatenate([keyword_features(after_silence(one, context_samples), config) for one in clips])
