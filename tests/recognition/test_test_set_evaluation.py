"""Tests of recognition/evaluation.py: scores that explain errors and reveal search errors."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.errors.align_all import align_all
from analysis.inputs.utterance_results import LEVELS, Scores, UtteranceResult
from model_language.converters.ngram import NgramConfig, NgramConverter, NgramModel
from model_language.vocabulary.symbols import build_symbols
from recognition.evaluation import with_acoustic_scores, with_language_scores
from utils.audio.samples import write_wav
from utils.mandarin.output_units import TONAL

# 他 begins more sentences than 她, but only 她的 is in the text: a greedy decision is wrong.
PAIRS = [
    (("ta1", "hen3", "kuai4", "le4"), "他很快乐"),
    (("ta1", "men5", "qu4", "yin2", "hang2"), "他们去银行"),
    (("ta1", "de5", "yin1", "yue4", "hen3", "hao3"), "她的音乐很好"),
]
SPOKEN, HANZI = ("ta1", "de5", "yin1", "yue4"), "她的音乐"


@pytest.fixture(scope="module")
def trained() -> tuple[NgramModel, object]:
    symbols = build_symbols(PAIRS)
    return NgramModel.train(PAIRS, NgramConfig(), symbols), symbols


def converted(trained, beam: int, recognised: tuple[str, ...], hanzi: str = HANZI) -> UtteranceResult:
    """The explained output of a pipeline with this beam for recognised syllables."""
    converter = NgramConverter(*trained, beam)
    outcome = UtteranceResult("one", "", 1.0, SPOKEN, recognised, hanzi, converter.convert([recognised])[0])
    gold_hanzi = converter.convert([outcome.reference_pinyin])[0]
    (explained,) = with_language_scores([replace(outcome, gold_hanzi=gold_hanzi)], converter)
    return explained


def blamed(outcome: UtteranceResult) -> dict[str, str]:
    (aligned,) = align_all([outcome], LEVELS)
    return {token.pair.reference: token.attribution for token in aligned.hanzi if token.attribution}


def test_a_beam_that_is_too_narrow_is_to_blame(trained):
    narrow = converted(trained, 1, SPOKEN)
    assert narrow.hanzi == "他的音乐"
    assert narrow.language_scores.reference > narrow.language_scores.output
    assert blamed(narrow) == {"她": "search"}
    assert blamed(converted(trained, 8, SPOKEN)) == {}


def test_a_narrow_beam_is_to_blame_where_another_syllable_is_wrong(trained):
    narrow = converted(trained, 1, ("ta1", "de5", "yin1", "hao3"))
    assert narrow.hanzi[0] == "他"
    assert blamed(narrow) == {"她": "search", "乐": "acoustic"}


def test_a_model_that_prefers_something_else_is_to_blame_itself(trained):
    wide = converted(trained, 8, SPOKEN, hanzi="他的音乐")
    assert wide.language_scores.reference < wide.language_scores.output
    assert blamed(wide) == {"他": "language"}
    # 龘 is not a candidate of these syllables: no search could have found it.
    assert converted(trained, 8, SPOKEN, hanzi="龘的音乐").language_scores.reference == -np.inf


class Counting:
    """Scores hanzi by their number and counts the requested sentences."""

    requested = 0

    def scores(self, sentences, hanzi):
        self.requested += len(sentences)
        return [-float(len(text)) for text in hanzi]


def test_only_wrong_sentences_are_scored():
    scorer = Counting()
    gold = [HANZI, "他的音乐", HANZI, "她的音月", "T的音"]  # the last one has a word in Latin letters
    outcomes = [
        UtteranceResult(str(i), "", 0.0, SPOKEN, SPOKEN, HANZI, HANZI, gold_hanzi=hanzi)
        for i, hanzi in enumerate(gold)
    ]
    scored = with_language_scores(outcomes, scorer)
    assert scorer.requested == 4
    assert [outcome.language_scores for outcome in scored] == [
        None,
        Scores(-4.0, -4.0),
        None,
        Scores(-4.0, -4.0),
        None,
    ]


def test_acoustic_scores_are_computed_from_the_recording(tmp_path, monkeypatch):
    noise = np.random.default_rng(0).normal(0, 0.1, 16_000)
    write_wav(tmp_path / "one.wav", noise, 16_000)

    def scores(_, samples, sequences):
        assert len(samples) == 16_000
        return [-float(len(sequence)) for sequence in sequences]

    recognizer = SimpleNamespace(sample_rate=16_000, units=TONAL)
    monkeypatch.setattr("recognition.evaluation.token_scores", scores)

    def outcome(pinyin: tuple[str, ...]) -> UtteranceResult:
        return UtteranceResult("one", "", 1.0, SPOKEN, pinyin, "", "", audio=str(tmp_path / "one.wav"))

    assert with_acoustic_scores(outcome(SPOKEN[:1]), recognizer).speech_scores == Scores(-4.0, -1.0)
    right = with_acoustic_scores(outcome(SPOKEN), recognizer)
    assert (right.speech_scores, right.snr is not None) == (None, True)
