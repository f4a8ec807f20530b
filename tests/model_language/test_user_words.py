"""Tests of user words: the file and its errors, spans in sentences, the search against brute force."""

import itertools
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model_language.converters.base import Converter
from model_language.converters.explanation import NGRAM_PART, WORDS_PART
from model_language.converters.ngram import NgramConfig, NgramConverter, NgramModel
from model_language.converters.user_word_converter import UserWordConverter
from model_language.punctuation import Punctuator
from model_language.search.grid import Grid
from model_language.search.user_words import WEIGHT, UserWord, UserWords, parse_user_words, read_user_words
from model_language.vocabulary.symbols import Symbols, build_symbols
from tests.support.music_pairs import PAIRS
from utils.errors import CorpusError
from utils.hypotheses.digits import with_digits
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS
from utils.mandarin.typed_pinyin import read_syllables


class Positions(Converter):
    """Stands for a network: independent positions, with scores derived from the syllables' ids."""

    batch_syllables = 400

    def __init__(self, symbols: Symbols):
        self.symbols = symbols

    def grid(self, sentences):
        lengths = np.array([len(sentence) for sentence in sentences])
        candidates = np.zeros((len(sentences), lengths.max(), self.symbols.candidates.shape[1]), np.int32)
        for row, sentence in zip(candidates, sentences, strict=True):
            row[: len(sentence)] = self.symbols.candidates[self.symbols.encode(sentence)]
        scores = np.log1p(candidates * 7 % 101) / 3
        scores -= np.log(np.where(candidates > 0, np.exp(scores), 0).sum(axis=2, keepdims=True) + 1e-9)
        return Grid(candidates, np.where(candidates > 0, scores, -np.inf), lengths)


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    return build_symbols(PAIRS)


@pytest.fixture(scope="module")
def ngram(symbols) -> NgramConverter:
    return NgramConverter(NgramModel.train(PAIRS, NgramConfig(), symbols), symbols, beam=16)


@pytest.fixture(scope="module", params=["ngram", "positions"])
def converter(request, symbols, ngram):
    return ngram if request.param == "ngram" else Positions(symbols)


def word(hanzi: str, pinyin: str, weight: float = WEIGHT) -> UserWord:
    return UserWord(hanzi, tuple(frozenset((syllable,)) for syllable in pinyin.split()), weight)


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "words.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_is_read(tmp_path):
    text = "\ufeff# names\n张伟\n喆\tzhe2\t5\r\n\n阴月 yīnyuè  # a moon\n音悦 yin yue 0.5\n重庆 2\n"
    words = read_user_words(write(tmp_path, text)).words
    assert [(word.hanzi, word.weight) for word in words] == [
        ("张伟", WEIGHT),
        ("喆", 5.0),
        ("阴月", WEIGHT),
        ("音悦", 0.5),
        ("重庆", 2.0),
    ]
    assert words[2].readings == (frozenset({"yin1"}), frozenset({"yue4"}))
    assert words[3].readings == (frozenset({"yin"}), frozenset({"yue"}))
    assert words[4].readings == (frozenset({"chong2"}), frozenset({"qing4"}))  # a phrase: not zhong4


def test_words_with_latin_letters_and_digits_are_read(tmp_path):
    text = "WiFi\n3G 2\nhey siri hei1 xi1 rui4 5\nK歌 ka la\nWindows XP\tai4 ke4\nPPT\n"
    words = read_user_words(write(tmp_path, text)).words
    assert [(word.text, len(word.readings), word.weight) for word in words] == [
        ("WiFi", 2, WEIGHT),
        ("3G", 2, 2.0),
        ("hey siri", 3, 5.0),
        ("K歌", 2, WEIGHT),
        ("Windows XP", 2, WEIGHT),
        ("PPT", 3, WEIGHT),
    ]
    assert words[1].readings == (frozenset({"san1"}), frozenset({"ji4", "zhi4"}))
    assert words[3].readings == (frozenset({"ka"}), frozenset({"la"}))


def test_numbers_full_width_letters_and_marks_of_words_with_latin_letters():
    text = "iPhone 15 Pro\niPhone 15 6\niPhone 3\nＷｉＦｉ\nｈｅｙ　ｓｉｒｉ ２\n"
    text += "C# xi1 jing3 # sharp\n#3G\nWindows 11 yi1 yi1"
    words = parse_user_words(text).words
    assert {(word.text, word.weight) for word in words} == {
        ("iPhone 15 Pro", WEIGHT),
        ("iPhone 15", 6.0),
        ("iPhone", 3.0),
        ("WiFi", WEIGHT),
        ("hey siri", 2.0),
        ("C#", WEIGHT),
        ("Windows 11", WEIGHT),
    }


def test_words_with_latin_letters_are_shown_as_they_are_written():
    words = parse_user_words("CT\nUSB\n三G san1 ji4\n")
    codes = {word.text: word.hanzi for word in words.words}
    hanzi = f"用{codes['USB']}和{codes['CT']}{codes['三G']}{codes['CT']}"
    assert words.text(hanzi) == "用USB和CT三G CT"
    assert words.texts(codes["CT"] * 2) == ["CT", "", " CT", ""]
    assert words.text("和") == "和"


class CommaAtTheEnd:
    """Stands for a punctuation network."""

    def marks(self, hanzi: str, pauses: np.ndarray) -> list[str]:
        assert len(hanzi) == len(pauses)
        return [*[""] * (len(hanzi) - 1), "，"]


def test_a_word_with_latin_letters_in_transcripts():
    words = parse_user_words("USB\nCT\n")
    codes = {word.text: word.hanzi for word in words.words}
    hanzi = f"二十五个{codes['USB']}{codes['CT']}好"
    hypothesis = Alternative(("x",) * len(hanzi), hanzi, 0.0)
    times = tuple((0.2 * i, 0.2 * i + 0.2) for i in range(len(hypothesis.hanzi)))
    segment = Recognition(0.0, times[-1][1], times, (words.written(hypothesis),))
    assert segment.hanzi == segment.text == "二十五个USB CT好"
    word = next(word for word in segment.words if word.text == "CT")
    assert (len(word.pinyin), word.start, word.end) == (2, times[-3][0], times[-2][1])
    shorter = replace(hypothesis, pinyin=hypothesis.pinyin[:-1], hanzi=hanzi[:-1])
    cut = replace(segment, n_best=(words.written(shorter),), times=times[:-1])
    for recognition, text in ((segment, "25个USB CT好，"), (cut, "25个USB CT，")):
        written = with_digits(Punctuator(CommaAtTheEnd())(recognition))
        assert written.text == text
        assert [word.text for word in written.words][2:4] == ["USB", "CT"]
        events = [written, Ending(times[-1][1])]
        for form in ("text", "srt", "vtt"):
            assert text in "".join(FORMATS[form].write("a", events))
        for form in ("json", "ctm", "textgrid"):
            assert "USB" in "".join(FORMATS[form].write("a", events))
        assert '"CT"' in "".join(FORMATS["json"].write("a", events))
        assert '"CT"' in "".join(FORMATS["textgrid"].write("a", events))


class CommaEverywhere:
    """Stands for a punctuation network."""

    def marks(self, hanzi: str, pauses: np.ndarray) -> list[str]:
        return ["，"] * len(hanzi)


def test_no_space_between_a_mark_and_a_word_with_latin_letters():
    words = parse_user_words("USB\nCT\n")
    hanzi = "".join(word.hanzi for word in words.words)
    times = tuple((0.2 * i, 0.2 * i + 0.2) for i in range(len(hanzi)))
    hypothesis = words.written(Alternative(("x",) * len(hanzi), hanzi, 0.0))
    segment = Recognition(0.0, times[-1][1], times, (hypothesis,))
    assert (segment.text, Punctuator(CommaEverywhere())(segment).text) == ("USB CT", "USB，CT，")


def test_a_word_with_latin_letters_is_converted_whole(converter):
    words = UserWords([UserWord("", (frozenset({"yin1"}), frozenset({"yue4"})), 30.0, spelling="iOS")])
    guided = UserWordConverter(converter, words)
    texts = [words.text(hanzi) for hanzi in guided.convert([["yin1", "yue4"], ["yin1", "yin1"], ["yue4"]])]
    assert texts[0] == "iOS" and all(
        "iOS" not in text and len(text) == count for text, count in zip(texts[1:], (2, 1), strict=True)
    )
    for path in guided.explain([["yin1", "yue4"]], n=16)[0].n_best:
        assert words.text(path.hanzi) == "iOS" or len(words.text(path.hanzi)) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Kubernetes", "no reading of 'Kubernetes' is known.*type its pinyin after it"),
        ("hey siri wai1 fai1", "'hey siri' has no valid pinyin: 'fai1' is not pinyin"),
        ("你好。", "'你好。' is not a word"),
        ("张伟 zhang1", "'张伟' has 2 hanzi but 1 syllables"),
        ("张伟 zhang1 blorp3", "'张伟' has no valid pinyin: 'blorp3' is no"),
        ("张伟 -2", "'张伟' has the weight -2"),
        ("张伟 inf", "'张伟' has the weight inf"),
        ("张伟 nan", "'张伟' has 2 hanzi but 1 syllables"),
        ("张伟 1e9", "'张伟' has the weight 1e"),
        ("\U00030000", "no reading of '\U00030000'"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path, line, message):
    path = write(tmp_path, f"好听\n\n{line}\n")
    with pytest.raises(CorpusError, match=message) as caught:
        read_user_words(path)
    assert caught.value.where == f"{path}, line 3"


def test_erhua_matches_words_with_its_hanzi(tmp_path):
    words = read_user_words(write(tmp_path, "那儿\n甜儿 tian2 er2\n女儿 nv3 er5\n"))
    for typed in ("nar4", "na4 er2", "na4er", "tian2r", "tian2 er2", "nv3 er2", "nv3 er5"):
        assert len(words.spans(read_syllables(typed))) == 1, typed


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(CorpusError, match="UTF-8"):
        read_user_words(write(tmp_path, "张伟".encode("gbk")))
    with pytest.raises(CorpusError, match="cannot read"):
        read_user_words(tmp_path / "none.txt")


def test_spans_follow_the_syllables():
    words = UserWords(
        [word("音月", "yin1 yue4"), word("月", "yue4"), word("阴", "yin"), word("音月", "yin yue")]
    )
    found = lambda text: [(s.start, s.word.hanzi) for s in words.spans(text.split())]  # noqa: E731
    assert found("ta1 yin1 yue4") == [(1, "阴"), (1, "音月"), (2, "月")]
    assert found("yin2 yue4") == [(0, "阴"), (0, "音月"), (1, "月")]
    assert found("yin yue") == [(0, "阴"), (0, "音月"), (1, "月")]
    assert found("ta1 yin1") == [(1, "阴")]
    assert found("") == []


def test_of_equal_words_that_match_the_last_one_counts():
    words = UserWords([word("喆", "zhe2", 3.0), word("喆", "zhe", 2.0), word("喆", "zhe4", 5.0)])
    weights = {text: [span.word.weight for span in words.spans([text])] for text in ("zhe2", "zhe3", "zhe4")}
    assert weights == {"zhe2": [2.0], "zhe3": [2.0], "zhe4": [5.0]}


def test_an_empty_list_changes_nothing(converter):
    sentences = [list(pinyin) for pinyin, _ in PAIRS] + [[], ["blorp"]]
    sentences = sentences if isinstance(converter, NgramConverter) else sentences[:-2]
    guided = UserWordConverter(converter, UserWords())
    assert guided.convert(sentences) == converter.convert(sentences)
    explained = guided.explain(sentences, n=3)
    assert [explanation.n_best[0].hanzi for explanation in explained] == converter.convert(sentences)


@pytest.mark.parametrize("seed", range(6))
def test_a_heavy_word_is_written_wherever_its_syllables_are(converter, symbols, seed):
    """The word may contain hanzi that are not candidates there, or not in the vocabulary."""
    rng = random.Random(seed)
    tones = [
        token
        for token in symbols.pinyin.tokens
        if token[-1] in "1234" and token[:-1] in ("yi", "shi", "ma", "li")
    ]
    sentences = [[rng.choice(tones) for _ in range(rng.randint(3, 9))] for _ in range(12)]
    at = rng.randint(0, 1)
    hanzi = "".join(rng.choice("喆他好亿乐旳𠮷") for _ in range(2))
    words = UserWords([word(hanzi, " ".join(sentences[0][at : at + 2]), weight=200.0)])
    plain = converter.convert(sentences)
    for sentence, before, after in zip(
        sentences, plain, UserWordConverter(converter, words).convert(sentences), strict=True
    ):
        places = [i for i in range(len(sentence) - 1) if sentence[i : i + 2] == sentences[0][at : at + 2]]
        assert len(after) == len(sentence)
        if not places:
            assert after == before
        assert any(after[i : i + 2] == hanzi for i in places) == bool(places)


def test_the_search_with_user_words_equals_brute_force(ngram, symbols):
    """All paths through a small lexicon, each with its n-gram score and the weights of the words in it."""
    sentence = ["ta1", "men5", "de5", "yin1"]
    words = UserWords(
        [word("她们", "ta1 men5", 0.7), word("他们得", "ta1 men5 de5", 1.1), word("得喑", "de5 yin1", 1.5)]
    )
    choices = [
        sorted({*symbols.lexicon.candidates(syllable), *extra})
        for syllable, extra in zip(sentence, ("", "", "得", "喑"), strict=True)
    ]
    spans = words.spans(sentence)
    paths = ["".join(path) for path in itertools.product(*choices)]
    scored = {}
    for path, score in zip(paths, ngram.scores([sentence] * len(paths), paths), strict=True):
        bonus = sum(s.word.weight * len(s.word.hanzi) for s in spans if path[s.start : s.end] == s.word.hanzi)
        scored[path] = score + bonus
    expected = sorted(scored, key=scored.get, reverse=True)[:8]
    found = UserWordConverter(ngram, words).explain([sentence], 8, reasons=False)[0].n_best
    assert [conversion.hanzi for conversion in found] == expected
    assert [conversion.score for conversion in found] == pytest.approx(
        [scored[path] for path in expected], abs=1e-4
    )
    assert UserWordConverter(ngram, words).convert([sentence]) == expected[:1]


def test_reasons_add_up(ngram):
    words = UserWords([word("阴月", "yin1 yue4", 20.0)])
    sentence = ["ta1", "de5", "yin1", "yue4"]
    (explained,) = UserWordConverter(ngram, words).explain([sentence], n=3)
    assert explained.n_best[0].hanzi == "她的阴月"
    assert [span.word.hanzi for span in explained.user_words] == ["阴月"]
    assert len(explained.n_best) == 3
    for position, character in enumerate(explained.characters):
        assert 0 < character.confidence <= 1
        exchanged = list("她的阴月")
        exchanged[position] = character.runner_up
        best, other = ngram.scores([sentence] * 2, ["她的阴月", exchanged])
        model = sum(value for part, value in character.lead.items() if part != WORDS_PART)
        assert model == pytest.approx(best - other, abs=1e-4)
        assert character.lead[WORDS_PART] == (40.0 if position > 1 else 0.0)
        assert NGRAM_PART in character.lead


def test_syllables_without_tones(ngram):
    assert ngram.convert([["yin", "yue", "hen3", "hao"], ["ta1", "hen", "kuai", "le"]]) == [
        "音乐很好",
        "他很快乐",
    ]
    toned = ngram.convert([["yin1", "yue4", "hen3", "hao3"]])
    mixed = ngram.convert([["yin1", "yue4", "hen3", "hao3"], ["yin", "yue"]])
    assert mixed == [*toned, "音乐"]


def test_no_word_begins_inside_a_user_word(ngram):
    words = UserWords([word("天气", "tian1 qi4"), word("很好啊", "hen3 hao3 a5")])
    assert UserWordConverter(ngram, words).word_starts("今天天气很好天气") == [0, 1, 2, 4, 5, 6]
    assert ngram.word_starts("天气") == [0, 1]
