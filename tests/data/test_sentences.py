"""Tests of the grammar of the synthetic corpus: size, readings, coverage; text given by the user."""

import numpy as np
import pytest

from data.synthesis.reading import (
    Sentence,
    make_sentence,
    spoken_reading,
)
from data.synthesis.sentences import (
    MAX_SYLLABLES,
    MIN_SYLLABLES,
    Grammar,
    draw_sentences,
    read_grammar,
    read_sentences,
)
from utils.errors import CorpusError

SMALL = """
# a comment
animal =
    猫 狗
    老虎
size :
    很 大
    不 <size2>
size2 =
    小 高
sentence.one :
    <animal> <size>
    一 只 <animal> ， <size>
"""


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    return read_grammar()


@pytest.fixture(scope="module")
def sentences(grammar: Grammar) -> list[Sentence]:
    return draw_sentences(4900, 0, grammar)


def test_same_seed_same_sentences_and_fewer_are_the_beginning(grammar, sentences):
    again = draw_sentences(300, 0, grammar)
    assert again == sentences[:300]
    assert draw_sentences(50, 1, grammar) != sentences[:50]


def test_sentences_are_distinct_and_of_the_right_length(sentences):
    assert len({s.hanzi for s in sentences}) == len(sentences) == 4900
    lengths = [len(s.pinyin) for s in sentences]
    assert min(lengths) >= MIN_SYLLABLES and max(lengths) <= MAX_SYLLABLES
    assert 8 <= np.mean(lengths) <= 10
    assert all(len(s.hanzi) == len(s.pinyin) for s in sentences)


@pytest.mark.parametrize(
    ("words", "spoken"),
    [
        ("我 想 买 水", "wo2 xiang2 mai2 shui3"),
        ("好 ， 我 去", "hao3 wo3 qu4"),
        ("不 是", "bu2 shi4"),
        ("不 好", "bu4 hao3"),
        ("一 个 人", "yi2 ge4 ren2"),
        ("一百", "yi4 bai3"),
        ("一起", "yi4 qi3"),
        ("一月 一 号", "yi1 yue4 yi1 hao4"),
        ("二十 一 度", "er4 shi2 yi1 du4"),
        ("星期 一 上午", "xing1 qi1 yi1 shang4 wu3"),
        ("第 一 页", "di4 yi1 ye4"),
        ("一 ， 二", "yi1 er4"),
    ],
)
def test_spoken_reading(words, spoken):
    assert " ".join(spoken_reading(make_sentence(words.split()))) == spoken


def test_an_exhausted_grammar_is_reported(tmp_path):
    (tmp_path / "small.txt").write_text(SMALL, encoding="utf-8")
    with pytest.raises(CorpusError, match="hardly has 30 sentences"):
        draw_sentences(30, 0, read_grammar(tmp_path / "small.txt"))


def test_own_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(
        "今天天气很好。\n\nwo3 men hai2 shi4 zou3 ba\t我们还是走吧\n你好，世界！\n"
        "用 GPS 导航\n今天天气很好\nni3\t你好\n嗯好的\n",
        encoding="utf-8",
    )
    found, rejected = read_sentences(path)
    assert found == [
        Sentence(("今天天气很好",), ("jin1", "tian1", "tian1", "qi4", "hen3", "hao3")),
        Sentence(("我们还是走吧",), ("wo3", "men5", "hai2", "shi4", "zou3", "ba5")),
        Sentence(("你好", "世界"), ("ni3", "hao3", "shi4", "jie4"), (2,)),
    ]
    assert [number for number, _ in rejected] == [2, 5, 6, 7, 8]
    assert rejected[-2:] == [
        (7, "syllables and hanzi differ in number: 1 and 2"),
        (8, "the synthesiser can't say n2"),
    ]


def test_own_text_that_cannot_be_used(tmp_path):
    with pytest.raises(CorpusError, match="can't read the text"):
        read_sentences(tmp_path / "absent.txt")
    (tmp_path / "latin.txt").write_text("hello\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="no line can be spoken"):
        read_sentences(tmp_path / "latin.txt")
    (tmp_path / "long.txt").write_text("好" * 41 + "\n好人\n", encoding="utf-8")
    assert read_sentences(tmp_path / "long.txt")[1] == [(1, "41 syllables, more than 40")]
