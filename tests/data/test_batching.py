"""Tests of batching: every utterance once, within limits, the same from any step of an epoch."""

import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.batches.batching import (
    FRAME_MULTIPLE,
    BatchSource,
    Example,
    plan_batches,
)
from data.batches.mixture import WeightedCorpus
from data.features.augment import AugmentConfig
from data.features.cache import FeatureCache, prepare_features
from data.features.spec_augment import SpecAugmentConfig
from data.manifest import Utterance
from utils.audio.samples import write_wav
from utils.features.settings import FeatureConfig
from utils.processes import prefetch

LIMITS = {"batch_frames": 3000, "max_batch": 16}


def lengths(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(20, 1200, size=count)


def plan(
    frames: np.ndarray, epoch: int = 1, seed: int = 0, shuffle: bool = True, **limits
) -> list[list[int]]:
    batches = plan_batches(frames, **LIMITS | limits, seed=seed, epoch=epoch, shuffle=shuffle)
    return [batch.tolist() for batch in batches]


def padded(frames: np.ndarray, batch: list[int]) -> int:
    longest = int(frames[batch].max())
    return len(batch) * (longest + -longest % FRAME_MULTIPLE)


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 4000), max_size=300),
    st.integers(1, 5000),
    st.integers(1, 40),
    st.integers(0, 99),
    st.booleans(),
)
def test_every_utterance_once_within_both_limits(frames, batch_frames, max_batch, seed, shuffle):
    frames = np.array(frames, int)
    batches = plan(frames, seed=seed, shuffle=shuffle, batch_frames=batch_frames, max_batch=max_batch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(frames)))
    for batch in batches:
        assert 1 <= len(batch) <= max_batch
        assert len(batch) == 1 or padded(frames, batch) <= batch_frames


def test_the_plan_depends_on_seed_and_epoch_alone():
    frames = lengths(500)
    assert plan(frames, 3, 7) == plan(frames, 3, 7)
    assert plan(frames, 3, 7) != plan(frames, 4, 7)
    assert plan(frames, 3, 7) != plan(frames, 3, 8)


@pytest.mark.parametrize("count", [300, 5000])
def test_the_fraction_of_padding_is_small(count):
    frames = lengths(count)
    share = frames.sum() / sum(padded(frames, batch) for batch in plan(frames))
    assert share > 0.9
    in_order = np.arange(count)[: count // 16 * 16].reshape(-1, 16)
    assert share > frames[in_order].sum() / sum(padded(frames, batch) for batch in in_order.tolist()) + 0.3


def test_not_shuffled_is_longest_first():
    frames = np.array([100, 300, 200, 300, 16])
    assert plan(frames, shuffle=False, batch_frames=608) == [[1, 3], [2, 0], [4]]
    assert plan(frames, 1, shuffle=False) == plan(frames, 2, shuffle=False)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> tuple:
    """(cache with 2 copies, utterances, labels) of 30 recordings; label n belongs to utterance n."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    utterances = []
    for index in range(30):
        path = folder / f"u{index}.wav"
        write_wav(path, 0.1 * np.random.default_rng(index).normal(size=1600 + 640 * index))
        utterances.append(Utterance(f"u{index}", path, 0.1, "s", ("ma1",), "妈"))
    copies = AugmentConfig(copies=2, speeds=(0.5, 2.0), noise_probability=0.0, room_probability=0.0)
    cache = prepare_features(utterances, FeatureConfig(), folder / "cache", copies, workers=1)
    return cache, utterances, [np.array([index], np.int32) for index in range(30)]


def source(corpus: tuple, **changes) -> BatchSource:
    settings = {
        "batch_frames": 400,
        "max_batch": 6,
        "seed": 3,
        "shuffle": True,
        "spec_augment": SpecAugmentConfig(),
    }
    return BatchSource(*corpus, **settings | changes)


class Teacher:
    """Its only class in each frame is the number of the utterance."""

    time_stride, count = 4, 1

    def targets(self, utterance: str, copy: int, frames: int) -> tuple[np.ndarray, np.ndarray]:
        return np.full((frames, 1), int(utterance[1:]), np.int32), np.ones((frames, 1), np.float32)


class Splicer:
    """The beginning of each is the whole of the first."""

    fraction = 0.5

    def splice(self, first: Example, second: Example, frames: int, labels: int, rng) -> Example:
        assert len(first.features) <= frames and labels == 1
        return Example(first.features, second.labels, second.classes, second.probabilities)


def assert_same(batches: list, other: list) -> None:
    assert [batch.ids for batch in batches] == [batch.ids for batch in other]
    for left, right in zip(batches, other, strict=True):
        for name in ("features", "feature_lengths", "labels", "label_lengths"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


def test_an_epoch_holds_every_utterance_with_its_own_labels(corpus):
    batches = list(source(corpus).batches(epoch=1))
    assert len(batches) == source(corpus).steps(1) > 3
    seen = [name for batch in batches for name in batch.ids]
    assert sorted(seen) == sorted(u.id for u in corpus[1])
    for batch in batches:
        assert [f"u{label}" for label in batch.labels[:, 0]] == batch.ids
        assert batch.features.shape[1] % FRAME_MULTIPLE == 0
        assert batch.features.shape[0] * batch.features.shape[1] <= 400 or len(batch.ids) == 1
        for row, length in enumerate(batch.feature_lengths):
            assert not batch.features[row, length:].any()


def test_resuming_at_any_step_gives_the_same_rest(corpus):
    whole = list(source(corpus).batches(epoch=2))
    for step in (1, 3, len(whole)):
        assert_same(list(source(corpus).batches(2, step)), whole[step:])


@pytest.mark.parametrize("count", [2, 4, 7])
def test_the_shards_of_a_batch_are_the_batch(corpus, count):
    whole = list(source(corpus).batches(1, 2))
    shards = [list(source(corpus).batches(1, 2, shard=(index, count))) for index in range(count)]
    assert (
        any(not len(shard.features) for shard in shards[-1]) or count < 7
    )  # an empty shard has the same shapes
    for step, batch in enumerate(whole):
        for index in range(count):
            shard = shards[index][step]
            assert shard.ids == batch.ids
            for name in ("features", "feature_lengths", "labels", "label_lengths"):
                np.testing.assert_array_equal(getattr(shard, name), getattr(batch, name)[index::count])


def test_a_shard_reads_its_own_features_only(corpus, monkeypatch):
    read = []
    features = FeatureCache.features

    def record(cache, name, copy=0):
        read.append(name)
        return features(cache, name, copy)

    monkeypatch.setattr(FeatureCache, "features", record)
    seen = [name for batch in source(corpus).batches(1, shard=(1, 3)) for name in batch.ids[1::3]]
    assert read == seen and 0 < len(seen) < 15
    with pytest.raises(ValueError, match="no shard 3 of 3"):
        source(corpus).batches(1, shard=(3, 3))


def test_training_uses_all_copies_and_evaluation_the_recording(corpus):
    cache, utterances, _ = corpus
    lengths_seen = {u.id: set() for u in utterances}
    for epoch in range(1, 16):
        for batch in source(corpus, spec_augment=None).batches(epoch):
            for name, length in zip(batch.ids, batch.feature_lengths, strict=True):
                lengths_seen[name].add(int(length))
    possible = {name: set(cache.frame_counts[cache.rows([name])[0]].tolist()) for name in lengths_seen}
    assert all(lengths_seen[name] <= possible[name] for name in possible)
    assert sum(lengths_seen[name] == possible[name] for name in possible) > 25
    for batch in source(corpus, shuffle=False, spec_augment=None).batches(1):
        for row, name in enumerate(batch.ids):
            recording = cache.features(name)
            np.testing.assert_array_equal(batch.features[row, : len(recording)], recording.astype(np.float32))


def threads() -> int:
    return threading.active_count()


@pytest.mark.parametrize("depth", [1, 4])
def test_prefetch_runs_ahead_but_not_too_far(depth):
    made = []

    def items():
        for item in range(50):
            made.append(item)
            yield item

    reader = prefetch(items(), depth)
    assert next(reader) == 0
    deadline = time.monotonic() + 200
    while len(made) <= depth and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    # One item was taken, `depth` items wait, and the thread holds one more.
    assert depth < len(made) <= depth + 2
    reader.close()


def test_prefetch_raises_exceptions_at_their_position():
    def items():
        yield 1
        raise KeyError("the second")

    before, reader = threads(), prefetch(items(), 4)
    assert next(reader) == 1
    with pytest.raises(KeyError, match="the second"):
        next(reader)
    assert threads() == before


def test_an_abandoned_epoch_ends_its_thread(corpus):
    before = threads()
    for _batch in source(corpus).batches(1):
        break
    deadline = time.monotonic() + 200
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threads() == before


def test_a_mixture_reads_each_corpus_in_proportion_to_its_weight(corpus):
    corpora = (WeightedCorpus(10, 0.5), WeightedCorpus(20, 2.0))
    mixed = source(corpus, mixture=corpora)
    seen = Counter(name for epoch in (1, 2) for batch in mixed.batches(epoch) for name in batch.ids)
    assert [seen[f"u{index}"] for index in range(30)] == [1] * 10 + [4] * 20
    for batch in mixed.batches(1):
        assert [f"u{label}" for label in batch.labels[:, 0]] == batch.ids
    whole = list(mixed.batches(2))
    assert len(whole) == mixed.steps(2)
    assert_same(list(mixed.batches(2, 3)), whole[3:])


def test_some_utterances_are_spliced_with_another_of_their_speaker(corpus):
    cache, utterances, labels = corpus
    utterances = [replace(each, speaker="ab"[index % 2]) for index, each in enumerate(utterances)]
    spliced = source((cache, utterances, labels), teacher=Teacher(), splicer=Splicer())
    whole = list(spliced.batches(epoch=1))
    parts = [list(spliced.batches(epoch=1, shard=(index, 2))) for index in range(2)]
    changed = 0
    for batch, *halves in zip(whole, *parts, strict=True):
        for row, name in enumerate(batch.ids):
            label = int(batch.labels[row, 0])
            changed += label != int(name[1:])
            assert label % 2 == int(name[1:]) % 2  # the same speaker
            assert (batch.teacher_classes[row, 0, 0], batch.teacher_probabilities[row, 0, 0]) == (label, 1)
            half = halves[row % 2]
            assert half.labels[row // 2].tolist() == batch.labels[row].tolist()
            np.testing.assert_array_equal(half.features[row // 2], batch.features[row])
    assert 5 < changed < 25
