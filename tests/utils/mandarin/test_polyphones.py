"""Tests of the readings of polyphones: accuracy, rules, spoken variants of citation readings."""

import re

import pytest

from tests.support.polyphones import PHRASES, TUNED, UNSEEN, accuracy, read_sentences
from utils.mandarin.pinyin import full_inventory, hanzi_to_pinyin
from utils.mandarin.polyphones import read_rules
from utils.mandarin.sandhi import spoken_variants


def test_readings_are_as_good_as_measured():
    """Measured: 85.8 and 85.1 % by pypinyin alone, 100 and 97.4 % with the rules."""
    for part in (TUNED, PHRASES):
        right, count = accuracy(part)
        assert right == count > 0
    right, count = accuracy(UNSEEN)
    assert right / count >= 0.95


@pytest.mark.parametrize(("part", "least"), [(TUNED, 0.95), (UNSEEN, 0.91)])
def test_polyphones_that_are_words_are_read_as_well_as_measured(part, least):
    """Measured: 96.0 and 92.0 %; 52.0 and 46.6 % where a word of one character is read by itself."""

    def read(text: str) -> list[str]:
        (readings,) = (sentence.readings for sentence in read_sentences() if sentence.text == text)
        words = re.split(f"([{''.join({text[position] for position in readings})}])", text)
        return hanzi_to_pinyin(text, [word for word in words if word])

    right, count = accuracy(part, read)
    assert right / count >= least


def test_rules_read_as_canonical_syllables_of_their_character():
    inventory = set(full_inventory())
    for character, rules in read_rules().items():
        assert len(character) == 1
        assert all(rule.reading in inventory for rule in rules)
        # Rules after an unconditional rule are never reached.
        assert not any(rule.before is rule.after is None for rule in rules[:-1]), character


@pytest.mark.parametrize(
    ("hanzi", "cited", "spoken"),
    [
        ("你好", "ni3 hao3", "ni3|ni2 hao3"),
        ("展览馆", "zhan3 lan3 guan3", "zhan3|zhan2 lan3|lan2 guan3"),
        ("很漂亮", "hen3 piao4 liang5", "hen3 piao4 liang5|liang4"),
        ("不对", "bu4 dui4", "bu4|bu2 dui4"),
        ("不好", "bu4 hao3", "bu4 hao3"),
        ("是不是", "shi4 bu2 shi4", "shi4 bu2|bu4|bu5 shi4"),
        ("一定", "yi1 ding4", "yi1|yi2 ding4"),
        ("一天", "yi1 tian1", "yi1|yi4 tian1"),
        ("一年级", "yi1 nian2 ji2", "yi1 nian2 ji2"),
        ("过了一年", "guo4 le5 yi1 nian2", "guo4 le5 yi1|yi4 nian2"),
        ("三点一刻", "san1 dian3 yi1 ke4", "san1 dian3 yi1|yi2 ke4"),
        ("统一行动", "tong3 yi1 xing2 dong4", "tong3 yi1 xing2 dong4"),
        ("一千一百一", "yi1 qian1 yi1 bai3 yi1", "yi1|yi4 qian1 yi1|yi4 bai3 yi1"),
        ("第一天", "di4 yi1 tian1", "di4 yi1 tian1"),
        ("一月", "yi2 yue4", "yi2|yi1 yue4"),
        ("看一看", "kan4 yi2 kan4", "kan4 yi2|yi1|yi5 kan4"),
        ("朋友", "peng2 you3", "peng2 you3|you5"),
        ("我们的地", "wo3 men5 de5 di4", "wo3 men5|men2 de5|di4 di4"),
        ("慢慢地走", "man4 man4 de5 zou3", "man4 man4 de5|di4 zou3"),
        ("跑得快", "pao3 de5 kuai4", "pao3 de5|de2 kuai4"),
        ("妈妈", "ma1 ma5", "ma1 ma5|ma1"),
        ("起来", "qi3 lai2", "qi3 lai2|lai5"),
        ("", "", ""),
    ],
)
def test_spoken_variants_of_the_citation_reading(hanzi, cited, spoken):
    expected = [tuple(alternatives.split("|")) for alternatives in spoken.split()]
    assert [tuple(alternatives) for alternatives in spoken_variants(hanzi, cited.split())] == expected
