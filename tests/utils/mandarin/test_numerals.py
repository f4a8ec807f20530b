"""Tests of utils/mandarin/numerals.py: all readings of a number, checked by a parser of Chinese numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.mandarin.numerals import DIGITS, cardinal, number_readings, whole_number

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
