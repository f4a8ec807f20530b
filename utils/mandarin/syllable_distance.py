"""Phonetic distance of two syllables (0 to 100) or phrases; and the names of the classic confusions, zh–z ….

A distance counts different initials, finals and tones, and half for a classic confusion. A token that is not
a syllable (Latin letters, digits) has the largest distance from all other tokens.
"""

from collections.abc import Sequence
from functools import lru_cache

from utils.errors import CorpusError
from utils.mandarin.pinyin import Syllable, split_syllable

# Pairs that learners, dialect speakers and recognisers confuse, with their usual names. Nasal endings count
# with any medial: ian–iang is an–ang.
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
        "un–ong": (("uen", "ong"),),
        "ün–iong": (("vn", "iong"),),
    }.items()
    for pair in pairs
}
NEUTRAL = 5

# A distance is an integer from 0 to 100: 40 for different initials, 40 for different finals, 20 for different
# tones, and half of that for a classic confusion (of tones: 2–3, or one of them neutral).
FARTHEST = 100
PART, TONE = 40, 20
NEAR = 40  # syllables up to this distance count as near: one initial or final, or smaller differences


@lru_cache(maxsize=1_000_000)
def syllable_distance(left: str, right: str) -> int:
    """The phonetic distance of two syllables, 0 to 100."""
    a, b = parts(left), parts(right)
    if a is None or b is None:
        return 0 if left == right else FARTHEST
    return (
        _part_distance(a.initial, b.initial, INITIAL_CONFUSIONS)
        + _part_distance(_without_erhua(a.final), _without_erhua(b.final), FINAL_CONFUSIONS)
        + (PART // 4 if a.final != b.final and _without_erhua(a.final) == _without_erhua(b.final) else 0)
        + _tone_distance(a.tone, b.tone)
    )


def phrase_distance(left: Sequence[str], right: Sequence[str]) -> int:
    """The phonetic distance of two phrases: the cost of the best alignment of their syllables.

    A substitution costs :func:`syllable_distance`, an insertion or a deletion ``FARTHEST``.
    """
    row = [FARTHEST * length for length in range(len(right) + 1)]
    for number, syllable in enumerate(left, 1):
        above, row = row, [FARTHEST * number]
        for index, opposite in enumerate(right):
            substituted = above[index] + syllable_distance(syllable, opposite)
            row.append(min(substituted, above[index + 1] + FARTHEST, row[-1] + FARTHEST))
    return row[-1]


@lru_cache(maxsize=100_000)
def parts(token: str) -> Syllable | None:
    """Initial, final and tone of a syllable; None for any other token."""
    try:
        return split_syllable(token)
    except CorpusError:
        return None


def _part_distance(left: str, right: str, classic: dict[frozenset[str], str]) -> int:
    if left == right:
        return 0
    return PART // 2 if frozenset((left, right)) in classic else PART


def _tone_distance(left: int, right: int) -> int:
    if left == right:
        return 0
    return TONE // 2 if NEUTRAL in (left, right) or {left, right} == {2, 3} else TONE


def _without_erhua(final: str) -> str:
    return final[:-1] if final.endswith("r") and final != "er" else final
