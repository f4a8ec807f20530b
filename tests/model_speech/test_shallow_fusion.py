"""Tests of syllable n-grams fused into the beam search, against enumeration and a plain reference."""

import json
from dataclasses import replace

import numpy as np
import pytest

from model_language.ngram.syllables import (
    SyllableNgram,
    SyllableNgramConfig,
    load_syllable_ngram,
)
from model_language.registry import load_converter
from model_speech.ctc.prefix_beam import beam_search
from model_speech.ctc.shallow_fusion import Fusion
from recognition.loading import load_fusion
from recognition.options import SearchOptions
from tests.model_speech.test_prefix_beam import extended, label_probabilities, random_logits
from training.run import train_from_config
from utils.arrays import log_softmax
from utils.errors import ConfigError, CorpusError, RunError, TrainingError
from utils.vocabulary import BLANK, SPACE, Vocabulary

SENTENCES = [tuple(line.split()) for line in ("ni3 hao3", "ni3 hao3 ma5", "wo3 hao3", "wo3 men5 hao3 ma5")]
SPEECH = Vocabulary(("hao3", "ma5", "ni3", SPACE, BLANK))


@pytest.fixture(scope="module")
def ngram() -> SyllableNgram:
    return SyllableNgram.train(SENTENCES, SyllableNgramConfig(order=3))


@pytest.fixture
def run(ngram, tmp_path):
    """A finished run of the model above."""
    (tmp_path / "config.yaml").write_text("task: language\nmodel: {name: syllable_ngram, order: 3}\n")
    ngram.vocabulary.save(tmp_path / "vocabulary" / "pinyin.txt")
    ngram.save(tmp_path / "syllables.npz")
    return tmp_path


def fusion_of(ngram: SyllableNgram, weight: float, bonus: float) -> Fusion:
    ids = ngram.ids(SPEECH.tokens)
    ids[3:] = -1
    return Fusion(ngram, ids, weight, bonus)


def sentence_log_prob(ngram: SyllableNgram, syllables: list[str], end: bool = True) -> float:
    """log P of a sentence, with its end or of its beginning, token by token."""
    ids = [0] * ngram.history + ngram.ids(syllables).tolist() + [0] * end
    return sum(
        float(
            ngram.log_probs(
                np.array([ids[position - ngram.history : position]]), np.array([[ids[position]]])
            )[0, 0]
        )
        for position in range(ngram.history, len(ids))
    )


def spoken(tokens: tuple[int, ...]) -> list[str]:
    return [token for token in SPEECH.decode(tokens) if token != SPACE]


def test_an_ngram_of_syllables_is_a_distribution(ngram):
    histories = np.array([[0, 0], [0, *ngram.ids(["ni3"])], ngram.ids(["hao3", "ma5"])])
    everything = np.tile(np.arange(ngram.size), (3, 1))
    np.testing.assert_allclose(np.exp(ngram.log_probs(histories, everything)).sum(axis=1), 1.0, rtol=1e-4)


def test_the_perplexity_of_an_empty_text_is_an_error(ngram):
    for sentences in ([], [()]):
        with pytest.raises(CorpusError, match="no sentence to compute a perplexity from"):
            ngram.perplexity(sentences)


def test_perplexity_is_that_of_the_sentences_one_by_one(ngram):
    tested = [["ni3", "hao3"], [], ["wo3", "ma5", "ma5"], ["hao3"]]
    logs = [sentence_log_prob(ngram, sentence) for sentence in tested if sentence]
    assert ngram.perplexity(tested) == pytest.approx(np.exp(-sum(logs) / (2 + 3 + 1 + 3)), rel=1e-4)
    assert ngram.perplexity(SENTENCES) < 20 < ngram.perplexity([["huang2", "long2"]])


@pytest.mark.parametrize(("weight", "bonus"), [(0.0, 0.0), (0.7, 0.0), (0.5, 1.5), (1.0, -1.0)])
def test_a_beam_that_holds_everything_gives_the_formula(ngram, weight, bonus):
    logits, lengths = random_logits(3, batch=2, time=4, spread=1.0)
    found = beam_search(logits, lengths, 4, beam=700, n_best=700, fusion=fusion_of(ngram, weight, bonus))
    for row, hypotheses in enumerate(found):
        acoustic = label_probabilities(logits[row, : lengths[row]], 4)
        expected = {
            tokens: score + weight * sentence_log_prob(ngram, spoken(tokens)) + bonus * len(spoken(tokens))
            for tokens, score in acoustic.items()
        }
        assert {h.tokens for h in hypotheses} == set(expected)
        for hypothesis in hypotheses:
            assert hypothesis.score == pytest.approx(expected[hypothesis.tokens], abs=1e-3)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


def plain_fused_search(logits, blank, beam, ngram, weight, bonus):
    """The textbook's prefix beam search with a language model, in dictionaries: (tokens, score)."""

    def language(tokens, end):
        syllables = spoken(tokens)
        return weight * sentence_log_prob(ngram, syllables, end) + bonus * len(syllables)

    beams = {(): (0.0, -np.inf)}
    for frame in log_softmax(logits):
        after = extended(beams, frame, blank)
        best = sorted(after, key=lambda p, after=after: -np.logaddexp(*after[p]) - language(p, False))
        beams = {prefix: after[prefix] for prefix in best[:beam]}
    scores = {prefix: np.logaddexp(*pair) + language(prefix, True) for prefix, pair in beams.items()}
    return max(scores.items(), key=lambda item: item[1])


@pytest.mark.parametrize(("beam", "weight", "bonus"), [(1, 0.5, 1.0), (3, 0.8, 2.0), (5, 0.5, -0.5)])
def test_equals_a_plain_fused_search(ngram, beam, weight, bonus):
    fusion = fusion_of(ngram, weight, bonus)
    for seed in range(4):
        logits, lengths = random_logits(seed, batch=2, time=10)
        for row, (best,) in enumerate(beam_search(logits, lengths, 4, beam=beam, fusion=fusion)):
            tokens, score = plain_fused_search(logits[row, : lengths[row]], 4, beam, ngram, weight, bonus)
            assert best.tokens == tokens
            assert best.score == pytest.approx(score, abs=1e-3)


def test_spaces_are_neither_scored_nor_remembered(ngram):
    fusion = fusion_of(ngram, 0.5, 2.0)
    history = fusion.extend_histories(np.zeros((1, 1, 2), int), np.array([[2]]))
    assert history.tolist() == [[[0, ngram.ids(["ni3"])[0]]]]
    assert fusion.extend_histories(history, np.array([[3]])).tolist() == history.tolist()
    assert fusion.extend_histories(history, np.array([[-1]])).tolist() == history.tolist()
    assert fusion.gains(history[0], np.array([3])).tolist() == [0.0]


def test_a_run_is_loaded_for_any_acoustic_vocabulary(ngram, run):
    search = SearchOptions(syllables=run, fusion_weight=0.3, insertion_bonus=1.0)
    fusion = load_fusion(search, Vocabulary(("zzz9", "ni3", SPACE, BLANK)))
    assert (fusion.weight, fusion.bonus) == (0.3, 1.0)
    assert fusion.ids.tolist() == [1, ngram.ids(["ni3"])[0], -1, -1]
    words = np.arange(ngram.size)[None]
    np.testing.assert_array_equal(
        fusion.model.log_probs(np.zeros((1, 2), int), words), ngram.log_probs(np.zeros((1, 2), int), words)
    )


def test_with_weight_0_there_is_no_insertion_bonus_either(run):
    vocabulary = Vocabulary(("zzz9", "ni3", SPACE, BLANK))
    search = SearchOptions(syllables=run, fusion_weight=0.3, insertion_bonus=2.5)
    assert load_fusion(search, vocabulary).bonus == 2.5
    assert load_fusion(replace(search, fusion_weight=0.0), vocabulary) is None


def test_a_run_of_another_kind_is_refused(run, language_run):
    with pytest.raises(RunError, match="a run of 'ngram', not of 'syllable_ngram'"):
        load_syllable_ngram(language_run)
    with pytest.raises(RunError, match="writes no hanzi"):
        load_converter(run)


def test_damage_is_named(run):
    (run / "syllables.npz").write_bytes((run / "syllables.npz").read_bytes()[:500])
    with pytest.raises(RunError, match=r"cannot read the n-gram model .*syllables\.npz"):
        load_syllable_ngram(run)
    (run / "syllables.npz").unlink()
    with pytest.raises(RunError, match=r"cannot read the n-gram model \(No such file or directory\), "):
        load_syllable_ngram(run)


def test_another_vocabulary_is_noticed(run):
    Vocabulary(("<pad>", "<unk>", "ni3")).save(run / "vocabulary" / "pinyin.txt")
    with pytest.raises(RunError, match="do not belong together"):
        load_syllable_ngram(run)


def test_impossible_settings_are_refused():
    with pytest.raises(ConfigError, match="order 6 is not possible"):
        SyllableNgram.train(SENTENCES, SyllableNgramConfig(order=6))
    with pytest.raises(TrainingError, match="no training text"):
        SyllableNgram.train([()], SyllableNgramConfig())


def test_train_py_makes_such_a_run(tmp_path):
    (tmp_path / "text.txt").write_text("你好\n你好吗\n我们好\n" * 3, encoding="utf-8")
    text, cache = tmp_path / "text.txt", tmp_path / "cache"
    config = tmp_path / "syllables.yaml"
    config.write_text("model: {name: syllable_ngram, order: 2}\n")
    lists = [f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={cache}"]
    best = train_from_config("language", config, lists, tmp_path / "run")
    model = load_syllable_ngram(tmp_path / "run")
    assert model.history == 1
    assert best["dev_perplexity"] == pytest.approx(
        model.perplexity([["ni3", "hao3"], ["ni3", "hao3", "ma5"], ["wo3", "men5", "hao3"]]), rel=1e-5
    )
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["best"] == best
