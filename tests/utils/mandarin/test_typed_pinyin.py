"""Tests of typed pinyin: spellings, division without spaces, tones, other text, columns."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.errors import CorpusError
from utils.mandarin.pinyin import full_inventory
from utils.mandarin.typed_pinyin import (
    LinePart,
    plain_syllables,
    read_line,
    read_syllables,
)

ONES = [s[:-1] for s in full_inventory() if s.endswith("1") and s[0] not in "mnh" and not s.endswith("r1")]


def best(line: str) -> str:
    """The best reading of each word, other text in brackets."""
    return " ".join(" ".join(p.readings[0]) if p.readings else f"[{p.text}]" for p in read_line(line))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("zhong1", "zhong1"),
        ("zhōng", "zhong1"),
        ("ZHO\u0304NG guo\u0301", "zhong1 guo2"),  # combining marks
        ("lv4 nü3 lu:4 nu:3 nǚ lüè", "lv4 nv3 lv4 nv3 nv3 lve4"),
        ("LU:4 nu:er", "lv4 nv er"),
        ("gaosu: mingtian jian", "gao su [:] ming tian jian"),
        ("LÜ4 Nǚ3", "lv4 [Nǚ3]"),  # two tones
        ("ma5 ma0 tā ma", "ma5 ma5 ta1 ma5"),
        ("ni3hao3", "ni3 hao3"),
        ("Wǒmen dōu shì hǎo péngyou", "wo3 men5 dou1 shi4 hao3 peng2 you5"),
        ("ｎｉ３ ｈａｏ３", "ni3 hao3"),  # full-width
        ("ni3-hao3", "ni3 hao3"),
        ("zhōnɡɡuó bɑ\u0300bɑ", "zhong1 guo2 ba4 ba5"),  # the letters of Chinese textbooks
        ("zhong¹guo² ni³", "zhong1 guo2 ni3"),
        ("lu:⁴ se⁴", "lv4 se4"),
        ("wo a²", "wo a [²]"),
    ],
)
def test_spellings(written, read):
    assert best(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("jintiantianqihenhao", "jin tian tian qi hen hao"),
        ("xian", "xian"),
        ("xi'an xi’an", "xi an xi an"),
        ("xi1an1", "xi1 an1"),
        ("fangan", "fan gan"),
        ("fang'an", "fang an"),
        ("tiananmen", "tian an men"),
        ("yinyue", "yin yue"),
        ("women", "wo men"),
        ("nver", "nv er"),
        ("dier", "di er"),
        ("zheer", "zhe er"),
        ("huar", "hua er"),
        ("huar1 hua1r nar3", "hua1 er5 hua1 er5 na3 er5"),
        ("huarang", "hua rang"),
        ("shanghai", "shang hai"),
        ("zhongguorenminyinhang", "zhong guo ren min yin hang"),
        ("jin1tian1tian1qi4", "jin1 tian1 tian1 qi4"),
        ("jīntiāntiānqìhěnhǎo", "jin1 tian1 tian1 qi4 hen3 hao3"),
        ("ng m er", "ng m er"),
    ],
)
def test_cutting(written, read):
    assert best(written) == read


def test_other_divisions_are_kept_best_first():
    (piece,) = read_line("xian")
    assert piece.readings == (("xian",), ("xi", "an"))
    (piece,) = read_line("fangan")
    assert piece.readings[:2] == (("fan", "gan"), ("fang", "an"))
    assert read_line("xi'an")[0].readings == (("xi", "an"),)


def test_a_bare_syllable_is_neutral_only_where_most_have_a_tone():
    assert best("wo3 de shu1") == "wo3 de5 shu1"
    assert best("wo de shu1") == "wo de shu1"


def test_a_word_without_any_tone_in_a_line_with_tones_may_have_any():
    assert best("wo3 zhu4 zai4 Beijing") == "wo3 zhu4 zai4 bei jing"
    assert best("wo3men dou1 lai2 le") == "wo3 men5 dou1 lai2 le5"


def test_a_final_colon_is_punctuation_if_the_word_is_not_pinyin_with_it():
    pieces = read_line("wo nu: ta", unwritable={"nv"})
    assert [(piece.text, piece.column, piece.readings) for piece in pieces[1:3]] == [
        ("nu", 4, (("nu",),)),
        (":", 6, ()),
    ]


def test_other_text_keeps_its_column_and_the_marks_after_pinyin_become_chinese():
    pieces = read_line("ni3 hao3, wo3 ai4 Python 3.11 ban3! 你好 😀")
    assert [(p.text, p.column) for p in pieces if not p.readings] == [
        ("，", 9),
        ("Python 3.11", 19),
        ("！ 你好 😀", 35),
    ]
    assert pieces[0] == LinePart("ni3", 1, (("ni3",),))
    assert [word for piece in pieces for word in piece.unread] == [("Python", 19)]


def test_text_that_must_be_pinyin_and_is_not_is_named():
    with pytest.raises(CorpusError, match=r"'zhogn1' is not pinyin, column 5"):
        read_syllables("ni3 zhogn1")
    assert read_syllables("ni3hao3 ma") == ("ni3", "hao3", "ma5")


def test_toned_syllables_written_together_come_back():
    rng = random.Random(1)
    for _ in range(300):
        syllables = [rng.choice(ONES) + rng.choice("12345") for _ in range(rng.randint(1, 8))]
        assert best("".join(syllables)).split() == syllables


def test_apostrophes_by_the_norm_bring_every_sequence_back():
    rng = random.Random(2)
    for _ in range(300):
        syllables = [rng.choice([s for s in ONES if s != "er"]) for _ in range(rng.randint(1, 6))]
        written = "".join(f"'{s}" if i and s[0] in "aeo" else s for i, s in enumerate(syllables))
        (piece,) = read_line(written)
        assert tuple(syllables) in piece.readings


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*full_inventory(), *(name[:-1] for name in full_inventory())]), max_size=8))
def test_plain_lines_are_read_the_same_quickly_and_in_full(words):
    line = " ".join(words)
    found = plain_syllables(line)
    if found is not None:
        pieces = read_line(line)
        assert all(len(piece.readings) == 1 for piece in pieces)
        assert found == tuple(syllable for piece in pieces for syllable in piece.readings[0])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("wo3 de", "wo3 de"),  # as many with as without a tone: any tone
        ("wo3 de shu1", "wo3 de5 shu1"),
        ("xian shi4 zhang3", "xian5 shi4 zhang3"),  # among other words it is not xi an
        ("ni hao", "ni hao"),
    ],
)
def test_plain_lines_may_have_syllables_without_a_tone(line, expected):
    assert plain_syllables(line) == tuple(expected.split())


@pytest.mark.parametrize(
    "line",
    ["", " ", "ni3  hao3", "ni3 hao3 ", "Ni3 hao3", "xian", "huar1", "ni3 huar", "ng hao3", "ni3,hao3"],
)
def test_lines_with_ambiguities_are_not_plain_lines(line):
    assert plain_syllables(line) is None
