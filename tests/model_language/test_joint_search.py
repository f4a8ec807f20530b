"""Tests of the joint search against brute force: all paths of small networks, with user words."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from model_language.converters.ngram import NgramConfig, NgramConverter, NgramModel
from model_language.converters.user_word_converter import UserWordConverter
from model_language.language_model import LEAST_USER_WORD_LOG_PROB
from model_language.ngram.syllables import SyllableNgram, SyllableNgramConfig
from model_language.ngram.words import WordUnigram, pack_words
from model_language.search import confusion_network_search, lattice, word_bonus
from model_language.search.grid import Conversion
from model_language.search.joint import JointSearch, JointWeights
from model_language.search.sequences import SequenceSearch
from model_language.search.user_words import UserWord, UserWords
from model_language.vocabulary.symbols import build_symbols
from tests.model_speech.test_confusion_network import paths_of
from tests.support.music_pairs import PAIRS
from utils.hypotheses.recognition import NOTHING, Alternative, ConfusionNetwork, Slot

WEIGHTS = JointWeights(language=0.7, syllables=0.4, bonus=0.9)


@pytest.fixture(scope="module")
def ngram() -> NgramConverter:
    symbols = build_symbols(PAIRS)
    return NgramConverter(NgramModel.train(PAIRS, NgramConfig(), symbols), symbols, beam=16)


@pytest.fixture(scope="module")
def rates_words(ngram) -> NgramConverter:
    """The same converter with a model of words."""
    uses = {"音乐": 90, "他们": 50, "大门": 9, "去音": 3, "因": 7, "他们去因": 2, "的": 80, "月": 5}
    found = NgramConverter(ngram.history_model, ngram.symbols, beam=16)
    found.path_model = WordUnigram(pack_words(uses, ngram.symbols), weight=0.6)
    return found


def network(*slots: dict[str, float]) -> ConfusionNetwork:
    return ConfusionNetwork(
        tuple(
            Slot(tuple(slot), tuple(math.log(p) for p in slot.values()), position)
            for position, slot in enumerate(slots)
        )
    )


NETWORKS = [
    network({"ta1": 0.6, "da1": 0.4}, {"men5": 1.0}, {NOTHING: 0.7, "qu4": 0.3}, {"yin2": 0.5, "yin1": 0.5}),
    network({"de5": 0.9, NOTHING: 0.1}, {"yin1": 0.6, NOTHING: 0.4}, {"yue4": 0.8, "le4": 0.2}),
    network({"ta1": 0.5, NOTHING: 0.5}),
    network(),
]
WORDS = UserWords(
    [
        UserWord("喆门", (frozenset({"da1"}), frozenset({"men5"})), 3.0),
        UserWord("因月", (frozenset({"yin1"}), frozenset({"yue"})), 2.5),
        UserWord("的月", (frozenset({"de5"}), frozenset({"yue4"})), 2.0),
        UserWord("们音", (frozenset({"men5"}), frozenset({"yin1"})), 1.5),
    ]
)
TWICE = UserWords(
    [
        UserWord("他们", (frozenset({"da1"}), frozenset({"men5"})), 4.0),
        UserWord("他们", (frozenset({"ta"}), frozenset({"men"})), 2.0),
        UserWord("他们", (frozenset({"ta1", "da"}), frozenset({"men5"})), 3.0),
        UserWord("因", (frozenset({"yin"}),), 2.5),
        UserWord("因", (frozenset({"yin1"}),), 1.5),
    ]
)
"""Equal words, several of which match the same syllables."""


@pytest.fixture
def no_margin(monkeypatch):
    """Improbable paths are found too, and similar syllables are no user words."""
    monkeypatch.setattr(confusion_network_search, "MARGIN", math.inf)
    monkeypatch.setattr(word_bonus, "HEARD", math.inf)


def brute_force(net: ConfusionNetwork, ngram: NgramConverter, words: UserWords, n: int):
    """Score of each sequence with its most probable conversions, user words included."""
    scored = {}
    for pinyin, acoustic in paths_of(net).items():
        conversions = [_nothing(ngram)]
        if pinyin:
            conversions = UserWordConverter(ngram, words).explain([pinyin], 60, reasons=False)[0].n_best
        for conversion in conversions:
            earned = sum(
                span.word.weight * len(span.word.hanzi)
                for span in words.spans(pinyin)
                if conversion.hanzi[span.start : span.end] == span.word.hanzi
            )
            language = conversion.score - earned
            total = acoustic + WEIGHTS.language * (language + earned) + WEIGHTS.bonus * len(pinyin)
            scored[pinyin, conversion.hanzi] = total
    return sorted(scored.items(), key=lambda item: -item[1])[:n]


def _nothing(ngram: NgramConverter) -> Conversion:
    model = ngram.history_model
    end = model.log_probs(np.zeros((1, model.history), int), np.zeros((1, 1), int))
    return Conversion("", float(end[0, 0]))


@pytest.mark.parametrize("words", [UserWords(), WORDS, TWICE], ids=["plain", "words", "twice"])
@pytest.mark.parametrize("net", NETWORKS)
@pytest.mark.parametrize("model", ["ngram", "rates_words"])
def test_through_a_network_equals_brute_force(request, no_margin, model, net, words):
    ngram = request.getfixturevalue(model)
    search = JointSearch(UserWordConverter(ngram, words), WEIGHTS, beam=400)
    (found,) = search.search([net], n=6)
    expected = brute_force(net, ngram, words, 6)
    assert [hypothesis.score for hypothesis in found] == pytest.approx(
        [score for _, score in expected], abs=1e-4
    )
    assert (found[0].pinyin, found[0].hanzi) == expected[0][0]
    (best,) = JointSearch(UserWordConverter(ngram, words), WEIGHTS, beam=60).search([net], n=1)
    assert (best[0].pinyin, best[0].hanzi) == expected[0][0]


def test_a_word_is_found_in_similar_syllables_for_a_part_of_its_bonus(ngram, no_margin, monkeypatch):
    words = UserWords([UserWord("喆阴", (frozenset({"da1"}), frozenset({"yin1"})), 9.0)])
    search = JointSearch(UserWordConverter(ngram, words), WEIGHTS)
    ((best,),) = search.search([network({"da1": 1.0}, {"yin2": 1.0})])
    assert "喆" not in best.hanzi
    monkeypatch.setattr(word_bonus, "HEARD", 0.05)
    ((best,),) = search.search([network({"da1": 1.0}, {"yin2": 1.0})])
    ((toned,),) = search.search([network({"da1": 1.0}, {"yin1": 1.0})])
    reading = 0.7 * search.evidence(best)[1, 1] - 0.7 * search.evidence(toned)[1, 1]
    assert best.score - toned.score == pytest.approx(reading - 2.0, abs=1e-4)  # another tone: 20 · 0.1
    ((other,),) = search.search([network({"da1": 1.0}, {"jin1": 1.0})])
    assert "喆" not in other.hanzi  # too far for a word of two syllables


def test_a_word_with_latin_letters_is_written_whole_or_not_at_all(ngram):
    readings = (frozenset({"da1"}), frozenset({"men5"}), frozenset({"yin1"}))
    light, heavy = (UserWords([UserWord("", readings, weight, spelling="DMY")]) for weight in (0.1, 30.0))
    nets = [
        network({"da1": 0.9, "ta1": 0.1}, {"men5": 1.0}, {"yin1": 0.5, NOTHING: 0.5}, {"yue4": 1.0}),
        network({"da1": 1.0}, {"men5": 1.0}, {"de5": 1.0}),
    ]
    for words in (light, heavy):
        for paths in JointSearch(UserWordConverter(ngram, words), WEIGHTS).search(nets, n=8):
            for path in paths:
                written = words.written(path)
                assert written.hanzi.count("DMY") == any(ord(each) > 0xF0000 for each in path.hanzi)
                assert len(written.texts or written.hanzi) == len(path.pinyin)
        best = [
            words.written(paths[0]).hanzi
            for paths in JointSearch(UserWordConverter(ngram, words), WEIGHTS).search(nets)
        ]
        assert best[0].startswith("DMY") == (words is heavy)
        assert "DMY" not in best[1]


class Conditional:
    """Stands for a network converter: has what the search uses, with scores derived from the syllables."""

    score_kind, history_model = "network", None

    def best(self, sentences):
        return [
            Conversion("字" * len(sentence), -float(sum(map(len, sentence)) % 5)) for sentence in sentences
        ]

    @property
    def converter(self):
        return self


@pytest.mark.parametrize("rates_syllables", [False, True])
def test_sequences_are_converted_and_the_best_sum_wins(no_margin, rates_syllables):
    syllables = None
    if rates_syllables:
        syllables = SyllableNgram.train([pinyin for pinyin, _ in PAIRS], SyllableNgramConfig(order=2))
    for net in NETWORKS:
        (found,) = SequenceSearch(Conditional(), WEIGHTS, syllables, sequences=1000).search([net], n=5)
        scored = {}
        for path, acoustic in paths_of(net).items():
            language = WEIGHTS.language * Conditional().best([path])[0].score
            scored[path] = acoustic + language + WEIGHTS.bonus * len(path)
            if syllables:
                ids = np.concatenate([[0], syllables.ids(path), [0]])
                logs = syllables.log_probs(ids[:-1, None], ids[1:, None]).sum()
                scored[path] += WEIGHTS.syllables * logs
        expected = sorted(scored.values(), reverse=True)[:5]
        assert [hypothesis.score for hypothesis in found] == pytest.approx(expected, abs=1e-5)


class PrefersOther:
    """Stands for a language model of hanzi: a hanzi costs more the higher the rest of its code point."""

    def log_probs_of_hypotheses(self, utterances):
        return [[self.log_probs(text) for text in texts] for texts in utterances]

    def log_probs(self, text):
        return -np.array([*(float(ord(hanzi) % 7) for hanzi in text), 1.0])


def rescored(hypothesis: Alternative, words: UserWords) -> float:
    """The score with 0.6 times the log-probabilities; those of hanzi in user words are at least -4."""
    values = PrefersOther().log_probs(hypothesis.hanzi)
    for span in words.spans(hypothesis.pinyin):
        if hypothesis.hanzi[span.start : span.end] == span.word.hanzi:
            values[span.start : span.end] = np.maximum(
                values[span.start : span.end], LEAST_USER_WORD_LOG_PROB
            )
    return hypothesis.score + 0.6 * values.sum()


@pytest.mark.parametrize("words", [UserWords(), WORDS], ids=["plain", "words"])
@pytest.mark.parametrize("net", NETWORKS)
def test_a_language_model_rescores_the_best_hypotheses(ngram, words, net):
    converter, weights = UserWordConverter(ngram, words), replace(WEIGHTS, rescoring=0.6)
    (plain,) = JointSearch(converter, WEIGHTS).search([net], n=64)
    (found,) = JointSearch(converter, weights, language_model=PrefersOther()).search([net], n=64)
    rated = {(hypothesis.pinyin, hypothesis.hanzi): rescored(hypothesis, words) for hypothesis in plain}
    assert [hypothesis.score for hypothesis in found] == pytest.approx(sorted(rated.values(), reverse=True))
    for hypothesis in found:
        assert hypothesis.score == pytest.approx(rated[hypothesis.pinyin, hypothesis.hanzi])
    mass = sum(math.exp(hypothesis.score) for hypothesis in found)
    for position, (slot, hanzi) in enumerate(zip(found[0].slots, found[0].hanzi, strict=True)):
        same = [math.exp(r.score) for r in found if (slot, hanzi) in zip(r.slots, r.hanzi, strict=True)]
        assert found[0].confidence[position] == pytest.approx(sum(same) / mass)


def test_the_evidence_of_a_hanzi_is_the_sum_of_the_ngrams_that_contain_it(rates_words):
    search = JointSearch(UserWordConverter(rates_words, WORDS), WEIGHTS)
    (hypothesis,) = search.search([NETWORKS[0]])[0]
    history, ids = rates_words.history_model, rates_words.symbols.encode_hanzi(hypothesis.hanzi).tolist()
    text = [0, 0, *ids, 0]
    scores = [
        float(history.score(np.array([text[end - 2 : end]]), np.zeros(1, int), np.array([text[end]]))[0])
        for end in range(2, len(text))
    ]
    evidence = search.evidence(hypothesis)
    assert search.has_ngrams and evidence.shape == (len(hypothesis.pinyin), 2)
    assert evidence[:, 0] == pytest.approx([sum(scores[n : n + 3]) for n in range(len(ids))], abs=1e-4)
    for row, number, syllable in zip(evidence, ids, hypothesis.pinyin, strict=True):
        grid = rates_words.grid([[syllable]])
        own = grid.scores[0, 0][grid.candidates[0, 0] == number]
        assert row[1] == pytest.approx(own[0] if len(own) else grid.scores[0, 0].min())
    assert search.evidence(Alternative((), "", 0.0)).shape == (0, 2)


@pytest.mark.parametrize("n", [1, 4])
def test_networks_are_searched_together_as_each_alone(rates_words, n):
    """Of different lengths, with user words in some of them."""
    several = [*NETWORKS, *(network(*({NOTHING: 0.2, "de5": 0.8},) * size) for size in (1, 3, 9))]
    search = JointSearch(UserWordConverter(rates_words, WORDS), WEIGHTS, beam=5)
    together = search.search(several, n)
    assert together == [search.search([each], n)[0] for each in several]
    assert [found[0].hanzi for found in together][3] == ""


@pytest.mark.parametrize("tried", [lattice._TRIED, 0])
@pytest.mark.parametrize("difference", [0.0, 3e-6])
def test_the_best_path_is_found_among_very_many_nearly_equal_ones(monkeypatch, difference, tried):
    """Sums of scores differ by rounding errors: breadth-first, no path of 60 slots would be complete."""
    monkeypatch.setattr(lattice, "_TRIED", tried)
    scores = np.cumsum(np.random.default_rng(0).normal(size=61)).tolist()
    slots = [
        lattice.LatticeSlot(
            syllables=["a1", "a2", "a3", "a4"],
            before=[before],
            starts=[0, 4],
            arcs=[(0, token, token, after - difference * token) for token in range(4)],
        )
        for before, after in itertools.pairwise(scores)
    ]
    found = lattice.best_paths(slots, [(0, scores[-1], -1.0)], n_best=5)
    assert len(found) == (5 if tried else 1)
    assert found[0].score == pytest.approx(scores[-1] - 1.0, abs=1e-9)
    if difference or not tried:
        assert found[0].syllables == ("a1",) * 60
