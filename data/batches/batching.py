"""Cached features and encoded labels → padded batches, the same for the same seed and epoch.

An epoch can be entered at any step (a resumed run): which copy of a recording is used and where its
masks lie depend on (seed, epoch, utterance), not on the batches that came before.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from data.batches.mixture import CorpusShare, epoch_entries
from data.features.cache import FeatureCache
from data.features.spec_augment import SpecAugmentConfig, spec_augment
from data.manifest import Utterance

Item = TypeVar("Item")

FRAME_MULTIPLE = 16  # padded lengths are multiples: fewer shapes to compile for, at most 15 wasted frames
_BATCHES_A_CHUNK = 50  # utterances are sorted within so many batches' worth of shuffled ones
_PREFETCHED = 4
_PLAN, _COPY, _MASK = range(3)  # purposes of random generators, so that they don't share a stream


@dataclass
class Batch:
    """Utterances padded with zeros to a common length.

    Attributes:
        ids: of all utterances of the batch, also where the arrays hold a share of them.
        features: (batch, frames, bins) float32.
        feature_lengths: (batch,) int32, valid frames.
        labels: (batch, labels) int32.
        label_lengths: (batch,) int32, valid labels.
    """

    ids: list[str]
    features: np.ndarray
    feature_lengths: np.ndarray
    labels: np.ndarray
    label_lengths: np.ndarray


@dataclass(frozen=True)
class BatchSize:
    """What the shares of a batch are padded to."""

    frames: int
    bins: int
    labels: int


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
    """Put utterances of similar length together.

    Shuffled: chunks of a random order are sorted by length and cut into batches, whose order is then
    shuffled; little padding, and other neighbours in each epoch. Not shuffled: longest first, so that
    what doesn't fit into memory is seen at once.

    Args:
        frames: (utterances,) lengths.
        batch_frames: most frames in a batch, padding included; a longer utterance is a batch of its own.
        max_batch: most utterances in a batch.
        seed: of the order.
        epoch: other epochs, other orders.
        shuffle: False for evaluation.
        frame_multiple: what padded lengths are a multiple of.

    Returns:
        Arrays of indices into ``frames``, int64; every utterance is in exactly one.
    """
    padded = -(-np.asarray(frames, np.int64) // frame_multiple) * frame_multiple
    if not shuffle:
        return _cut(np.argsort(-padded, kind="stable"), padded, batch_frames, max_batch)
    rng = np.random.default_rng([seed, epoch, _PLAN])
    order = rng.permutation(len(padded))
    usual_batch = min(max_batch, int(batch_frames / max(padded.sum() / max(len(padded), 1), 1)))
    chunk = _BATCHES_A_CHUNK * max(1, usual_batch)
    for number, start in enumerate(range(0, len(order), chunk)):
        piece = order[start : start + chunk]
        # Every other chunk downwards: where two meet, their lengths are alike.
        direction = -1 if number % 2 else 1
        order[start : start + chunk] = piece[np.argsort(direction * padded[piece], kind="stable")]
    batches = _cut(order, padded, batch_frames, max_batch)
    return [batches[i] for i in rng.permutation(len(batches))]


def make_batch(
    ids: Sequence[str],
    features: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    frame_multiple: int = FRAME_MULTIPLE,
    whole: BatchSize | None = None,
) -> Batch:
    """Pad utterances to one batch.

    Args:
        ids: of the utterances; where these are a share of a batch, of all of it.
        features: (frames, bins) each, of any float type.
        labels: (labels,) integers each.
        frame_multiple: the batch's frames are the next multiple of this.
        whole: size of the batch that these are a share of, perhaps an empty one; None: they are all of it.
    """
    lengths = np.array([len(item) for item in features], np.int32)
    label_lengths = np.array([len(item) for item in labels], np.int32)
    whole = whole or BatchSize(lengths.max(), features[0].shape[1], label_lengths.max())
    longest = -(-int(whole.frames) // frame_multiple) * frame_multiple
    padded = np.zeros((len(features), longest, whole.bins), np.float32)
    padded_labels = np.zeros((len(features), max(1, int(whole.labels))), np.int32)
    for row, (item, target) in enumerate(zip(features, labels, strict=True)):
        padded[row, : len(item)] = item
        padded_labels[row, : len(target)] = target
    return Batch(list(ids), padded, lengths, padded_labels, label_lengths)


@dataclass(frozen=True)
class _EpochPlan:
    """What an epoch reads, entry by entry: an utterance that it reads twice has two entries.

    Attributes:
        utterances: (entries,) int64, their indices.
        copies: (entries,) int64, which of the altered copies.
        frames: (entries,) int32, of that copy.
        batches: arrays of entries.
    """

    utterances: np.ndarray
    copies: np.ndarray
    frames: np.ndarray
    batches: list[np.ndarray]


@dataclass(frozen=True)
class BatchSource:
    """Batches of a set of utterances, epoch by epoch.

    Attributes:
        cache: holds the features of all of them; where it holds altered copies, an epoch uses one of
            1 + ``cache.copies`` by chance for each utterance if ``shuffle``, else the recording itself.
        utterances: an utterance that is there twice comes twice an epoch.
        labels: (labels,) int32 each, in the order of the utterances.
        batch_frames: most padded frames in a batch.
        max_batch: most utterances in a batch.
        seed: of order, copies and masks.
        shuffle: True for training.
        spec_augment: masks over the features; None for none.
        frame_multiple: padded lengths are multiples of this.
        mixture: the corpora that ``utterances`` are made of, one after the other; an epoch reads each as
            often as its weight says. Empty: every utterance once.
    """

    cache: FeatureCache
    utterances: Sequence[Utterance]
    labels: Sequence[np.ndarray]
    batch_frames: int
    max_batch: int
    seed: int = 0
    shuffle: bool = False
    spec_augment: SpecAugmentConfig | None = None
    frame_multiple: int = FRAME_MULTIPLE
    mixture: Sequence[CorpusShare] = ()
    _frames: np.ndarray = field(init=False, repr=False)  # (utterances, 1 + copies) int32

    def __post_init__(self):
        if len(self.utterances) != len(self.labels):
            raise ValueError(f"{len(self.utterances)} utterances, but labels for {len(self.labels)}")
        mixed = sum(share.utterances for share in self.mixture)
        if self.mixture and mixed != len(self.utterances):
            raise ValueError(f"{len(self.utterances)} utterances, but a mixture of {mixed}")
        rows = self.cache.rows([utterance.id for utterance in self.utterances])
        object.__setattr__(self, "_frames", self.cache.frame_counts[rows])

    def steps(self, epoch: int) -> int:
        """Number of batches in an epoch."""
        return len(self._plan(epoch).batches)

    def batches(self, epoch: int, first_step: int = 0, share: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """An epoch's batches from ``first_step`` (counted from 0) on, prepared ahead by a thread.

        Args:
            epoch: counted from 1.
            first_step: of the epoch's ``steps``.
            share: (index, count): of each batch only the utterances of replica ``index`` of ``count``, and
                only their features are read. Together the shares are the batch, row i in share
                i % count; all have its padded lengths, and one may be empty.
        """
        index, count = share
        if not 0 <= index < count:
            raise ValueError(f"there is no share {index} of {count}")
        return prefetch(self._batches(epoch, first_step, slice(index, None, count)), _PREFETCHED)

    def _plan(self, epoch: int) -> _EpochPlan:
        entries = np.arange(len(self.utterances))
        if self.mixture:
            entries = epoch_entries(self.mixture, self.seed, epoch)
        copies = np.zeros(len(entries), np.int64)
        if self.shuffle and self.cache.copies:
            copies = np.random.default_rng([self.seed, epoch, _COPY]).integers(
                self.cache.copies + 1, size=len(entries)
            )
        frames = self._frames[entries, copies]
        batches = plan_batches(
            frames,
            batch_frames=self.batch_frames,
            max_batch=self.max_batch,
            seed=self.seed,
            epoch=epoch,
            shuffle=self.shuffle,
            frame_multiple=self.frame_multiple,
        )
        return _EpochPlan(entries, copies, frames, batches)

    def _batches(self, epoch: int, first_step: int, share: slice) -> Iterator[Batch]:
        plan = self._plan(epoch)
        for entries in plan.batches[first_step:]:
            whole = BatchSize(
                frames=plan.frames[entries].max(),
                bins=self.cache.bins,
                labels=max(len(self.labels[i]) for i in plan.utterances[entries]),
            )
            ids = [self.utterances[i].id for i in plan.utterances[entries]]
            mine = entries[share]
            features = [self._features(plan, int(entry), epoch) for entry in mine]
            labels = [self.labels[i] for i in plan.utterances[mine]]
            yield make_batch(ids, features, labels, self.frame_multiple, whole)

    def _features(self, plan: _EpochPlan, entry: int, epoch: int) -> np.ndarray:
        """(frames, bins), masked if so configured."""
        utterance = self.utterances[plan.utterances[entry]]
        features = self.cache.features(utterance.id, int(plan.copies[entry]))
        if self.spec_augment is None:
            return features
        rng = np.random.default_rng([self.seed, epoch, _MASK, entry])
        return spec_augment(features.astype(np.float32), rng, self.spec_augment)


def prefetch(items: Iterable[Item], depth: int) -> Iterator[Item]:
    """Iterate over ``items`` in a thread, at most ``depth`` items ahead.

    An exception in ``items`` is raised here, at its place in the order; closing this generator (or
    leaving it to be collected) ends the thread.
    """
    ready: queue.Queue = queue.Queue(depth)
    stopped = threading.Event()
    thread = threading.Thread(target=_fill, args=(items, ready, stopped), daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
        thread.join()


_END = object()


def _fill(items: Iterable[Item], ready: queue.Queue, stopped: threading.Event) -> None:
    """Put (item, None) for each item, then (end, None), or (None, error)."""
    try:
        for item in items:
            _put((item, None), ready, stopped)
            if stopped.is_set():
                return
        _put((_END, None), ready, stopped)
    except BaseException as error:
        _put((None, error), ready, stopped)


def _put(entry: tuple, ready: queue.Queue, stopped: threading.Event) -> None:
    """Wait for a place, but not for a reader that has gone."""
    while not stopped.is_set():
        try:
            return ready.put(entry, timeout=0.1)
        except queue.Full:
            continue


def _cut(order: np.ndarray, padded: np.ndarray, batch_frames: int, max_batch: int) -> list[np.ndarray]:
    """Cut an order of utterances into batches within both limits."""
    starts, longest = [0] if len(order) else [], 0
    for place, length in enumerate(padded[order].tolist()):
        longest = max(longest, length)
        size = place - starts[-1] + 1
        if size > 1 and (size > max_batch or size * longest > batch_frames):
            starts.append(place)
            longest = length
    return np.split(order, starts[1:]) if starts else []
