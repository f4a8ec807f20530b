"""Hanzi in; the reading of each with tone marks, by pypinyin's phrases and characters, out.

What ``pypinyin.lazy_pinyin`` finds, ten times as fast: that copies each entry of its dictionaries, and
brings each syllable into the wanted style by regular expressions, anew in every call.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from pypinyin.constants import PHRASES_DICT, PINYIN_DICT

from utils.errors import CorpusError


def phrase_readings(text: str) -> list[str]:
    """The readings of a text as the dictionaries spell them (``zhōng``), one a character.

    From the left, always the longest phrase that stands there; what begins no phrase is read as the lone
    character is most often.

    Raises:
        CorpusError: a character has no reading.
    """
    phrases = _phrases_by_beginning()
    readings: list[str] = []
    place = 0
    while place < len(text):
        known = phrases.get(text[place : place + 2], ())
        for phrase in known:
            if text.startswith(phrase, place):
                readings += [one[0] for one in PHRASES_DICT[phrase]]
                place += len(phrase)
                break
        else:
            # pypinyin looks for no more phrases in a rest that may be the beginning of one.
            cut_off = any(phrase.startswith(text[place:]) for phrase in known)
            end = len(text) if cut_off else place + 1
            readings += map(_lone_reading, text[place:end])
            place = end
    return readings


@cache
def _phrases_by_beginning() -> dict[str, tuple[str, ...]]:
    """Two characters to all phrases that begin with them, the longest first."""
    phrases: dict[str, list[str]] = defaultdict(list)
    for phrase in sorted(PHRASES_DICT, key=len, reverse=True):
        phrases[phrase[:2]].append(phrase)
    return {beginning: tuple(found) for beginning, found in phrases.items()}


@cache
def _lone_reading(character: str) -> str:
    readings = PINYIN_DICT.get(ord(character))
    if not readings:
        raise CorpusError(f"'{character}' has no Mandarin reading", hint="write it out in hanzi")
    return readings.split(",")[0]
