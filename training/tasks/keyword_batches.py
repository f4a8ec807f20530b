"""Makes batches of features from stored clips: augmented for training, unchanged for dev and test.

Random numbers depend only on (seed, step, shard), so a resumed training run gets the same batches as one that
was not interrupted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from data.features.spec_augment import SpecAugmentConfig
from data.keywords.augment import KeywordAugmentConfig, augment_clips, mask_features
from data.keywords.clip_cache import ClipStore
from model_keyword.loading import BATCH, after_silence, as_float
from utils.features.keyword import KeywordFeatureConfig, keyword_features
from utils.processes import prefetch

_PREFETCHED = 4  # batches that are made in advance
_ORDER, _AUGMENTATION = 1, 2  # purposes of random generators, part of their seeds
_SILENT_CONTEXTS = 0.3  # fraction of the clips that follow digital silence; the others follow another clip


@dataclass(frozen=True)
class KeywordBatch:
    """Clips of a step.

    Attributes:
        ids: ids of all clips of the batch, even if the arrays hold only a shard of them.
        features: (B, T, F) float32, or samples (B, S) for the kind ``raw``.
        targets: (B,) int32, indices of the labels.
    """

    ids: list[str]
    features: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class KeywordBatches:
    """Training batches: repeated passes over all clips, each in another order.

    Attributes:
        store: the clips.
        targets: (clips,) int32, indices of their labels.
        size: clips in a batch.
        features: settings of the front end.
        augment: augmentation of the samples.
        spec_augment: masks over the features; not used for the kind ``raw``.
        noises: background noises, from :func:`data.keywords.augment.load_noises`.
        seed: seed of all random numbers.
        shard: (index, count): row i of a batch is in shard i % count.
        context_samples: length of the sound before each clip: the end of another clip, or silence.
    """

    store: ClipStore
    targets: np.ndarray
    size: int
    features: KeywordFeatureConfig
    augment: KeywordAugmentConfig
    spec_augment: SpecAugmentConfig
    noises: Sequence[np.ndarray] = ()
    seed: int = 0
    shard: tuple[int, int] = (0, 1)
    context_samples: int = 0

    def between(self, first: int, last: int) -> Iterator[KeywordBatch]:
        """Batches of the steps from ``first`` (included) to ``last`` (excluded), made in a thread."""
        return prefetch(map(self.batch, range(first, last)), _PREFETCHED)

    def batch(self, step: int) -> KeywordBatch:
        """The batch of a step, counted from 0 over the whole training."""
        index, count = self.shard
        rows = self._rows(step)
        own = rows[index::count]
        rng = np.random.default_rng([self.seed, _AUGMENTATION, step, index])
        features = keyword_features(
            samples=np.concatenate([self._contexts(len(own), rng), self._augmented(own, rng)], axis=1),
            config=self.features,
        )
        if self.features.kind != "raw":
            features = mask_features(features, self.spec_augment, rng)
        return KeywordBatch([self.store.clips[row].id for row in rows], features, self.targets[own])

    def _augmented(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The augmented clips of these rows, (rows, clip_samples) float32."""
        return augment_clips(
            samples=as_float(self.store.samples[rows]),
            config=self.augment,
            rng=rng,
            noises=self.noises,
            sample_rate=self.features.sample_rate,
        )

    def _contexts(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Sound to put before ``count`` clips, (count, context_samples) float32."""
        if not self.context_samples:
            return np.zeros((count, 0), np.float32)
        contexts = self._augmented(rng.integers(len(self.store.clips), size=count), rng)
        contexts[rng.random(count) < _SILENT_CONTEXTS] = 0.0
        missing = max(self.context_samples - contexts.shape[1], 0)
        return np.pad(contexts, ((0, 0), (missing, 0)))[:, -self.context_samples :]

    def _rows(self, step: int) -> np.ndarray:
        """Indices of the clips of a step, (size,); a batch may end one pass and begin the next."""
        clips = len(self.store.clips)
        passes, positions = np.divmod(step * self.size + np.arange(self.size), clips)
        rows = np.empty(self.size, np.int64)
        for number in np.unique(passes):
            order = np.random.default_rng([self.seed, _ORDER, number]).permutation(clips)
            rows[passes == number] = order[positions[passes == number]]
        return rows


def features_of(store: ClipStore, config: KeywordFeatureConfig, context_samples: int = 0) -> np.ndarray:
    """Features of all clips without augmentation: (N, T, F) float32, or samples (N, S) for ``raw``."""
    starts = range(0, len(store.samples), BATCH)
    parts = (as_float(store.samples[start : start + BATCH]) for start in starts)
    return np.concatenate([keyword_features(after_silence(part, context_samples), config) for part in parts])
