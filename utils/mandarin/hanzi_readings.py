"""Hanzi in; the reading of each with tone marks, by pypinyin's phrases and characters, out.

What ``pypinyin.lazy_pinyin`` finds, ten times as fast: that copies each entry of its dictionaries, and
brings each syllable into the wanted style by regular expressions, anew in every call.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from utils.errors import CorpusError
from utils.mandarin.pypinyin_data import characters, phrases


def phrase_readings(text: str) -> list[str]:
    """The readings of a text as the dictionaries spell them (``zhōng``), one a character.

    From the left, always the longest phrase that stands there; what begins no phrase is read as the lone
    character is most often.

    Raises:
        CorpusError: a character has no reading.
    """
    beginnings, known_readings = _phrases_by_beginning(), phrases()
    readings: list[str] = []
    place = 0
    while place < len(text):
        known = beginnings.get(text[place : place + 2], ())
        for phrase in known:
            if text.startswith(phrase, place):
                readings += [one[0] for one in known_readings[phrase]]
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
    found: dict[str, list[str]] = defaultdict(list)
    for phrase in sorted(phrases(), key=len, reverse=True):
        found[phrase[:2]].append(phrase)
    return {beginning: tuple(longest_first) for beginning, longest_first in found.items()}


@cache
def _lone_reading(character: str) -> str:
    readings = characters().get(ord(character))
    if not readings:
        raise CorpusError(f"'{character}' has no Mandarin reading", hint="write it out in hanzi")
    return readings.split(",")[0]
