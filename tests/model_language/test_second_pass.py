"""Tests of the second pass: which readings it rates, what a language model changes, reasons, user words."""

import itertools

import numpy as np
import pytest

from model_language.converters.base import NEAR, RESCORED
from model_language.converters.explanation import SECOND_PASS_PART
from model_language.converters.user_word_converter import UserWordConverter
from model_language.language_model import LEAST_USER_WORD_LOG_PROB, SecondPass
from model_language.pinyin_to_hanzi import PinyinToHanzi
from model_language.registry import load_converter, load_second_pass
from model_language.search.user_words import Span, UserWord, UserWords
from tests.support.tiny_runs import write_language_run
from utils.errors import ConfigError, RunError
from utils.mandarin.pinyin import hanzi_to_pinyin
from utils.run_folder.run import PRETRAINED

SENTENCE = "他的作品深受读者的喜爱"
RIVAL = "她的作品深受读者的喜爱"


class Liking:
    """A language model that gives each character -1, and one of them more."""

    def __init__(self, hanzi: str, more: float):
        self._hanzi, self._more, self.rated = hanzi, more, []

    def log_probs_of_hypotheses(self, utterances):
        self.rated += utterances
        return [[np.append(self._rate(text), -1.0) for text in texts] for texts in utterances]

    def _rate(self, text: str) -> np.ndarray:
        return np.array([-1.0 + self._more * (character in self._hanzi) for character in text])


@pytest.fixture(scope="module")
def converter():
    return load_converter(PRETRAINED).typed()


@pytest.fixture(scope="module")
def pinyin() -> list[str]:
    return hanzi_to_pinyin(SENTENCE)


def test_the_language_model_chooses_among_the_best(converter, pinyin):
    """Both 他 and 她 are probable: a language model that likes 她 decides, with any other sentence beside."""
    assert converter.convert([pinyin]) == [SENTENCE]
    liking = SecondPass(Liking("她", 20.0), 0.5)
    assert converter.with_second_pass(liking).convert([[], pinyin, ["ni3", "hao3"]]) == ["", RIVAL, "你好"]
    weightless = SecondPass(Liking("她", 20.0), 0.0)
    assert converter.with_second_pass(weightless).convert([pinyin]) == [SENTENCE]


def test_only_readings_near_the_best_are_rated(converter, pinyin):
    """A certain sentence is not rated; an improbable reading is not chosen, however much it is liked."""
    language_model = Liking("桌", 1000.0)
    rated = converter.with_second_pass(SecondPass(language_model, 1.0))
    assert rated.convert([["zhong1", "guo2", "ren2", "min2"]]) == ["中国人民"]
    assert not language_model.rated
    assert "桌" not in rated.convert([hanzi_to_pinyin("他捉住了一只兔子")])[0]
    rated.convert([pinyin])
    scores = rated.scores([pinyin] * len(language_model.rated[-1]), language_model.rated[-1])
    assert 1 < len(scores) <= RESCORED
    assert min(scores) >= max(scores) - NEAR - 1e-3


def test_n_best_and_reasons_contain_the_second_pass(converter, pinyin):
    liking = SecondPass(Liking("她", 20.0), 0.5)
    guided = UserWordConverter(converter.with_second_pass(liking), UserWords())
    plain = UserWordConverter(converter, UserWords())
    (explained,) = guided.explain([pinyin], 3)
    assert explained.n_best[0].hanzi == RIVAL == guided.convert([pinyin])[0]
    assert guided.best([pinyin])[0] == explained.n_best[0]
    (base,) = guided.scores([pinyin], [RIVAL])
    assert explained.n_best[0].score == pytest.approx(base + 0.5 * (20 - len(RIVAL) - 1), abs=1e-3)
    first = explained.characters[0]
    assert (first.hanzi, first.runner_up) == ("她", "他")
    assert first.lead[SECOND_PASS_PART] == pytest.approx(10.0)
    assert sum(first.lead.values()) > 0
    (without,) = plain.explain([pinyin])
    assert SECOND_PASS_PART not in without.characters[0].lead
    leads = [character.lead for character in explained.characters[1:] if character.runner_up]
    assert leads and all(lead[SECOND_PASS_PART] == pytest.approx(0.0) for lead in leads)


def test_explanations_do_not_promote_what_conversion_does_not_rate(converter):
    """With reasons or without: a reading far behind the best one is not chosen, nor ranked first."""
    pinyin = hanzi_to_pinyin("他捉住了一只兔子")
    plain = UserWordConverter(converter, UserWords()).explain([pinyin], 16)[0].n_best
    far = next(way for way in plain if way.score < plain[0].score - 2 * NEAR)
    changed = {new for new, old in zip(far.hanzi, plain[0].hanzi, strict=True) if new != old}
    guided = UserWordConverter(
        converter.with_second_pass(SecondPass(Liking("".join(changed), 1000.0), 1.0)), UserWords()
    )
    (text,) = guided.convert([pinyin])
    (explained,) = guided.explain([pinyin], 16)
    assert text == explained.n_best[0].hanzi != far.hanzi
    assert far.hanzi in [way.hanzi for way in explained.n_best]
    scores = [way.score for way in explained.n_best]
    assert scores == sorted(scores, reverse=True)


def test_user_words_keep_their_bonus(converter, pinyin):
    """A language model that finds a user word improbable does not take it out again."""
    word = UserWord("柞品", (frozenset({"zuo4"}), frozenset({"pin3"})), 12.0)
    hating = SecondPass(Liking("柞", -50.0), 0.5)
    guided = UserWordConverter(converter.with_second_pass(hating), UserWords([word]))
    assert guided.convert([pinyin])[0][2:4] == "柞品"
    text = "的柞品"
    (gains,) = SecondPass(Liking("柞品", -50.0), 0.5).gains([[text, "的作品"]], [[[Span(1, word)]] * 2])
    assert gains == pytest.approx([0.5 * (-1 + 2 * LEAST_USER_WORD_LOG_PROB - 1), 0.5 * (-1 - 1 - 51 - 1)])


def test_the_shipped_language_model_corrects_errors():
    """Sentences of Common Voice (CC0) in which the n-grams prefer another homophone."""
    plain, rated = PinyinToHanzi(), PinyinToHanzi(second_pass=load_second_pass())
    for hanzi in ("买了巴士票", "看起来是超级适合合作的东西"):
        line = " ".join(hanzi_to_pinyin(hanzi))
        assert plain(line) != hanzi
        assert rated(line) == rated.explain([line])[0].text == hanzi
    assert rated("zhe shi xian, na shi xi'an") == plain("zhe shi xian, na shi xi'an")


def test_a_batch_is_rated_as_each_sentence_alone(converter):
    rated = converter.with_second_pass(load_second_pass())
    parts = ("买了巴士票", "他的作品", "今天", "我们明天上午九点在学校门口见面")
    sentences = [hanzi_to_pinyin(a + b) for a, b in itertools.product(parts, repeat=2)]
    assert rated.convert(sentences) == [rated.convert([sentence])[0] for sentence in sentences]


def test_other_runs_are_refused(tmp_path):
    with pytest.raises(RunError, match="not a language model of hanzi"):
        load_second_pass(0.2, PRETRAINED)
    run = write_language_run(tmp_path, tmp_path / "none.tsv")
    with pytest.raises(ConfigError, match="no second pass"):
        PinyinToHanzi(run, second_pass=SecondPass(Liking("她", 1.0), 0.2))
