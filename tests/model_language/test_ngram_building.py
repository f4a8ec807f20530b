"""Tests of building packed n-grams in one call: equal to the single steps; invalid settings."""

import logging

import numpy as np
import pytest

from model_language.ngram.kneser_ney import count_ngrams, estimate_counted, occurrences
from model_language.ngram.packed import PackedNgrams, build_packed, pack
from model_language.ngram.pruning import prune_to
from tests.support.made_up_text import made_up_text
from utils.errors import ConfigError, TrainingError

SIZE = 40


@pytest.fixture(scope="module")
def text() -> np.ndarray:
    return made_up_text(8000, SIZE, seed=7)


@pytest.mark.parametrize("order", [2, 4])
def test_one_call_equals_the_single_steps(text, order, caplog):
    caplog.set_level(logging.INFO, "train")
    found = build_packed(text, SIZE, order, 900)
    grams = count_ngrams(text, order, SIZE)
    expected = pack(prune_to(estimate_counted(grams), occurrences(grams), 900))
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert 900 <= PackedNgrams(found).ngrams < 960
    assert [line.split()[0] for line in caplog.messages] == ["counted", "kept", "packed"]
    assert f"{SIZE} 1-grams, {len(grams[1].keys):,} 2-grams" in caplog.messages[0]


@pytest.mark.parametrize("ngrams", [1, 10**6])
def test_any_number_of_ngrams(text, ngrams):
    packed = PackedNgrams(build_packed(text, SIZE, 4, ngrams))
    assert packed.ngrams >= min(ngrams, 2000)
    histories = np.zeros((1, packed.history), np.int32)
    assert np.exp(packed.log_probs(histories, np.arange(SIZE)[None])).sum() == pytest.approx(1, abs=0.1)


def test_lines_may_be_shorter_than_the_longest_ngrams():
    packed = PackedNgrams(build_packed(np.array([0, 2, 0, 3, 0, 2, 0]), 5, 4, 100))
    two, three = packed.log_probs(np.zeros((1, packed.history), np.int32), np.array([[2, 3]]))[0]
    assert two > three


@pytest.mark.parametrize("order", [1, 11])
def test_orders_that_are_not_possible_are_named(text, order):
    with pytest.raises(ConfigError, match=rf"order {order} .*model\.order"):
        build_packed(text, SIZE, order, 100)


def test_no_ngrams_or_no_text_is_an_error(text):
    with pytest.raises(ConfigError, match=r"0 n-grams.*model\.ngrams"):
        build_packed(text, SIZE, 3, 0)
    for nothing in (np.zeros(0, np.int32), np.zeros(3, np.int32)):
        with pytest.raises(TrainingError, match="no training text"):
            build_packed(nothing, SIZE, 3, 100)
