"""Tests of pinyin: normalisation, erhua, parts of a syllable, the inventory, readings of hanzi."""

import pytest
from pypinyin import Style, pinyin

from utils.errors import CorpusError
from utils.mandarin.pinyin import (
    Syllable,
    full_inventory,
    hanzi_to_pinyin,
    is_hanzi,
    is_syllable,
    normalise_syllable,
    split_syllable,
    tone_of,
    without_tone,
)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("zhong1", "zhong1"),
        ("ZHONG1", "zhong1"),
        (" zhong1 ", "zhong1"),
        ("zhōng", "zhong1"),
        ("de", "de5"),
        ("de0", "de5"),
        ("de5", "de5"),
        ("lü4", "lv4"),
        ("lǜ", "lv4"),
        ("lu:4", "lv4"),
        ("nu:e4", "nve4"),
        ("nue4", "nve4"),
        ("zhōnɡ", "zhong1"),
        ("bɑ\u0300", "ba4"),
        ("lüè", "lve4"),
        ("jü2", "ju2"),
        ("yv3", "yu3"),
        ("qvan2", "quan2"),
        ("yue4", "yue4"),
        ("hua1r", "huar1"),
        ("huār", "huar1"),
        ("r5", "er5"),
        ("ń", "n2"),
        ("ňg", "ng3"),
        ("ê4", "ei4"),
        ("chuáng", "chuang2"),
        ("guǐ", "gui3"),
    ],
)
def test_spellings_become_the_canonical_form(written, canonical):
    assert normalise_syllable(written) == canonical


@pytest.mark.parametrize(
    "text", ["", " ", "_", "zong6", "zong12", "hello", "绿", "zh", "bv1", "1", "ni3hao3"]
)
def test_invalid_syllables_are_refused(text):
    assert not is_syllable(text)
    with pytest.raises(CorpusError, match="not a Mandarin syllable"):
        normalise_syllable(text)


def test_erhua_of_any_syllable_is_read_in_the_inventory_or_not():
    assert normalise_syllable("jiongr3") == "jiongr3"
    assert "jiongr3" not in full_inventory()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("zhong1", ("zh", "ong", 1)),
        ("an4", ("", "an", 4)),
        ("yi1", ("", "i", 1)),
        ("wei2", ("", "uei", 2)),
        ("you3", ("", "iou", 3)),
        ("yuan2", ("", "van", 2)),
        ("weng1", ("", "ueng", 1)),
        ("jiu3", ("j", "iou", 3)),
        ("dui4", ("d", "uei", 4)),
        ("lun2", ("l", "uen", 2)),
        ("qu4", ("q", "v", 4)),
        ("xun4", ("x", "vn", 4)),
        ("lve4", ("l", "ve", 4)),
        ("er2", ("", "er", 2)),
        ("ger4", ("g", "er", 4)),
        ("huar1", ("h", "uar", 1)),
        ("shi", ("sh", "i", 5)),
        ("ng4", ("", "ng", 4)),
        ("hng5", ("h", "ng", 5)),
        ("yo1", ("", "io", 1)),
    ],
)
def test_parts_of_a_syllable(text, parts):
    syllable = split_syllable(text)
    assert syllable == Syllable(*parts)
    assert str(syllable) == normalise_syllable(text)
    assert (tone_of(text), without_tone(text)) == (parts[2], str(syllable)[:-1])


def test_inventory_is_canonical_sorted_and_spelled_back():
    inventory = full_inventory()
    assert list(inventory) == sorted(set(inventory))
    assert all(normalise_syllable(s) == s == str(split_syllable(s)) for s in inventory)
    assert {"n2", "ng4", "hm5", "o5", "yo1", "lo5", "nar4", "huar1", "dianr3", "zher4", "de5"} <= set(
        inventory
    )
    assert (
        len({without_tone(s) for s in inventory if split_syllable(s).final[-1:] != "r" or s[:2] == "er"})
        == 422
    )


def test_inventory_covers_all_readings_of_the_6763_common_hanzi():
    inventory, count = set(full_inventory()), 0
    for row in range(0xB0, 0xF8):
        for cell in range(0xA1, 0xFF):
            try:
                hanzi = bytes([row, cell]).decode("gb2312")
            except UnicodeDecodeError:
                continue
            count += 1
            (readings,) = pinyin(hanzi, style=Style.TONE3, heteronym=True, neutral_tone_with_five=True)
            missing = {reading for reading in readings if normalise_syllable(reading) not in inventory}
            assert not missing, hanzi
    assert count == 6763


def test_reading_depends_on_the_phrase():
    assert hanzi_to_pinyin("银行") == ["yin2", "hang2"]
    assert hanzi_to_pinyin("旅行") == ["lv3", "xing2"]
    assert hanzi_to_pinyin("长大") == ["zhang3", "da4"]
    assert hanzi_to_pinyin("") == hanzi_to_pinyin("", []) == []


def test_known_words_cut_the_phrases_and_leave_particles_neutral():
    words = ["慢慢", "地", "走", "得", "很快"]
    assert hanzi_to_pinyin("".join(words), words) == ["man4", "man4", "de5", "zou3", "de5", "hen3", "kuai4"]
    assert hanzi_to_pinyin("土地", ["土地"]) == ["tu3", "di4"]
    with pytest.raises(CorpusError, match="are not the text"):
        hanzi_to_pinyin("土地", ["土"])


@pytest.mark.parametrize("text", ["三D打印", "你好，", "你 好", "3"])
def test_hanzi_without_a_reading_are_an_error(text):
    with pytest.raises(CorpusError, match="no Mandarin reading"):
        hanzi_to_pinyin(text)


def test_is_hanzi():
    assert is_hanzi("绿〇𠮷")
    assert not any(map(is_hanzi, ["", "绿a", "，", "1", " ", "あ"]))
