"""pypinyin's dictionaries, loaded when they are first asked for.

They take a third of a second and 60 MB, and who turns pinyin into hanzi never asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version as version_of


@cache
def phrases() -> Mapping[str, list[list[str]]]:
    """Phrase → of each character its readings with tone marks."""
    from pypinyin.constants import PHRASES_DICT  # here: see the first lines

    return PHRASES_DICT


@cache
def characters() -> Mapping[int, str]:
    """Code point → its readings with tone marks, commas between them, the most frequent first."""
    from pypinyin.constants import PINYIN_DICT

    return PINYIN_DICT


@cache
def version() -> str:
    """The version that is installed."""
    return version_of("pypinyin")


def possible_readings(hanzi: str) -> list[list[str]]:
    """What each character of a word may be read as, like ``zhong1``; nothing ([""]) of one without a reading.

    By the phrase if that is known, else all readings of each.
    """
    from pypinyin import Style, pinyin

    return pinyin(
        hanzi, style=Style.TONE3, heteronym=True, neutral_tone_with_five=True, errors=lambda _: [""]
    )
