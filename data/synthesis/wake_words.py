"""A wake word in hanzi in; how it may be said, and what sounds nearly like it and isn't it, out.

Whatever sounds as the word does is the word: homophones, and a third tone that rises before another (你好 ni3
hao3, said ni2 hao3). None of that, nor anything that contains it, is among the negatives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product

from data.synthesis.reading import word_reading
from utils.errors import CorpusError
from utils.mandarin.pinyin import full_inventory, has_tone, is_hanzi, tone_of
from utils.mandarin.pypinyin_data import phrases
from utils.mandarin.sandhi import said_third, spoken_variants
from utils.mandarin.substitutions import split_parts
from utils.mandarin.syllable_distance import NEAR, NEUTRAL, phrase_distance, syllable_distance
from utils.mandarin.typed_pinyin import read_syllables

LONGEST = 6  # syllables
INITIAL, FINAL, TONE, PART, REPEATED, ORDER, WORD = (
    *("initial", "final", "tone"),
    *("part", "repeated", "order", "word"),
)
NEAR_KINDS = (INITIAL, FINAL, TONE)
MOST_NEAR, MOST_WORDS = 60, 40
_VOWEL = re.compile("[aeiouv]")
_MOST_FORMS = 16  # of one phrase; two ways for each of four syllables
_WORD_DISTANCE = 100  # of a dictionary's word from the wake word or a part of it


@dataclass(frozen=True)
class WakeWord:
    """A word and how it sounds.

    Attributes:
        hanzi: the label.
        syllables: canonical citation, one a hanzi.
        forms: all that may be heard when somebody says it; the citation comes first.
    """

    hanzi: str
    syllables: tuple[str, ...]
    forms: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Negative:
    """Something that isn't the wake word.

    Attributes:
        syllables: canonical.
        kind: how it was found.
        distance: from the nearest form of the wake word
        (``utils.mandarin.syllable_distance.phrase_distance``). hanzi: of a word, a sentence or a part of the
        wake word. spoken: what a synthesiser is told, if that isn't the citation.
        pauses: numbers of syllables after which the speaker pauses.
    """

    syllables: tuple[str, ...]
    kind: str
    distance: int
    hanzi: str = ""
    spoken: tuple[str, ...] = ()
    pauses: tuple[int, ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """What a synthesiser is told."""
        return self.spoken or self.syllables


def read_wake_word(hanzi: str, pinyin: str = "") -> WakeWord:
    """Read a word aloud.

    Args:
        hanzi: 1 to 6 characters.
        pinyin: its reading, where the dictionary's is not meant (``"chong2 qing4"``); a tone for each.

    Raises:
        CorpusError: something else than hanzi, too long, or a reading that doesn't fit.
    """
    hint = 'write it as it is said, in Chinese characters: "你好小明"'
    if not hanzi:
        raise CorpusError("the wake word is empty", hint=hint)
    if strange := [character for character in hanzi if not is_hanzi(character)]:
        shown = ", ".join(f"'{character}'" for character in dict.fromkeys(strange))
        what = f"the wake word '{hanzi}' holds other things than hanzi: {shown}"
        raise CorpusError(what, hint=hint)
    if len(hanzi) > LONGEST:
        what = f"the wake word '{hanzi}' has {len(hanzi)} syllables, more than {LONGEST}"
        raise CorpusError(what, hint="choose a shorter one: three or four syllables are usual")
    syllables = _given(hanzi, pinyin) if pinyin else word_reading(hanzi)
    return WakeWord(hanzi, syllables, tuple(_forms(spoken_variants(hanzi, syllables))))


def near_phrases(word: WakeWord, most: int = MOST_NEAR, distance: int = NEAR) -> list[Negative]:
    """Phrases of which one syllable has another initial, final or tone: the most confusable ones first.

    Args:
        word: the wake word.
        most: phrases; of equally near ones each place of the word has its share.
        distance: the largest that a phrase may have.
    """
    found: dict[tuple[str, ...], Negative] = {}
    for place, syllable in enumerate(word.syllables):
        for other, kind in _changed(syllable):
            changed = (*word.syllables[:place], other, *word.syllables[place + 1 :])
            negative = Negative(changed, kind, _distance(changed, word))
            if 0 < negative.distance <= distance and not sounds_like(changed, word):
                found.setdefault(changed, negative)
    return _dealt_out(found.values(), word, most)


def parts_of(word: WakeWord) -> list[Negative]:
    """Beginnings, ends, stretches and single syllables; those twice; the word in another order."""
    count = len(word.syllables)
    places = [(s, e) for s in range(count) for e in range(s + 1, count + 1) if e - s < count]
    wanted = [(tuple(range(start, end)), PART) for start, end in places]
    wanted += [((*range(start, end), *range(start, end)), REPEATED) for start, end in places]
    wanted += [((*range(cut, count), *range(cut)), ORDER) for cut in range(1, count)]
    wanted += [(tuple(reversed(range(count))), ORDER)]
    found: dict[tuple[str, ...], Negative] = {}
    for chosen, kind in wanted:
        syllables = tuple(word.syllables[place] for place in chosen)
        if len(syllables) <= LONGEST and not sounds_like(syllables, word):
            hanzi = "".join(word.hanzi[place] for place in chosen)
            found.setdefault(syllables, Negative(syllables, kind, _distance(syllables, word), hanzi))
    return list(found.values())


def near_words(word: WakeWord, most: int = MOST_WORDS) -> list[Negative]:
    """Words of the dictionary that sound like the wake word, or like its two first or two last syllables."""
    targets = {word.syllables, word.syllables[:2], word.syllables[-2:]}
    lengths = {len(target) for target in targets if len(target) > 1}
    found: dict[tuple[str, ...], tuple[int, Negative]] = {}
    for hanzi, syllables in _dictionary():
        if len(syllables) not in lengths or syllables in targets:
            continue
        nearest = min(
            sum(map(syllable_distance, target, syllables))
            for target in targets
            if len(target) == len(syllables)
        )
        if nearest <= _WORD_DISTANCE and syllables not in found and not sounds_like(syllables, word):
            found[syllables] = nearest, Negative(syllables, WORD, _distance(syllables, word), hanzi)
    ranked = sorted(found.values(), key=lambda pair: (pair[0], pair[1].syllables))
    return [negative for _, negative in ranked[:most]]


def sounds_like(syllables: Sequence[str], word: WakeWord) -> bool:
    """Whether the word, in one of its forms, may be heard in this phrase."""
    size = len(word.syllables)
    if len(syllables) < size:
        return False
    ways = [
        tuple(dict.fromkeys((one, said_third(one, tone_of(after) if after else 0))))
        for one, after in zip(syllables, [*syllables[1:], ""], strict=True)
    ]
    return any(
        all(one in heard for one, heard in zip(form, ways[start : start + size], strict=True))
        for start in range(len(ways) - size + 1)
        for form in word.forms
    )


def _given(hanzi: str, pinyin: str) -> tuple[str, ...]:
    syllables = read_syllables(pinyin)
    hint = 'a syllable with its tone for each character: --pinyin "ni3 hao3 xiao3 ming2"'
    if bare := [one for one in syllables if not has_tone(one)]:
        raise CorpusError(f"'{bare[0]}' in the reading '{pinyin}' has no tone", hint=hint)
    if len(syllables) != len(hanzi):
        raise CorpusError(f"{len(syllables)} syllables for '{hanzi}'", hint=hint)
    return syllables


def _forms(ways: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    yield from islice(product(*ways), _MOST_FORMS)


def _changed(syllable: str) -> Iterator[tuple[str, str]]:
    """Syllables that differ from this one in its initial, its final or its tone alone, and in which."""
    own = split_parts(syllable)
    for other in full_inventory():
        parts = split_parts(other)
        # A weak tone is how people slur the word itself; a syllable without a vowel nobody says in a word.
        if parts[2] == str(NEUTRAL) or _erhua(parts[1]) or not _VOWEL.search(parts[1]):
            continue
        differing = [kind for kind, a, b in zip(NEAR_KINDS, own, parts, strict=True) if a != b]
        if len(differing) == 1:
            yield other, differing[0]


def _erhua(final: str) -> bool:
    return final.endswith("r") and final != "er"


def _distance(syllables: Sequence[str], word: WakeWord) -> int:
    return min(phrase_distance(syllables, form) for form in word.forms)


def _dealt_out(negatives: Iterable[Negative], word: WakeWord, most: int) -> list[Negative]:
    """The nearest ones; of equal distance, a place of the word after the other has its turn."""
    turns: dict[tuple[int, int], int] = {}
    ranked = []
    for negative in sorted(negatives, key=lambda one: (one.distance, one.syllables)):
        pairs = zip(word.syllables, negative.syllables, strict=True)
        place = next(number for number, (one, other) in enumerate(pairs) if one != other)
        turn = turns[negative.distance, place] = turns.get((negative.distance, place), 0) + 1
        ranked.append((negative.distance, turn, place, negative))
    return [negative for *_, negative in sorted(ranked, key=lambda entry: entry[:3])[:most]]


@cache
def _dictionary() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """pypinyin's phrases of 2 to 6 hanzi with their readings, those that can be said."""
    found = ((hanzi, word_reading(hanzi)) for hanzi in sorted(phrases()) if _usable(hanzi))
    return tuple(entry for entry in found if all(_VOWEL.search(one) for one in entry[1]))


def _usable(hanzi: str) -> bool:
    return 2 <= len(hanzi) <= LONGEST and is_hanzi(hanzi)
