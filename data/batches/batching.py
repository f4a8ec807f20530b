"""Forms padded batches of utterances of similar length from cached features and labels, epoch by epoch.

The same seed and epoch give the same batches, and an epoch can be entered at any step, as a resumed run does:
which copy of a recording is used, and which of its features are masked, depends on (seed, epoch, utterance),
not on the batches before. A thread prepares the next batches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from data.batches.buckets import Buckets
from data.batches.mixture import WeightedCorpus, epoch_indices
from data.features.cache import FeatureCache
from data.features.spec_augment import SpecAugmentConfig, spec_augment
from data.manifest import Utterance
from utils.arrays import pad_rows
from utils.processes import prefetch, thread_pool

FRAME_MULTIPLE = 16  # padded lengths are multiples of it: fewer shapes to compile, at most 15 frames more
_BATCHES_PER_CHUNK = 50  # a chunk of the shuffled utterances is sorted by length
PREFETCHED = 4  # batches that are prepared ahead
_PLAN, _COPY, _MASK = range(3)  # purposes of random generators, so that their streams differ


@dataclass
class Batch:
    """Utterances padded with zeros to a common length.

    Attributes:
        ids: ids of all utterances of the batch, even if the arrays hold only one shard of them (the part of
            one replica in distributed training).
        features: (batch, frames, bins) float32.
        teacher_features: the same utterances without masks in the features of a teacher, (batch, its frames,
            its bins) float32; None without a teacher.
        teacher_lengths: (batch,) int32, valid frames of these; None without a teacher.
        feature_lengths: (batch,) int32, valid frames.
        labels: (batch, labels) int32.
        label_lengths: (batch,) int32, valid labels.
    """

    ids: list[str]
    features: np.ndarray
    feature_lengths: np.ndarray
    labels: np.ndarray
    label_lengths: np.ndarray
    teacher_features: np.ndarray | None = None
    teacher_lengths: np.ndarray | None = None


@dataclass(frozen=True)
class BatchSize:
    """The common size to which all shards of a batch are padded: frames up to a ``FRAME_MULTIPLE``."""

    frames: int
    bins: int
    labels: int
    teacher_frames: int = 0
    teacher_bins: int = 0


def plan_batches(
    frames: np.ndarray,
    *,
    batch_frames: int,
    max_batch: int,
    seed: int,
    epoch: int,
    shuffle: bool,
    frame_multiple: int = FRAME_MULTIPLE,
) -> list[np.ndarray]:
    """Group utterances of similar length.

    Shuffled: chunks of a random order are sorted by length and divided into batches, which are then
    shuffled. There is little padding, and the groups differ between epochs. Not shuffled: the longest
    utterances come first, so that a lack of memory shows at once.

    Args:
        frames: (utterances,) lengths.
        batch_frames: largest number of frames in a batch, padding included; a longer utterance forms a
            batch of its own.
        max_batch: largest number of utterances in a batch.
        seed: seed of the order.
        epoch: other epochs have other orders.
        shuffle: False for evaluation.
        frame_multiple: padded lengths are multiples of this.

    Returns:
        Arrays of indices into ``frames``, int64; every utterance is in exactly one.
    """
    padded = -(-np.asarray(frames, np.int64) // frame_multiple) * frame_multiple
    if not shuffle:
        return _divide(np.argsort(-padded, kind="stable"), padded, batch_frames, max_batch)
    rng = np.random.default_rng([seed, epoch, _PLAN])
    order = rng.permutation(len(padded))
    usual_batch = min(max_batch, int(batch_frames / max(padded.sum() / max(len(padded), 1), 1)))
    chunk_size = _BATCHES_PER_CHUNK * max(1, usual_batch)
    for number, start in enumerate(range(0, len(order), chunk_size)):
        chunk = order[start : start + chunk_size]
        # Every other chunk is sorted in descending order: where two meet, the lengths are similar.
        direction = -1 if number % 2 else 1
        order[start : start + chunk_size] = chunk[np.argsort(direction * padded[chunk], kind="stable")]
    batches = _divide(order, padded, batch_frames, max_batch)
    return [batches[i] for i in rng.permutation(len(batches))]


def make_batch(
    ids: Sequence[str],
    features: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    size: BatchSize,
    teacher_features: Sequence[np.ndarray] | None = None,
) -> Batch:
    """Pad utterances to one batch.

    Args:
        ids: ids of all utterances of the batch.
        features: (frames, bins) each, of any float type; of one shard of the batch, perhaps of none.
        labels: (labels,) integers each.
        size: size of the whole batch.
        teacher_features: (its frames, its bins) each, those for a teacher.
    """
    lengths = np.array([len(item) for item in features], np.int32)
    label_lengths = np.array([len(item) for item in labels], np.int32)
    padded_labels = pad_rows(labels, max(1, int(size.labels)))
    first = _pad(features, size.frames, size.bins)
    for_teacher = teacher_lengths = None
    if teacher_features is not None:
        for_teacher = _pad(teacher_features, size.teacher_frames, size.teacher_bins)
        teacher_lengths = np.array([len(item) for item in teacher_features], np.int32)
    return Batch(list(ids), first, lengths, padded_labels, label_lengths, for_teacher, teacher_lengths)


def _pad(features: Sequence[np.ndarray], frames: int, bins: int) -> np.ndarray:
    frames = -(-int(frames) // FRAME_MULTIPLE) * FRAME_MULTIPLE
    return pad_rows(features, frames, dtype=np.float32, inner=(bins,))


@dataclass(frozen=True)
class _EpochPlan:
    """What an epoch reads; an utterance that it reads twice has two entries.

    Attributes:
        utterances: (entries,) int64, index of each entry's utterance.
        copies: (entries,) int64, number of the augmented copy; 0 is the recording itself.
        frames: (entries,) int32, length of this copy.
        batches: indices of the entries of each batch.
        buckets: the bucket of each batch; empty without buckets.
    """

    utterances: np.ndarray
    copies: np.ndarray
    frames: np.ndarray
    batches: list[np.ndarray]
    buckets: Sequence[int] = ()


@dataclass(frozen=True)
class BatchSource:
    """Batches of a set of utterances, epoch by epoch.

    Attributes:
        cache: holds the features of all of them. With ``shuffle``, an epoch uses one of the
            1 + ``cache.copies`` copies of each utterance at random, else the recording itself.
        utterances: an utterance that occurs twice is read twice per epoch.
        labels: (labels,) int32 each, in the order of the utterances.
        batch_frames: largest number of padded frames in a batch.
        max_batch: largest number of utterances in a batch.
        seed: seed of order, copies and masks.
        shuffle: True for training.
        spec_augment: masks over the features; None for none.
        buckets: number of shapes of the batches (`data.batches.buckets`); 0: as little padding as possible.
        mixture: the corpora of which ``utterances`` consists, in their order; an epoch reads each as often
            as its weight specifies. Empty: every utterance once.
        teacher_cache: the same copies in the features of a teacher; None: no teacher.
        readers: threads that read features; more than 1 where each read waits for a network.
    """

    cache: FeatureCache
    utterances: Sequence[Utterance]
    labels: Sequence[np.ndarray]
    batch_frames: int
    max_batch: int
    seed: int = 0
    shuffle: bool = False
    spec_augment: SpecAugmentConfig | None = None
    buckets: int = 0
    mixture: Sequence[WeightedCorpus] = ()
    teacher_cache: FeatureCache | None = None
    readers: int = 1
    _frames: np.ndarray = field(init=False, repr=False)  # (utterances, 1 + copies) int32
    _buckets: Buckets | None = field(init=False, repr=False, default=None)

    def __post_init__(self):
        if len(self.utterances) != len(self.labels):
            raise ValueError(f"{len(self.utterances)} utterances, but labels for {len(self.labels)}")
        mixed = sum(corpus.utterances for corpus in self.mixture)
        if self.mixture and mixed != len(self.utterances):
            raise ValueError(f"{len(self.utterances)} utterances, but a mixture of {mixed}")
        rows = self.cache.rows([utterance.id for utterance in self.utterances])
        object.__setattr__(self, "_frames", self.cache.frame_counts[rows])
        if self.buckets:
            counts, limits = [len(item) for item in self.labels], (self.batch_frames, self.max_batch)
            buckets = Buckets.of(self._frames, counts, self.buckets, *limits, FRAME_MULTIPLE)
            object.__setattr__(self, "_buckets", buckets)

    @property
    def utterance_count(self) -> int:
        """Number of utterances."""
        return len(self.utterances)

    def steps(self, epoch: int) -> int:
        """Number of batches in an epoch."""
        return len(self._plan(epoch).batches)

    def batches(self, epoch: int, first_step: int = 0, shard: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """An epoch's batches from ``first_step`` on, prepared ahead by a thread.

        Args:
            epoch: counted from 1.
            first_step: counted from 0.
            shard: (index, count): of each batch, only the utterances of replica ``index`` of ``count`` are
                returned, and only their features are read. Row i of a batch is in shard i % count. All
                shards have the padded lengths of the whole batch, and one may be empty.

        Raises:
            ValueError: the index is not below the count.
        """
        index, count = shard
        if not 0 <= index < count:
            raise ValueError(f"there is no shard {index} of {count}")
        return prefetch(self.epoch_batches(epoch, first_step, slice(index, None, count)), PREFETCHED)

    def _plan(self, epoch: int) -> _EpochPlan:
        utterances = np.arange(len(self.utterances))
        if self.mixture:
            utterances = epoch_indices(self.mixture, self.seed, epoch)
        copies = np.zeros(len(utterances), np.int64)
        if self.shuffle and self.cache.copies:
            rng = np.random.default_rng([self.seed, epoch, _COPY])
            copies = rng.integers(self.cache.copies + 1, size=len(utterances))
        frames = self._frames[utterances, copies]
        if self._buckets:
            rng = np.random.default_rng([self.seed, epoch, _PLAN]) if self.shuffle else None
            return _EpochPlan(utterances, copies, frames, *self._buckets.plan(frames, rng))
        return _EpochPlan(
            utterances,
            copies,
            frames,
            batches=plan_batches(
                frames,
                batch_frames=self.batch_frames,
                max_batch=self.max_batch,
                seed=self.seed,
                epoch=epoch,
                shuffle=self.shuffle,
            ),
        )

    def epoch_batches(self, epoch: int, first_step: int, shard: slice) -> Iterator[Batch]:
        """As :meth:`batches`, each prepared when it is asked for; a shard is a slice of the rows."""
        plan = self._plan(epoch)
        with thread_pool(self.readers) as pool:
            apply = pool.map if self.readers > 1 else map
            for step in range(first_step, len(plan.batches)):
                entries, size = plan.batches[step], self._size(plan, step)
                ids = [self.utterances[i].id for i in plan.utterances[entries]]
                rows = entries[shard].tolist()
                features = list(apply(partial(self._features, plan, epoch), rows))
                teacher = None
                if self.teacher_cache:
                    teacher = list(apply(partial(self._teacher_features, plan), rows))
                labels = [self.labels[i] for i in plan.utterances[entries[shard]]]
                yield make_batch(ids, features, labels, size, teacher)

    def _size(self, plan: _EpochPlan, step: int) -> BatchSize:
        entries = plan.batches[step]
        if self._buckets:
            bucket = plan.buckets[step]
            frames, labels = self._buckets.frames[bucket], self._buckets.labels[bucket]
        else:
            frames = plan.frames[entries].max()
            labels = max(len(self.labels[i]) for i in plan.utterances[entries])
        if not self.teacher_cache:
            return BatchSize(frames, self.cache.bins, labels)
        ids = [self.utterances[i].id for i in plan.utterances[entries]]
        counts = self.teacher_cache.frame_counts[self.teacher_cache.rows(ids), plan.copies[entries]]
        return BatchSize(frames, self.cache.bins, labels, counts.max(), self.teacher_cache.bins)

    def _features(self, plan: _EpochPlan, epoch: int, entry: int) -> np.ndarray:
        """(frames, bins), masked if so configured."""
        utterance = self.utterances[plan.utterances[entry]]
        features = self.cache.features(utterance.id, int(plan.copies[entry]))
        if self.spec_augment is None:
            return features
        rng = np.random.default_rng([self.seed, epoch, _MASK, entry])
        return spec_augment(features.astype(np.float32), rng, self.spec_augment)

    def _teacher_features(self, plan: _EpochPlan, entry: int) -> np.ndarray:
        """(frames, bins of the teacher) of the same copy, without masks."""
        utterance = self.utterances[plan.utterances[entry]]
        assert self.teacher_cache
        return self.teacher_cache.features(utterance.id, int(plan.copies[entry]))


def _divide(order: np.ndarray, padded: np.ndarray, batch_frames: int, max_batch: int) -> list[np.ndarray]:
    """Divide an order of utterances into batches within both limits."""
    starts, longest = [0] if len(order) else [], 0
    for position, length in enumerate(padded[order].tolist()):
        longest = max(longest, length)
        size = position - starts[-1] + 1
        if size > 1 and (size > max_batch or size * longest > batch_frames):
            starts.append(position)
            longest = length
    return np.split(order, starts[1:]) if starts else []
