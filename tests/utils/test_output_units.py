"""Tests of the output units of acoustic models: tokens of utterances, and syllables of recognised tokens."""

import pytest

from utils.mandarin.output_units import (
    HANZI,
    PARTS,
    TONAL,
    TONELESS,
    UNITS,
    compared,
    inventory_of,
    last_tokens,
    read_tokens,
    tokens_of,
    units_of,
)
from utils.mandarin.pinyin import full_inventory, without_tone
from utils.vocabulary import SPACE, acoustic_vocabulary

PINYIN, TEXT = ("zhong1", "guo2", "an1", "er2", "lv4", "wei4", "shi4"), "中国安儿绿为是"


@pytest.mark.parametrize(
    ("units", "tokens"),
    [
        (TONAL, PINYIN),
        (TONELESS, ("zhong", "guo", "an", "er", "lv", "wei", "shi")),
        (PARTS, ("zh", "ong1", "g", "uo2", "an1", "er2", "l", "v4", "uei4", "sh", "i4")),
        (HANZI, tuple(TEXT)),
    ],
)
def test_tokens_become_the_syllables_again(units, tokens):
    assert tokens_of(units, PINYIN, TEXT) == tokens
    pinyin, ends, hanzi = read_tokens(units, [SPACE, *tokens, SPACE])
    expected = tuple(map(without_tone, PINYIN)) if units == TONELESS else PINYIN
    assert pinyin == expected or units == HANZI
    assert hanzi == (TEXT if units == HANZI else "")
    assert len(ends) == len(PINYIN) and ends[-1] == len(tokens)


def test_every_syllable_has_one_initial_and_final():
    inventory = full_inventory()
    pinyin, _, _ = read_tokens(PARTS, tokens_of(PARTS, inventory, ""))
    assert pinyin == inventory
    assert len(inventory_of(PARTS)) < 300 < len(inventory_of(TONELESS)) < len(inventory_of(TONAL))


def test_initials_that_fit_no_final_are_left_out():
    assert read_tokens(PARTS, ("zh", "b", "iong1", "zh"))[:2] == (("yong1",), (2,))


@pytest.mark.parametrize("units", UNITS)
def test_a_vocabulary_names_its_units(units):
    tokens = tokens_of(units, PINYIN, TEXT)
    assert units_of(acoustic_vocabulary(tokens, units).tokens) == units


def test_few_initials_and_finals_are_still_known_as_such():
    assert units_of(("b", "a1", "an1", SPACE)) == PARTS
    assert units_of(("a1", "an1", "er2", SPACE)) == TONAL


@pytest.mark.parametrize("units", UNITS)
def test_what_is_recognised_is_compared_with_the_text_in_the_same_units(units):
    pinyin, _, hanzi = read_tokens(units, tokens_of(units, PINYIN, TEXT))
    assert compared(units, pinyin, hanzi) == compared(units, PINYIN, TEXT)
    assert len(compared(units, PINYIN, TEXT)) == len(PINYIN)


@pytest.mark.parametrize("units", UNITS)
def test_each_syllable_ends_with_a_token(units):
    tokens = tokens_of(units, PINYIN, TEXT)
    _, ends, _ = read_tokens(units, tokens)
    assert last_tokens(units, PINYIN, TEXT) == tuple(tokens[end] for end in ends)
    assert last_tokens(HANZI, PINYIN, TEXT[1:]) == ("",) * len(PINYIN)
