"""Tests of utils/mandarin/numerals.py: all readings of a number, and numbers read back."""

import pytest

from utils.mandarin.numerals import cardinal, number_readings, whole_number


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


def test_every_reading_of_a_number_is_read_as_that_number():
    for number in (*range(10, 400), 1050, 2002, 20_022, 35_000, 120_305, 2_000_000, 100_002_300, 3 * 10**12):
        assert number_readings(number)[0] == cardinal(number)
        for reading in number_readings(number):
            if set(reading) & set("十百千万亿"):
                assert whole_number(reading) == number, reading


@pytest.mark.parametrize(
    "words", ["七八十", "三五百", "百万", "十七八万", "一百十五", "零百", "四万万", "十千"]
)
def test_words_of_no_number_are_not_read(words):
    assert whole_number(words) is None
