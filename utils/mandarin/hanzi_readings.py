"""Hanzi in; one reading with tone marks per character out, from pypinyin's phrases and characters.

The result is that of ``pypinyin.lazy_pinyin``, ten times as fast: ``lazy_pinyin`` copies every dictionary
entry and converts every syllable by regular expressions in each call.
"""

from collections import defaultdict
from functools import cache

from utils.errors import CorpusError
from utils.mandarin.pypinyin_data import characters, phrases


def phrase_readings(text: str) -> list[str]:
    """The readings of a text as the dictionaries spell them (``zhōng``), one per character.

    The text is cut from the left into the longest known phrases. A character that begins no phrase gets its
    most frequent reading.

    Raises:
        CorpusError: a character has no reading.
    """
    beginnings, known_readings = _phrases_by_beginning(), phrases()
    readings: list[str] = []
    start = 0
    while start < len(text):
        candidates = beginnings.get(text[start : start + 2], ())
        for phrase in candidates:
            if text.startswith(phrase, start):
                readings += [alternatives[0] for alternatives in known_readings[phrase]]
                start += len(phrase)
                break
        else:
            # Like pypinyin: where the rest of the text is the beginning of a phrase, no phrases are searched.
            cut_off = any(phrase.startswith(text[start:]) for phrase in candidates)
            end = len(text) if cut_off else start + 1
            readings += map(_most_frequent_reading, text[start:end])
            start = end
    return readings


@cache
def _phrases_by_beginning() -> dict[str, tuple[str, ...]]:
    """For each two characters all phrases that begin with them, the longest first."""
    found: dict[str, list[str]] = defaultdict(list)
    for phrase in sorted(phrases(), key=len, reverse=True):
        found[phrase[:2]].append(phrase)
    return {beginning: tuple(longest_first) for beginning, longest_first in found.items()}


@cache
def _most_frequent_reading(character: str) -> str:
    readings = characters().get(ord(character))
    if not readings:
        raise CorpusError(f"'{character}' has no Mandarin reading", hint="write it out in hanzi")
    return readings.split(",")[0]
