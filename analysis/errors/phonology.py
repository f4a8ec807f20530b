"""Readings of a hanzi in pypinyin's dictionary, and the distance between the sounds of two hanzi."""

from collections import Counter, defaultdict
from functools import cache, lru_cache

from pypinyin import Style, pinyin
from pypinyin.constants import PHRASES_DICT

from utils.mandarin.pinyin import is_hanzi, is_syllable, normalise_syllable
from utils.mandarin.syllable_distance import FARTHEST, NEUTRAL, parts, syllable_distance

# A reading of a polyphone is common if at least this fraction of the phrases with the hanzi have it.
MIN_PHRASE_FRACTION = 0.02


@lru_cache(maxsize=1_000_000)
def hanzi_distance(first: str, second: str) -> int:
    """The distance between the most similar readings of two hanzi; 100 if one of them has no reading."""
    distances = (syllable_distance(a, b) for a in readings(first) for b in readings(second))
    return min(distances, default=FARTHEST)


@lru_cache(maxsize=50_000)
def readings(hanzi: str) -> tuple[str, ...]:
    """All readings of a hanzi in pypinyin's dictionary; empty for other characters."""
    if len(hanzi) != 1 or not is_hanzi(hanzi):
        return ()
    found = pinyin(hanzi, style=Style.TONE3, heteronym=True, errors="ignore", neutral_tone_with_five=True)
    if not found:
        return ()
    return tuple(dict.fromkeys(normalise_syllable(text) for text in found[0] if is_syllable(text)))


@lru_cache(maxsize=50_000)
def readings_in_use(hanzi: str) -> tuple[str, ...]:
    """The common readings of a hanzi: 大 is da4 (dai4 is rare, and left out), 行 is xing2 and hang2.

    Common are the first reading in the dictionary, and those of at least 2 % and at least two of its phrases
    with this hanzi.
    """
    counts = _phrase_readings().get(hanzi, Counter())
    minimum = max(2, MIN_PHRASE_FRACTION * sum(counts.values()))
    frequent = [reading for reading, count in counts.most_common() if count >= minimum]
    return tuple(dict.fromkeys([*readings(hanzi)[:1], *frequent]))


def is_polyphone(hanzi: str) -> bool:
    """Whether a hanzi has several common readings that are not in the neutral tone."""
    stressed = [reading for reading in readings_in_use(hanzi) if not reading.endswith(str(NEUTRAL))]
    return len(stressed) > 1


def differs_by_tone_only(first: str, second: str) -> bool:
    """Whether two syllables have the same initial and final and different tones."""
    a, b = parts(first), parts(second)
    return a is not None and b is not None and (a.initial, a.final) == (b.initial, b.final) and a != b


@cache
def _phrase_readings() -> dict[str, Counter[str]]:
    """The readings of each hanzi in pypinyin's phrases, with the number of phrases."""
    written: Counter[tuple[str, str]] = Counter()
    for phrase, spelled in PHRASES_DICT.items():
        if len(phrase) == len(spelled):
            written.update((hanzi, options[0]) for hanzi, options in zip(phrase, spelled, strict=True))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (hanzi, spelling), count in written.items():
        if is_syllable(spelling):
            counts[hanzi][normalise_syllable(spelling)] += count
    return counts
