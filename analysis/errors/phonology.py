"""Hanzi in; how they are read, and how far apart two of them sound, out."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache, lru_cache

from pypinyin import Style, pinyin
from pypinyin.constants import PHRASES_DICT

from utils.mandarin.pinyin import is_hanzi, is_syllable, normalise_syllable
from utils.mandarin.syllable_distance import FARTHEST, NEUTRAL, parts, syllable_distance

# A reading of a polyphone is in use if it has this share of the phrases that hold the hanzi.
SHARE_IN_USE = 0.02


@lru_cache(maxsize=1_000_000)
def hanzi_distance(one: str, other: str) -> int:
    """How different two hanzi sound: the distance of their nearest readings; 100 for what is never read."""
    distances = (syllable_distance(a, b) for a in readings(one) for b in readings(other))
    return min(distances, default=FARTHEST)


@lru_cache(maxsize=50_000)
def readings(hanzi: str) -> tuple[str, ...]:
    """All syllables that a character is read as, by pypinyin's dictionary; none for anything but hanzi."""
    if len(hanzi) != 1 or not is_hanzi(hanzi):
        return ()
    found = pinyin(hanzi, style=Style.TONE3, heteronym=True, errors="ignore", neutral_tone_with_five=True)
    if not found:
        return ()
    return tuple(dict.fromkeys(normalise_syllable(one) for one in found[0] if is_syllable(one)))


@lru_cache(maxsize=50_000)
def readings_in_use(hanzi: str) -> tuple[str, ...]:
    """The readings that modern phrases have: 大 is da4 (dai4 is rare, and left out), 行 is xing2 and hang2.

    The first reading of the dictionary, and those in at least 2 % (and two) of its phrases with this hanzi.
    """
    counts = _phrase_readings().get(hanzi, Counter())
    least = max(2, SHARE_IN_USE * sum(counts.values()))
    frequent = [reading for reading, count in counts.most_common() if count >= least]
    return tuple(dict.fromkeys([*readings(hanzi)[:1], *frequent]))


def is_polyphone(hanzi: str) -> bool:
    """Whether it has several readings in use that differ in more than a neutral tone."""
    full = [one for one in readings_in_use(hanzi) if not one.endswith(str(NEUTRAL))]
    return len(full) > 1


def differs_by_tone_only(one: str, other: str) -> bool:
    """Two different syllables with the same initial and final."""
    a, b = parts(one), parts(other)
    return a is not None and b is not None and (a.initial, a.final) == (b.initial, b.final) and a != b


@cache
def _phrase_readings() -> dict[str, Counter[str]]:
    """How often each hanzi of pypinyin's phrases is read how."""
    written: Counter[tuple[str, str]] = Counter()
    for phrase, spelled in PHRASES_DICT.items():
        if len(phrase) == len(spelled):
            written.update((hanzi, options[0]) for hanzi, options in zip(phrase, spelled, strict=True))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (hanzi, spelling), count in written.items():
        if is_syllable(spelling):
            counts[hanzi][normalise_syllable(spelling)] += count
    return counts
