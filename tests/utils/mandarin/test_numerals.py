"""Tests of utils/mandarin/numerals.py: all readings of a number, checked by a parser of Chinese numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.mandarin.numerals import DIGITS, cardinal, number_readings, numbers_to_hanzi, whole_number

UNITS = {"十": 10, "百": 100, "千": 1000}
GROUPS = {"万": 10**4, "亿": 10**8}


def _value(text: str) -> int:
    """The number that a reading means: with units, with the last unit left out, or digit by digit."""
    digits = {digit: value for value, digit in enumerate(DIGITS)} | {"两": 2, "幺": 1}
    if not set(text) & {*UNITS, *GROUPS}:
        return int("".join(str(digits[character]) for character in text))
    total, group, digit, unit, after_zero = 0, 0, 0, 1, True
    for character in text:
        if character in digits:
            digit, after_zero = digits[character], digits[character] == 0 or after_zero
        elif character in UNITS:
            unit, after_zero = UNITS[character], False
            group, digit = group + (digit or 1) * unit, 0
        else:
            unit, after_zero = GROUPS[character], False
            total, group, digit = (total + group + digit) * unit, 0, 0
    return total + group + digit * (1 if after_zero else unit // 10)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, {"零"}),
        (2, {"二", "两"}),
        (10, {"十", "一十"}),
        (12, {"十二", "一十二"}),
        (22, {"二十二"}),
        (105, {"一百零五", "一零五", "幺零五"}),
        (150, {"一百五十", "一百五", "一五零", "幺五零"}),
        (200, {"二百", "两百", "二零零"}),
        (120_000, {"十二万", "一十二万", "一二零零零零", "幺二零零零零"}),
    ],
)
def test_readings(number: int, expected: set[str]):
    assert set(number_readings(number)) == expected


@given(st.one_of(st.integers(0, 10**4), st.integers(0, 10**8 - 1)))
def test_every_reading_means_the_number(number: int):
    readings = number_readings(number)
    assert readings[0] == cardinal(number)
    assert len(set(readings)) == len(readings)
    assert {_value(reading) for reading in readings} == {number}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ("1.5kg", "1.5kg"),
        ("3.5G", "3.5G"),
        ("1,000km", "1,000km"),
        ("50%off", "50%off"),
        ("1.2.3版", "1.2.3版"),
        ("2020,2021年", "二零二零,二零二一年"),
        ("他18岁,2年级", "他十八岁,二年级"),
        ("第1,2名", "第一,二名"),
        ("1.5,2.5米", "一点五,二点五米"),
        ("1,234.5元", "一千二百三十四点五元"),
        ("共3,000.", "共三千."),
        ("0,123", "零,一百二十三"),
        ("1,000,000,000,000,000,000", "一" + "零" * 18),
    ],
)
def test_a_number_is_read_as_a_whole_or_not_at_all(figures: str, words: str):
    assert numbers_to_hanzi(figures) == words


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ("2024年", "二零二四年"),
        ("1949年以来", "一九四九年以来"),
        ("2030年前实现", "二零三零年前实现"),
        ("2008年来到北京", "二零零八年来到北京"),
        ("3000年历史", "三千年历史"),
        ("有1450年的历史", "有一千四百五十年的历史"),
        ("1500年前", "一千五百年前"),
        ("用了1200年时间", "用了一千二百年时间"),
        ("2500年", "二千五百年"),
        ("1900年前后", "一九零零年前后"),
        ("2020年历史最低", "二零二零年历史最低"),
        ("有2000年历史", "有二千年历史"),
        ("2000年之久", "二千年之久"),
        ("2个人", "两个人"),
        ("等了2年,2个月,2 小时", "等了两年,两个月,两 小时"),
        ("2点半", "两点半"),
        ("第2个", "第二个"),
        ("1/2个", "一/二个"),
        ("2月2日", "二月二日"),
        ("2年级", "二年级"),
        ("2元一次方程", "二元一次方程"),
        ("周2天气很好", "周二天气很好"),
        ("中央2台", "中央二台"),
        ("2人转", "二人转"),
        ("第1、2条", "第一、二条"),
        ("第1-2周", "第一-二周"),
        ("2点30分,2.5点", "两点三十分,二点五点"),
        ("1800年前期", "一八零零年前期"),
        ("2次方程", "二次方程"),
        ("2点2分", "两点二分"),
        ("2年龄段", "二年龄段"),
        ("2把手,2把椅子", "二把手,两把椅子"),
        ("90后,80后", "九零后,八零后"),
        ("90后天", "九十后天"),
        ("1米75", "一米七五"),
        ("12个", "十二个"),
        ("2%", "百分之二"),
    ],
)
def test_years_and_quantities_are_told_apart_by_what_follows(figures: str, words: str):
    assert numbers_to_hanzi(figures) == words


def test_every_reading_of_a_number_is_read_as_that_number():
    for number in (*range(10, 400), 1050, 2002, 20_022, 35_000, 120_305, 2_000_000, 100_002_300, 3 * 10**12):
        for reading in number_readings(number):
            if set(reading) & set("十百千万亿"):
                assert whole_number(reading) == number, reading


@pytest.mark.parametrize(
    "words", ["七八十", "三五百", "百万", "十七八万", "一百十五", "零百", "四万万", "十千"]
)
def test_words_of_no_number_are_not_read(words):
    assert whole_number(words) is None
