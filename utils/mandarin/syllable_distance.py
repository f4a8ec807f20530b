"""Syllables in; how far apart they sound, and the classic confusions by name, out.

Tokens that are no syllables (Latin letters, digits) sound like nothing but themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from utils.errors import CorpusError
from utils.mandarin.pinyin import Syllable, split_syllable

# What learners, dialect speakers and recognisers mix up, by its usual name. The nasal endings count with any
# medial: ian–iang is an–ang.
INITIAL_CONFUSIONS = {
    frozenset(pair): "–".join(pair)
    for pair in (("zh", "z"), ("ch", "c"), ("sh", "s"), ("n", "l"), ("f", "h"), ("r", "l"))
}
FINAL_CONFUSIONS = {
    frozenset(pair): name
    for name, pairs in {
        "an–ang": (("an", "ang"), ("ian", "iang"), ("uan", "uang")),
        "en–eng": (("en", "eng"), ("uen", "ueng")),
        "in–ing": (("in", "ing"),),
    }.items()
    for pair in pairs
}
NEUTRAL = 5

# A distance is a whole number from 0 to 100: another initial 40, another final 40, another tone 20, and half
# of that where the difference is a classic confusion (of tones: 2–3, or one of them neutral).
FARTHEST = 100
PART, TONE = 40, 20
NEAR = 40


@lru_cache(maxsize=1_000_000)
def syllable_distance(one: str, other: str) -> int:
    """How different two syllables sound, 0 to 100."""
    a, b = parts(one), parts(other)
    if a is None or b is None:
        return 0 if one == other else FARTHEST
    return (
        _part_distance(a.initial, b.initial, INITIAL_CONFUSIONS)
        + _part_distance(_plain(a.final), _plain(b.final), FINAL_CONFUSIONS)
        + (PART // 4 if _erhua(a) != _erhua(b) and _plain(a.final) == _plain(b.final) else 0)
        + _tone_distance(a.tone, b.tone)
    )


def phrase_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """How different two phrases sound: the cheapest alignment of their syllables.

    Two syllables cost what :func:`syllable_distance` says, one that is missing or too many ``FARTHEST``.
    """
    row = [FARTHEST * length for length in range(len(other) + 1)]
    for number, syllable in enumerate(one, 1):
        above, row = row, [FARTHEST * number]
        for place, opposite in enumerate(other):
            same = above[place] + syllable_distance(syllable, opposite)
            row.append(min(same, above[place + 1] + FARTHEST, row[-1] + FARTHEST))
    return row[-1]


@lru_cache(maxsize=100_000)
def parts(token: str) -> Syllable | None:
    """Initial, final and tone of a syllable; None of any other token."""
    try:
        return split_syllable(token)
    except CorpusError:
        return None


def _part_distance(one: str, other: str, classic: dict[frozenset[str], str]) -> int:
    if one == other:
        return 0
    return PART // 2 if frozenset((one, other)) in classic else PART


def _tone_distance(one: int, other: int) -> int:
    if one == other:
        return 0
    return TONE // 2 if NEUTRAL in (one, other) or {one, other} == {2, 3} else TONE


def _erhua(syllable: Syllable) -> bool:
    return syllable.final.endswith("r") and syllable.final != "er"


def _plain(final: str) -> str:
    """A final without erhua."""
    return final[:-1] if final.endswith("r") and final != "er" else final
