"""Syllables and hanzi in; how far apart they sound, and in what they differ by the classic confusions, out.

Tokens that are no syllables (Latin letters, digits) sound like nothing but themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache, lru_cache

from pypinyin import Style, pinyin
from pypinyin.constants import PHRASES_DICT

from utils.errors import CorpusError
from utils.pinyin import Syllable, is_hanzi, is_syllable, normalise_syllable, split_syllable

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
# A reading of a polyphone is in use if it has this share of the phrases that hold the hanzi.
SHARE_IN_USE = 0.02


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


@lru_cache(maxsize=1_000_000)
def hanzi_distance(one: str, other: str) -> int:
    """How different two hanzi sound: the distance of their nearest readings; 100 for what is never read."""
    distances = (syllable_distance(a, b) for a in readings(one) for b in readings(other))
    return min(distances, default=FARTHEST)


@lru_cache(maxsize=100_000)
def parts(token: str) -> Syllable | None:
    """Initial, final and tone of a syllable; None of any other token."""
    try:
        return split_syllable(token)
    except CorpusError:
        return None


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
