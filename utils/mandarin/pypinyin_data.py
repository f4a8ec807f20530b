"""Access to pypinyin's dictionaries of phrases and characters, loaded at first use.

Loading takes a third of a second and 60 MB, and the conversion of pinyin to hanzi never needs them.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version as version_of


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

    return pinyin(
        hanzi, style=Style.TONE3, heteronym=True, neutral_tone_with_five=True, errors=lambda _: [""]
    )
