"""Tests of text from a dictionary: every word, frequent words more often, reproducible by the seed."""

import sys
from collections import Counter

import pytest

from data.text.dictionary_text import NAME_FREQUENCY, add_names, dictionary_lines, read_dictionary
from utils.errors import ConfigError
from utils.mandarin.pinyin import is_hanzi

WORDS = {"的": 10_000, "中国": 160, "人民": 10, "图书馆": 1, "无": 0, "罕见词": 0}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package ``jieba`` with this dictionary on the path; importing it fails."""

    def installed(dictionary: str | None) -> None:
        package = tmp_path / "jieba"
        package.mkdir()
        (package / "__init__.py").write_text("raise AssertionError('imported')", encoding="utf-8")
        if dictionary is not None:
            (package / "dict.txt").write_text(dictionary, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))

    return installed


def test_the_dictionary_is_read_without_its_package(install):
    install("AT&T 3 nz\nB超 3 n\n中国 160 ns\n的 318825 uj\n图书馆 7 n\n")
    words = read_dictionary()
    assert (words["中国"], words["的"], words["图书馆"]) == (160, 318825, 7)
    assert "B超" not in words
    assert "jieba" not in sys.modules
    assert words["一丝不苟"] == 1  # pypinyin's phrases and the dictionary that gives their readings
    assert all(is_hanzi(word) for word in words)


@pytest.mark.parametrize("dictionary", [None, "中国 ns\n", "中国 viel ns\n"])
def test_a_damaged_dictionary_is_named(install, dictionary):
    install(dictionary)
    with pytest.raises(ConfigError, match=r"jieba.*dict\.txt.*pip install jieba"):
        read_dictionary()


def test_each_word_of_two_hanzi_and_more_is_there_once():
    lines = list(dictionary_lines({f"中{chr(0x4E00 + i)}": i for i in range(20)} | {"的": 5}, 0))
    assert [len(line) for line in lines] == [16, 16, 8]
    pairs = ["".join(line)[i : i + 2] for line in lines for i in range(0, len(line), 2)]
    assert sorted(pairs) == sorted(f"中{chr(0x4E00 + i)}" for i in range(20))
    assert pairs != sorted(pairs)


def test_words_are_drawn_by_a_power_of_their_frequency():
    text = "".join(dictionary_lines(WORDS, 60_000))
    found = Counter({word: text.count(word) - (len(word) > 1) for word in WORDS})
    total = 1000 + 160**0.75 + 10**0.75 + 1
    for word, weight in (("的", 1000), ("中国", 160**0.75), ("人民", 10**0.75)):
        assert found[word] == pytest.approx(60_000 * weight / total, rel=0.15)
    assert (found["无"], found["罕见词"]) == (0, 0)


def test_names_are_words_with_a_frequency_of_their_own(tmp_path):
    (tmp_path / "names.txt").write_text("\ufeff萨根标准\n李\nABC公司\n北京\n链球菌\n", encoding="utf-8")
    words = {"北京": 34488, "链球菌": 3}
    add_names(words, tmp_path / "names.txt")
    assert words == {"北京": 34488, "链球菌": NAME_FREQUENCY, "萨根标准": NAME_FREQUENCY}
