"""Tests of data/batches/mixture.py: weights hold exactly, in each epoch and over all epochs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from data.batches.mixture import WeightedCorpus, epoch_indices

CORPORA = st.lists(
    st.builds(WeightedCorpus, st.integers(0, 40), st.floats(0.01, 4.0)),
    min_size=1,
    max_size=4,
)


def counts(corpora: list[WeightedCorpus], seed: int, epochs: range) -> np.ndarray:
    """How often each utterance is read in these epochs, (utterances,)."""
    indices = [epoch_indices(corpora, seed, epoch) for epoch in epochs]
    return np.bincount(np.concatenate(indices), minlength=sum(corpus.utterances for corpus in corpora))


@settings(max_examples=80)
@given(CORPORA, st.integers(0, 9), st.integers(1, 12))
def test_at_any_time_the_utterances_of_a_corpus_were_read_equally_often(corpora, seed, epochs):
    seen = counts(corpora, seed, range(1, epochs + 1))
    assert len(seen) == sum(corpus.utterances for corpus in corpora)
    for corpus in corpora:
        own, seen = seen[: corpus.utterances], seen[corpus.utterances :]
        assert own.sum() == sum(corpus.count(epoch) for epoch in range(1, epochs + 1))
        assert abs(own.sum() - epochs * corpus.weight * corpus.utterances) <= 0.5
        assert corpus.utterances == 0 or own.max() - own.min() <= 1


def test_weight_one_is_every_utterance_once_in_order():
    assert epoch_indices([WeightedCorpus(3), WeightedCorpus(2)], seed=1, epoch=5).tolist() == [0, 1, 2, 3, 4]


def test_the_parts_depend_on_seed_epoch_and_corpus_alone():
    corpora = [WeightedCorpus(50, 0.5), WeightedCorpus(50, 0.5)]
    first = epoch_indices(corpora, 3, 7)
    np.testing.assert_array_equal(epoch_indices(corpora, 3, 7), first)
    assert not np.array_equal(epoch_indices(corpora, 4, 7), first)
    assert not np.array_equal(first[first < 50], first[first >= 50] - 50)
    # Other corpora don't change the part of a corpus.
    np.testing.assert_array_equal(epoch_indices([corpora[0], WeightedCorpus(9, 2.0)], 3, 7)[:25], first[:25])
