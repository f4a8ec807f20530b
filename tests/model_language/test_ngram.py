"""Tests of Kneser–Ney estimates against a naive reference and sums to 1, and of the conversion with them."""

import math
from collections import Counter

import numpy as np
import pytest

from model_language.converters.ngram import NgramConfig, NgramConverter, NgramModel
from model_language.converters.user_word_converter import UserWordConverter
from model_language.ngram.kneser_ney import estimate
from model_language.search.user_words import UserWords
from model_language.vocabulary.lexicon import UNREADABLE
from model_language.vocabulary.symbols import Symbols, build_symbols
from tests.support.music_pairs import PAIRS as MUSIC
from utils.errors import ConfigError, RunError, TrainingError

PAIRS = [*MUSIC, (("wo3", "de5", "yue4", "qi4"), "我的乐器")]


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    return build_symbols(PAIRS)


@pytest.fixture(scope="module")
def converter(symbols) -> NgramConverter:
    return NgramConverter(NgramModel.train(PAIRS, NgramConfig(), symbols), symbols, beam=16)


def _model(ids: list[int], order: int, size: int) -> NgramModel:
    return NgramModel(estimate(np.array(ids), order, size), size, np.zeros((1, 1), np.float32))


def _random_text(seed: int, sentences: int, size: int) -> list[int]:
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, size - 1)
    text = [0]
    for _ in range(sentences):
        text += [
            int(i) for i in rng.choice(np.arange(2, size), rng.integers(1, 7), p=weights / weights.sum())
        ] + [0]
    return text


@pytest.mark.parametrize("order", [2, 3, 4])
def test_probabilities_sum_to_one_over_the_vocabulary(order):
    size = 40
    model = _model(_random_text(1, 400, size), order, size)
    rng = np.random.default_rng(2)
    histories = rng.integers(1, size, (60, order - 1))
    histories[:20, 0] = 0  # begins a sentence
    histories[0] = 0  # before the first hanzi
    everything = np.tile(np.arange(size), (60, 1))
    np.testing.assert_allclose(
        np.exp(model.log_probs(histories, everything).astype(float)).sum(axis=1), 1, rtol=1e-5
    )


def _naive_probability(
    grams: list[Counter], discounts: list[list[float]], history: tuple, word: int, size: int
):
    """Chen and Goodman's recursion as published: p(w | h) = (c − D(c)) / c(h) + γ(h) p(w | h')."""
    n = len(history) + 1
    followers = {gram: count for gram, count in grams[n - 1].items() if gram[:-1] == history}
    lower = 1 / size if n == 1 else _naive_probability(grams, discounts, history[1:], word, size)
    if not followers:
        return lower
    cut = {gram: discounts[n - 1][min(count, 3)] for gram, count in followers.items()}
    gram, total = (*history, word), sum(followers.values())
    return (followers.get(gram, 0) - cut.get(gram, 0)) / total + sum(cut.values()) / total * lower


def _naive_counts(text: list[int], order: int) -> list[Counter]:
    raw = [
        Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1) if 0 not in text[i + 1 : i + n - 1])
        for n in range(1, order + 1)
    ]
    grams = [raw[-1]]
    for n in range(order - 1, 0, -1):
        before = Counter(gram[1:] for gram in set(raw[n]))
        if n > 1:
            before |= Counter({gram: count for gram, count in raw[n - 1].items() if gram[0] == 0})
        grams.insert(0, before)
    return grams


def _naive_discounts(counts: Counter) -> list[float]:
    n = Counter(counts.values())
    assert min(n[1], n[2], n[3], n[4]) > 0, "the text is too small to compare on"
    y = n[1] / (n[1] + 2 * n[2])
    return [0, 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]]


@pytest.mark.parametrize("order", [2, 3])
def test_estimates_equal_a_naive_reference(order):
    size = 300
    text = _random_text(3, 600, size)
    model = _model(text, order, size)
    grams = _naive_counts(text, order)
    discounts = [_naive_discounts(counts) for counts in grams]
    rng = np.random.default_rng(4)
    seen = [gram[:-1] for gram in list(grams[-1])[:20]]
    histories = [*seen, *map(tuple, rng.integers(1, size, (8, order - 1)).tolist())]
    for history in histories:
        words = rng.integers(0, size, 8)
        found = model.log_probs(np.array([history]), words[None])[0]
        expected = [math.log(_naive_probability(grams, discounts, history, int(w), size)) for w in words]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_repeated_sentences_leave_something_for_unseen_tokens():
    """Most sentences occur four times, so by the formula a discount is below 0."""
    text, size = [0], 42
    for sentence, times in enumerate([4] * 5 + [3, 2, 1]):
        text += [*range(2 + 5 * sentence, 7 + 5 * sentence), 0] * times
    assert all(np.isfinite(table.backoffs).all() for table in estimate(np.array(text), 3, size))


def test_readings_are_probabilities_of_a_hanzi_s_syllables(symbols):
    readings = NgramModel.train(PAIRS, NgramConfig(), symbols).readings
    table = symbols.candidates
    sums = np.bincount(table.ravel(), np.exp(readings).ravel(), minlength=len(symbols.hanzi))
    np.testing.assert_allclose(sums[1:], 1, rtol=1e-5)  # every hanzi, <unk> included
    happy = symbols.hanzi.index("乐")

    def reading(syllable: str) -> float:
        row = symbols.pinyin.index(syllable)
        return float(np.exp(readings[row, list(table[row]).index(happy)]))

    assert reading("yue4") == pytest.approx(4.1 / (5 + 0.1 * (table == happy).sum()), rel=1e-5)
    assert reading("yue4") > reading("le4")


def test_scores_are_those_of_the_search(converter):
    sentence = ("ta1", "men5", "de5", "yin1", "yue4", "blorp")
    found = UserWordConverter(converter, UserWords()).explain([sentence], 6, reasons=False)[0].n_best
    scores = converter.scores([sentence] * len(found), [conversion.hanzi for conversion in found])
    assert len(found) == 6
    assert scores == pytest.approx([conversion.score for conversion in found], abs=1e-5)


def test_impossible_hanzi_have_no_probability(converter):
    cases = {"他": -np.inf, "他们的": -np.inf, "他乐": -np.inf, "□们": -np.inf, ("他", "X光"): -np.inf}
    sentences = [("ta1", "men5")] * len(cases)
    assert dict(zip(cases, converter.scores(sentences, list(cases)), strict=True)) == cases
    assert np.isfinite(converter.scores([("ta1", "men5"), ()], ["她们", ""])).all()
    # Without its tone a syllable has more candidates, but no hanzi with other readings only.
    scores = converter.scores([("ta1", "men"), ("ta", "men5"), ("ta", "men")], ["他们", "他们", "他乐"])
    assert np.isfinite(scores[:2]).all() and scores[2] == -np.inf
    # An unknown syllable becomes the mark for unreadable and nothing else.
    scores = converter.scores([("blorp",)] * 3, [UNREADABLE, "他", "鿿"])
    assert np.isfinite(scores[0]) and scores[1:] == [-np.inf, -np.inf]


def test_file_round_trip_and_damage(converter, symbols, tmp_path):
    model = NgramModel.train(PAIRS, NgramConfig(order=2), symbols)
    path = tmp_path / "ngram.npz"
    model.save(path)
    loaded = NgramModel.load(path)
    histories, words = np.array([[0], [5], [99]]), np.arange(30).reshape(3, 10)
    np.testing.assert_array_equal(loaded.log_probs(histories, words), model.log_probs(histories, words))
    path.write_bytes(path.read_bytes()[:1000])
    for broken in (path, tmp_path / "missing.npz"):
        with pytest.raises(RunError, match="n-gram model"):
            NgramModel.load(broken)


@pytest.mark.parametrize("order", [1, 5])
def test_impossible_orders(symbols, order):
    with pytest.raises(ConfigError, match=f"order {order}"):
        NgramModel.train(PAIRS, NgramConfig(order=order), symbols)


def test_no_text(symbols):
    with pytest.raises(TrainingError, match="no training text"):
        NgramModel.train([((), "")], NgramConfig(), symbols)
