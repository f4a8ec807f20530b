"""data/batches/mixture.py: every weight is kept to the utterance, in each epoch and over all of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.batches.mixture import CorpusShare, epoch_entries

SHARES = st.lists(
    st.builds(CorpusShare, st.integers(0, 40), st.floats(0.01, 4.0)),
    min_size=1,
    max_size=4,
)


def counts(shares: list[CorpusShare], seed: int, epochs: range) -> np.ndarray:
    """How often each utterance is read in these epochs, (utterances,)."""
    entries = [epoch_entries(shares, seed, epoch) for epoch in epochs]
    return np.bincount(np.concatenate(entries), minlength=sum(share.utterances for share in shares))


@settings(max_examples=80, deadline=None)
@given(SHARES, st.integers(0, 9), st.integers(1, 12))
def test_at_any_time_the_utterances_of_a_corpus_were_read_equally_often(shares, seed, epochs):
    seen = counts(shares, seed, range(1, epochs + 1))
    assert len(seen) == sum(share.utterances for share in shares)
    for share in shares:
        own, seen = seen[: share.utterances], seen[share.utterances :]
        assert own.sum() == sum(share.entries(epoch) for epoch in range(1, epochs + 1))
        assert abs(own.sum() - epochs * share.weight * share.utterances) <= 0.5
        assert share.utterances == 0 or own.max() - own.min() <= 1


def test_weight_one_is_every_utterance_once_in_order():
    assert epoch_entries([CorpusShare(3), CorpusShare(2)], seed=1, epoch=5).tolist() == [0, 1, 2, 3, 4]


def test_whole_weights_repeat():
    assert epoch_entries([CorpusShare(2, 3.0), CorpusShare(1)], 0, 4).tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_a_quarter_is_another_one_in_each_epoch_and_all_in_four():
    quarters = [set(epoch_entries([CorpusShare(100, 0.25)], 0, epoch).tolist()) for epoch in range(1, 9)]
    assert [len(quarter) for quarter in quarters] == [25] * 8
    assert set.union(*quarters[:4]) == set.union(*quarters[4:]) == set(range(100))
    assert len({frozenset(quarter) for quarter in quarters}) == 8


def test_two_and_a_half_passes():
    (first, second) = (Counter(epoch_entries([CorpusShare(10, 2.5)], 0, epoch).tolist()) for epoch in (1, 2))
    assert sorted(first.values()) == sorted(second.values()) == [2] * 5 + [3] * 5
    assert all(first[i] + second[i] == 5 for i in range(10))


def test_the_parts_depend_on_seed_epoch_and_corpus_alone():
    shares = [CorpusShare(50, 0.5), CorpusShare(50, 0.5)]
    one = epoch_entries(shares, 3, 7)
    np.testing.assert_array_equal(epoch_entries(shares, 3, 7), one)
    assert not np.array_equal(epoch_entries(shares, 4, 7), one)
    assert not np.array_equal(one[one < 50], one[one >= 50] - 50)
    # What stands beside a corpus doesn't change its part.
    np.testing.assert_array_equal(epoch_entries([shares[0], CorpusShare(9, 2.0)], 3, 7)[:25], one[:25])


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 0.7])
def test_nothing_gets_lost_by_rounding(weight):
    share = CorpusShare(7, weight)
    assert sum(share.entries(epoch) for epoch in range(1, 1001)) == round(7 * weight * 1000)
