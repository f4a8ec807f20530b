"""Reads polyphones.tsv, sentences with the readings of their polyphones, and counts correct readings."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from utils.mandarin.pinyin import hanzi_to_pinyin

LIST = Path(__file__).with_name("polyphones.tsv")
TUNED, UNSEEN, PHRASES = "tune", "score", "phrases"


class Sentence(NamedTuple):
    """A sentence, its part of the list, and for some of its characters the accepted readings."""

    part: str
    text: str
    readings: dict[int, frozenset[str]]


@cache
def read_sentences() -> tuple[Sentence, ...]:
    """All sentences of the list."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return tuple(_sentence(*line.split("\t")) for line in lines if not line.startswith("#"))


def _sentence(part: str, marked: str) -> Sentence:
    text, readings = "", {}
    for character, accepted in re.findall(r"(.)(?:\{([^}]*)\})?", marked):
        if accepted:
            readings[len(text)] = frozenset(accepted.split("|"))
        text += character
    return Sentence(part, text, readings)


def accuracy(part: str, read: Callable[[str], Sequence[str]] = hanzi_to_pinyin) -> tuple[int, int]:
    """Number of characters of a part of the list that ``read`` reads correctly, and of all."""
    right = count = 0
    for sentence in read_sentences():
        if sentence.part == part:
            syllables = read(sentence.text)
            count += len(sentence.readings)
            right += sum(syllables[position] in accepted for position, accepted in sentence.readings.items())
    return right, count
