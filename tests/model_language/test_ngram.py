"""Tests of Kneser–Ney estimates by hand, against a naive reference and sums to 1; search by brute force."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from data.text.pinyin_pairs import read_pairs
from model_language.batching import length_batches
from model_language.converters.ngram import NgramConfig, NgramConverter, NgramModel
from model_language.converters.user_word_converter import UserWordConverter
from model_language.ngram.kneser_ney import estimate
from model_language.registry import load_converter
from model_language.search.user_words import UserWords
from model_language.vocabulary.lexicon import UNREADABLE
from model_language.vocabulary.symbols import Symbols, build_symbols
from utils.arrays import pad_rows
from utils.config import save_yaml, to_plain
from utils.errors import ConfigError, RunError, TrainingError

SHARED = Path(__file__).parents[2].parent / "shared" / "data"

PAIRS = [
    (("yin1", "yue4", "hen3", "hao3", "ting1"), "音乐很好听"),
    (("ta1", "hen3", "kuai4", "le4"), "他很快乐"),
    (("wo3", "men5", "qu4", "ting1", "yin1", "yue4"), "我们去听音乐"),
    (("wo3", "de5", "yue4", "qi4"), "我的乐器"),
    (("ta1", "de5", "yin1", "yue4", "hen3", "hao3"), "她的音乐很好"),
    (("ta1", "men5", "qu4", "yin2", "hang2"), "他们去银行"),
]


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


def test_a_bigram_model_worked_by_hand():
    """Sentences "ab" and "ac" with a = 2, b = 3, c = 4, end = 0, unknown = 1; discounts 1/2, 1, 3/2.

    Distinct predecessors: a 1, b 1, c 1, end 2; discounted 3 · 1/2 + 1 of 5, so 1/2 goes to the uniform 1/5.
    """
    model = _model([0, 2, 3, 0, 2, 4, 0], order=2, size=5)
    unigram = {0: 1 / 5 + 1 / 10, 1: 1 / 10, 2: 1 / 10 + 1 / 10, 3: 1 / 5, 4: 1 / 5}
    expected = {
        (0, 2): (2 - 1) / 2 + 1 / 2 * unigram[2],  # both sentences begin with a
        (2, 3): (1 - 1 / 2) / 2 + 1 / 2 * unigram[3],
        (3, 0): (1 - 1 / 2) / 1 + 1 / 2 * unigram[0],
        (3, 2): 1 / 2 * unigram[2],  # "ba" does not occur, "b" does
        (3, 1): 1 / 2 * unigram[1],
        (1, 4): unigram[4],  # nothing follows an unknown hanzi in the text
    }
    for (before, word), probability in expected.items():
        found = model.log_probs(np.array([[before]]), np.array([[word]]))[0, 0]
        assert math.exp(found) == pytest.approx(probability, rel=1e-6)


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


def test_conversion_uses_the_context(converter):
    sentences = [
        ["wo3", "men5", "hen3", "kuai4", "le4"],
        ["yin1", "yue4", "hen3", "hao3"],
        [],
        ["yue4", "qi4"],
    ]
    assert converter.convert(sentences) == ["我们很快乐", "音乐很好", "", "乐器"]


def test_unknown_syllables_become_one_mark_each(converter):
    assert converter.convert([["yin1", "hello", "yue4", "rua3"]]) == [f"音{UNREADABLE}乐{UNREADABLE}"]
    assert converter.convert([["yin1", "yuer4"]]) == ["音乐"]
    assert converter.convert([]) == []


def test_a_batch_equals_its_sentences_alone(converter, symbols):
    rng = np.random.default_rng(5)
    syllables = symbols.lexicon.syllables
    sentences = [[syllables[i] for i in rng.integers(0, len(syllables), n)] for n in (1, 3, 9, 2, 6)]
    together = converter.convert(sentences)
    assert together == [converter.convert([sentence])[0] for sentence in sentences]
    for sentence, hanzi in zip(sentences, together, strict=True):
        assert all(h in symbols.lexicon.candidates(s) for s, h in zip(sentence, hanzi, strict=True))


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


def test_a_narrow_beam_misses_a_better_sequence(symbols):
    """他 begins more sentences than 她, but only 她的 is in the text: a greedy decision is wrong."""
    model, sentence = NgramModel.train(PAIRS, NgramConfig(), symbols), ("ta1", "de5", "yin1", "yue4")
    wide, narrow = (NgramConverter(model, symbols, beam) for beam in (8, 1))
    better, missed = wide.convert([sentence])[0], narrow.convert([sentence])[0]
    assert (better, missed) == ("她的音乐", "他的音乐")
    scores = narrow.scores([sentence] * 2, [better, missed])
    assert scores[0] > scores[1] + 0.1
    assert scores == wide.scores([sentence] * 2, [better, missed])


def test_length_batches_and_padding():
    lengths = [5, 1, 9, 5, 0, 30]
    batches = length_batches(lengths, budget=12)
    assert sorted(int(i) for batch in batches for i in batch) == [0, 1, 2, 3, 5]  # an empty sentence has none
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 12 for batch in batches)
    assert length_batches([], 12) == []
    assert pad_rows([np.array([3, 4, 5]), np.array([6])], multiple=2).tolist() == [[3, 4, 5, 0], [6, 0, 0, 0]]


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


def test_a_run_folder_is_all_that_conversion_needs(symbols, tmp_path):
    run = tmp_path / "run"
    config = NgramConfig(beam=4)
    save_yaml(run / "config.yaml", {"task": "language", "model": to_plain(config)})
    symbols.save(run)
    NgramModel.train(PAIRS, config, symbols).save(run / "ngram.npz")
    moved = run.rename(tmp_path / "elsewhere")
    assert load_converter(moved).convert([["yin1", "yue4"]]) == ["音乐"]
    save_yaml(moved / "config.yaml", {"task": "language", "model": {"name": "ngramm"}})
    with pytest.raises(ConfigError, match="ngramm"):
        load_converter(moved)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data")
def test_thchs_transcripts():
    """A trigram model of only THCHS-30's 750 sentences: a quarter of the hanzi wrong on unseen ones."""
    train = read_pairs([SHARED / "transcripts" / "thchs_train.tsv"])
    test = list(dict.fromkeys(read_pairs([SHARED / "transcripts" / "thchs_test.tsv"])))
    assert len(test) == 250
    symbols = build_symbols(train)
    converter = NgramConverter(NgramModel.train(train, NgramConfig(), symbols), symbols, beam=8)
    for pairs, most in ((test, 0.27), (list(dict.fromkeys(train))[:100], 0.01)):
        found = converter.convert([pair.pinyin for pair in pairs])
        wrong = sum(
            a != b
            for pair, text in zip(pairs, found, strict=True)
            for a, b in zip(pair.hanzi, text, strict=True)
        )
        assert wrong / sum(len(pair.hanzi) for pair in pairs) <= most
