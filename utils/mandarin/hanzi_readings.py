"""Looks up the readings of hanzi, with tone marks, in pypinyin's dictionaries of phrases and characters.

The result is that of ``pypinyin.lazy_pinyin``, ten times as fast: ``lazy_pinyin`` copies every dictionary
entry and converts every syllable by regular expressions in each call. ``pinyin.hanzi_to_pinyin`` calls this
and corrects polyphones.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version as version_of
from typing import Any

from utils.errors import CorpusError

# A reading is plausible if the character has it in at least this fraction of the known phrases with it.
PLAUSIBLE = 0.1


def phrase_readings(text: str) -> list[str]:
    """The readings of a text as the dictionaries spell them (``zhōng``), one per character.

    The text is cut from the left into the longest known phrases. A character that begins no phrase gets its
    most frequent reading.

    Raises:
        CorpusError: a character has no reading.
    """
    return part_readings(known_parts(text))


def part_readings(parts: Iterable[str]) -> list[str]:
    """The readings of the parts of a text that :func:`known_parts` found, one per character.

    Raises:
        CorpusError: a character has no reading.
    """
    known_readings = phrases()
    readings: list[str] = []
    for part in parts:
        if part in known_readings:
            readings += [alternatives[0] for alternatives in known_readings[part]]
        else:
            readings.append(_character_readings(part)[0])
    return readings


def plausible_readings(text: str) -> list[tuple[str, ...]]:
    """For each character the reading of :func:`phrase_readings`, then other readings that it may have here.

    Inside a known phrase these are the other readings of the phrase. Elsewhere they are those that the
    character has in at least a tenth of the known phrases with it.

    Raises:
        CorpusError: a character has no reading.
    """
    known_readings = phrases()
    readings: list[tuple[str, ...]] = []
    for part in known_parts(text):
        if part in known_readings:
            readings += map(tuple, known_readings[part])
        else:
            first = _character_readings(part)[0]
            counts = _readings_in_phrases().get(part, Counter())
            others = [reading for reading, count in counts.items() if count >= PLAUSIBLE * counts.total()]
            readings.append(tuple(dict.fromkeys([first, *others])))
    return readings


def known_parts(text: str) -> Iterator[str]:
    """A text cut from the left into the longest known phrases, and characters that begin no phrase."""
    beginnings = _phrases_by_beginning()
    start = 0
    while start < len(text):
        candidates = beginnings.get(text[start : start + 2], ())
        phrase = next((phrase for phrase in candidates if text.startswith(phrase, start)), None)
        if phrase:
            yield phrase
            start += len(phrase)
            continue
        # Like pypinyin: where the rest of the text is the beginning of a phrase, no phrases are searched.
        cut_off = any(phrase.startswith(text[start:]) for phrase in candidates)
        end = len(text) if cut_off else start + 1
        yield from text[start:end]
        start = end


@cache
def _phrases_by_beginning() -> dict[str, tuple[str, ...]]:
    """For each two characters all phrases that begin with them, the longest first."""
    found: dict[str, list[str]] = defaultdict(list)
    for phrase in sorted(phrases(), key=len, reverse=True):
        found[phrase[:2]].append(phrase)
    return {beginning: tuple(longest_first) for beginning, longest_first in found.items()}


@cache
def _readings_in_phrases() -> dict[str, Counter[str]]:
    """For each character how often it has each reading in the known phrases."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for phrase, readings in phrases().items():
        for character, alternatives in zip(phrase, readings, strict=True):
            found[character][alternatives[0]] += 1
    return found


@cache
def _character_readings(character: str) -> list[str]:
    """All readings of a character, the most frequent first."""
    readings = characters().get(ord(character))
    if not readings:
        raise CorpusError(f"'{character}' has no Mandarin reading", hint="write it out in hanzi")
    return readings.split(",")


@cache
def phrases() -> Mapping[str, list[list[str]]]:
    """Each phrase to a list of readings with tone marks for each of its characters."""
    from pypinyin.constants import PHRASES_DICT  # late import: see the module docstring

    return PHRASES_DICT


@cache
def characters() -> Mapping[int, str]:
    """Each code point to its readings with tone marks, separated by commas, the most frequent first."""
    from pypinyin.constants import PINYIN_DICT

    return PINYIN_DICT


@cache
def version() -> str:
    """The installed version of pypinyin."""
    return version_of("pypinyin")


def possible_readings(hanzi: str) -> list[list[str]]:
    """The possible readings of each character of a word, such as ``zhong1``; ``[""]`` where there is none.

    A known phrase has the readings of that phrase; otherwise a character has all its readings.
    """
    from pypinyin import Style, pinyin

    def unknown(_: str) -> Any:  # a list, which pypinyin takes but its annotations don't
        return [""]

    return pinyin(hanzi, style=Style.TONE3, heteronym=True, neutral_tone_with_five=True, errors=unknown)
