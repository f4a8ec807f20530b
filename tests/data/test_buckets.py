"""Tests of batches of few shapes: least padding, every utterance once, full batches."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.batches.buckets import Buckets, least_padding


def padding(lengths: np.ndarray, edges: np.ndarray) -> int:
    return int((edges[np.searchsorted(edges, lengths)] - lengths).sum())


@settings(max_examples=60)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.integers(1, 4))
def test_no_other_limits_need_less_padding(lengths, buckets):
    lengths = np.array(lengths)
    edges = least_padding(lengths, buckets)
    assert len(edges) <= buckets
    assert edges[-1] == lengths.max()
    values = np.unique(lengths)
    others = combinations(values[:-1], min(buckets, len(values)) - 1)
    assert padding(lengths, edges) == min(
        padding(lengths, np.array([*other, values[-1]])) for other in others
    )


def planned(rng: np.random.Generator | None) -> tuple[Buckets, np.ndarray, np.ndarray, tuple]:
    frames = np.random.default_rng(1).integers(20, 900, size=(333, 3))
    labels = frames.min(axis=1) // 20
    buckets = Buckets.of(frames, labels, buckets=4, batch_frames=5000, max_batch=40, multiple=16)
    own = frames[:, 1]
    return buckets, own, labels, buckets.plan(own, rng)


def test_batches_of_a_bucket_have_one_shape_within_the_limits():
    buckets, frames, labels, (batches, bucket_of) = planned(np.random.default_rng(0))
    assert len(buckets.frames) == 4
    for batch, bucket in zip(batches, bucket_of, strict=True):
        assert len(batch) == buckets.rows[bucket] <= 40
        assert frames[batch].max() <= buckets.frames[bucket]
        assert len(batch) * buckets.frames[bucket] <= 5000
        assert labels[batch].max() <= buckets.labels[bucket]
    seen = np.concatenate(batches)
    assert set(seen.tolist()) == set(range(333))
    assert len(seen) - 333 < buckets.rows[-1]  # the last batch is filled with utterances drawn again


def test_in_evaluation_each_utterance_is_read_once_and_the_longest_first():
    buckets, frames, _, (batches, bucket_of) = planned(None)
    assert sorted(np.concatenate(batches).tolist()) == list(range(333))
    assert bucket_of == sorted(bucket_of, reverse=True)
    assert frames[batches[0]].max() > buckets.frames[-2]


@pytest.mark.parametrize("length", [7, 5001])
def test_a_single_utterance_is_a_batch(length):
    frames = np.array([[length]])
    buckets = Buckets.of(frames, [0], buckets=3, batch_frames=5000, max_batch=4, multiple=16)
    assert buckets.labels.tolist() == [1]
    batches, _ = buckets.plan(frames[:, 0], np.random.default_rng(0))
    assert [len(batch) for batch in batches] == buckets.rows.tolist()
