"""Tests that our use of pypinyin's dictionaries gives the readings of pypinyin."""

import random

import pytest
from pypinyin import Style, lazy_pinyin
from pypinyin.constants import PHRASES_DICT

from utils.errors import CorpusError
from utils.mandarin.hanzi_readings import phrase_readings

PHRASES = sorted(PHRASES_DICT)


def mixtures(count: int, seed: int) -> list[str]:
    """Phrases, beginnings and ends of phrases, and common characters, side by side."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 6)):
            phrase = rng.choice(PHRASES)
            start, end = sorted(rng.choices(range(len(phrase) + 1), k=2))
            parts += [rng.choice([phrase, phrase[:end], phrase[start:], rng.choice("的不一了行长地")])]
        texts.append("".join(parts))
    return list(filter(None, texts))


def test_readings_are_those_of_pypinyin():
    texts = mixtures(3000, seed=3)
    assert [phrase_readings(text) for text in texts] == [lazy_pinyin(t, style=Style.TONE) for t in texts]


@pytest.mark.parametrize("text", ["中a文", "中，文", "好\U000323ae", " "])
def test_hanzi_without_a_reading_are_named(text):
    with pytest.raises(CorpusError, match="has no Mandarin reading"):
        phrase_readings(text)
