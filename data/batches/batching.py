"""Forms padded batches of utterances of similar length from cached features and labels, epoch by epoch.

The same seed and epoch give the same batches, and an epoch can be entered at any step, as a resumed run does:
which copy of a recording is used, and which of its features are masked, depends on (seed, epoch, utterance),
not on the batches before. A thread prepares the next batches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

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
_PLAN, _COPY, _MASK, _SPLICE = range(4)  # purposes of random generators, so that their streams differ


@dataclass
class Batch:
    """Utterances padded with zeros to a common length.

    Attributes:
        ids: ids of all utterances of the batch, even if the arrays hold only one shard of them (the part of
            one replica in distributed training).
        features: (batch, frames, bins) float32.
        teacher_classes, teacher_probabilities: the most probable classes of a teacher in each logit frame,
            (batch, logit frames, classes) int32, and their probabilities, float32; None without a teacher.
        feature_lengths: (batch,) int32, valid frames.
        labels: (batch, labels) int32.
        label_lengths: (batch,) int32, valid labels.
    """

    ids: list[str]
    features: np.ndarray
    feature_lengths: np.ndarray
    labels: np.ndarray
    label_lengths: np.ndarray
    teacher_classes: np.ndarray | None = None
    teacher_probabilities: np.ndarray | None = None


@dataclass(frozen=True)
class BatchSize:
    """The common size to which all shards of a batch are padded: frames up to a ``FRAME_MULTIPLE``."""

    frames: int
    bins: int
    labels: int


class Targets(Protocol):
    """What a teacher gives for each logit frame of the model that learns."""

    @property
    def time_stride(self) -> int:
        """Feature frames for each logit frame."""

    @property
    def count(self) -> int:
        """Classes in each logit frame."""

    def targets(self, utterance: str, copy: int, frames: int) -> tuple[np.ndarray, np.ndarray]:
        """Classes (frames, count) int32 of a copy of an utterance, and their probabilities, float32."""


@dataclass(frozen=True)
class Example:
    """An utterance of a batch.

    Attributes:
        features: (frames, bins) of any float type.
        labels: (labels,) integers.
        classes, probabilities: a teacher's targets, (logit frames, classes) each; empty without a teacher.
    """

    features: np.ndarray
    labels: np.ndarray
    classes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    probabilities: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))


class Splicer(Protocol):
    """Splices some of the utterances of a training."""

    @property
    def fraction(self) -> float:
        """Fraction of the utterances."""

    def splice(
        self, first: Example, second: Example, frames: int, labels: int, rng: np.random.Generator
    ) -> Example:
        """The beginning of ``first`` and the end of ``second``: at most so many frames and labels."""


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
) -> Batch:
    """Pad utterances to one batch.

    Args:
        ids: ids of all utterances of the batch.
        features: (frames, bins) each, of any float type; of one shard of the batch, perhaps of none.
        labels: (labels,) integers each.
        size: size of the whole batch.
    """
    lengths = np.array([len(item) for item in features], np.int32)
    label_lengths = np.array([len(item) for item in labels], np.int32)
    padded_labels = pad_rows(labels, max(1, int(size.labels)))
    frames = -(-int(size.frames) // FRAME_MULTIPLE) * FRAME_MULTIPLE
    padded = pad_rows(features, frames, dtype=np.float32, inner=(size.bins,))
    return Batch(list(ids), padded, lengths, padded_labels, label_lengths)


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
        teacher: gives targets for the same copies; None: no teacher.
        splicer: splices utterances of a speaker, with ``teacher``; None: none are spliced.
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
    teacher: Targets | None = None
    splicer: Splicer | None = None
    readers: int = 1
    _frames: np.ndarray = field(init=False, repr=False)  # (utterances, 1 + copies) int32
    _buckets: Buckets | None = field(init=False, repr=False, default=None)
    _of_speaker: dict[str, list[int]] = field(init=False, repr=False, default_factory=dict)

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
        for index, utterance in enumerate(self.utterances if self.splicer else ()):
            self._of_speaker.setdefault(utterance.speaker, []).append(index)

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
                examples = list(apply(partial(self._example, plan, epoch, size), rows))
                yield self._batch(ids, examples, size)

    def _size(self, plan: _EpochPlan, step: int) -> BatchSize:
        entries = plan.batches[step]
        if self._buckets:
            bucket = plan.buckets[step]
            frames, labels = self._buckets.frames[bucket], self._buckets.labels[bucket]
        else:
            frames = plan.frames[entries].max()
            labels = max(len(self.labels[i]) for i in plan.utterances[entries])
        return BatchSize(frames, self.cache.bins, labels)

    def _example(self, plan: _EpochPlan, epoch: int, size: BatchSize, entry: int) -> Example:
        """What a batch has of an entry: spliced, then masked, if so configured."""
        utterance = int(plan.utterances[entry])
        example = self._read(utterance, int(plan.copies[entry]))
        if self.splicer:
            rng = np.random.default_rng([self.seed, epoch, _SPLICE, entry])
            if rng.random() < self.splicer.fraction:
                other = int(rng.choice(self._of_speaker[self.utterances[utterance].speaker]))
                copy = int(rng.integers(1 + self.cache.copies))
                example = self.splicer.splice(example, self._read(other, copy), size.frames, size.labels, rng)
        if self.spec_augment is None:
            return example
        rng = np.random.default_rng([self.seed, epoch, _MASK, entry])
        masked = spec_augment(example.features.astype(np.float32), rng, self.spec_augment)
        return replace(example, features=masked)

    def _read(self, utterance: int, copy: int) -> Example:
        """A copy of an utterance, with the targets of the teacher."""
        name = self.utterances[utterance].id
        features, labels = self.cache.features(name, copy), self.labels[utterance]
        if self.teacher is None:
            return Example(features, labels)
        frames = -(-len(features) // self.teacher.time_stride)
        return Example(features, labels, *self.teacher.targets(name, copy, frames))

    def _batch(self, ids: Sequence[str], examples: Sequence[Example], size: BatchSize) -> Batch:
        batch = make_batch(
            ids, [each.features for each in examples], [each.labels for each in examples], size
        )
        if self.teacher:
            length, inner = -(-batch.features.shape[1] // self.teacher.time_stride), (self.teacher.count,)
            batch.teacher_classes = pad_rows([each.classes for each in examples], length, inner=inner)
            batch.teacher_probabilities = pad_rows(
                [each.probabilities for each in examples], length, dtype=np.float32, inner=inner
            )
        return batch


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
