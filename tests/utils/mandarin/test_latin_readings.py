"""Tests of the guessed readings of words with Latin letters and digits."""

import re

import pytest

from utils.mandarin.latin_readings import LETTERS, MOST_READINGS, WORDS, spelling_readings
from utils.mandarin.pinyin import full_inventory


def usual(text: str) -> str:
    return " ".join(options[0] for options in spelling_readings(text)[0])


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("3G", "san1 ji4"),
        ("CT", "xi1 ti4"),
        ("C++", "xi1 jia1 jia1"),
        ("AT&T", "ei1 ti4 ti4"),
        ("K歌", "kei4 ge1"),
        ("MP3", "ai2 mu5 pi4 san1"),
        ("ppt", "pi4 pi4 ti4"),
        ("iPhone 15", "ai4 feng1 shi2 wu3"),
        ("hey siri", "hei1 xi1 rui4"),
        ("007", "ling2 ling2 qi1"),
    ],
)
def test_the_usual_reading_of_a_spelling(text, reading):
    assert usual(text) == reading


def test_numbers_are_also_read_digit_by_digit():
    readings = {" ".join(options[0] for options in way) for way in spelling_readings("4S15")}
    assert {"si4 ai2 si5 shi2 wu3", "si4 ai2 si5 yi1 wu3"} <= readings


def test_a_word_that_nobody_can_guess_has_no_reading():
    for text in ("Kubernetes", "hey Bob", "Ω", "α粒子", "C#"):
        assert spelling_readings(text) == []


def test_readings_are_limited():
    assert (
        len(spelling_readings("R" * 40))
        == len(spelling_readings("R" * 40 + "三" + "R" * 40))
        == MOST_READINGS
    )


def test_all_readings_are_syllables():
    named = [*LETTERS.values(), *WORDS.values()]
    assert {syllable for reading in named for syllable in re.split("[/| ]", reading)} <= set(full_inventory())
