"""Finds the pronunciations of a wake word, and similar phrases that are not the word (negatives).

Whatever sounds like the word counts as the word: homophones, and a third tone that rises before another (你好
ni3 hao3, pronounced ni2 hao3). No negative sounds like the word or contains it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product

from data.synthesis.reading import word_reading
from utils.errors import CorpusError, require
from utils.mandarin.confusion_statistics import split_parts
from utils.mandarin.hanzi_readings import phrases
from utils.mandarin.latin_readings import spelling_readings
from utils.mandarin.pinyin import full_inventory, has_tone, is_hanzi, tone_of
from utils.mandarin.sandhi import spoken_variants, third_tone_sandhi
from utils.mandarin.syllable_distance import NEAR, NEUTRAL, phrase_distance, syllable_distance
from utils.mandarin.typed_pinyin import read_syllables

MAX_SYLLABLES = 6  # a longer wake word is refused
NEAR_KINDS = ("initial", "final", "tone")  # the part of a syllable in which a phrase differs
PART, REPEATED, ORDER, WORD = "part", "repeated", "order", "word"
_MAX_NEAR, _MAX_WORDS = 60, 40  # largest numbers of near phrases and of similar dictionary words
_VOWEL = re.compile("[aeiouv]")
_MAX_FORMS = 16  # pronunciations of a phrase that are kept: two of each of four syllables
_WORD_DISTANCE = 100  # largest distance of a dictionary's word from the wake word or a part of it


@dataclass(frozen=True)
class WakeWord:
    """A word and its pronunciations.

    Attributes:
        hanzi: the label; it may have Latin letters.
        syllables: canonical citation reading, one syllable for each hanzi.
        forms: all pronunciations; the citation reading comes first.
    """

    hanzi: str
    syllables: tuple[str, ...]
    forms: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Negative:
    """A phrase that is not the wake word.

    Attributes:
        syllables: canonical syllables.
        kind: how it was found: ``initial``, ``final``, ``tone``, ``part``, ``repeated``, ``order``, ``word``
            or ``sentence``.
        distance: phonetic distance from the nearest pronunciation of the wake word
            (``utils.mandarin.syllable_distance.phrase_distance``).
        hanzi: hanzi of a word, a sentence or a part of the wake word; else ``""``.
        spoken: the syllables for the synthesiser.
        pauses: numbers of syllables after which the speaker pauses.
    """

    syllables: tuple[str, ...]
    kind: str
    distance: int
    hanzi: str
    spoken: tuple[str, ...]
    pauses: tuple[int, ...] = ()


def read_wake_word(hanzi: str, pinyin: str = "") -> WakeWord:
    """Find the pronunciations of a word.

    Args:
        hanzi: 1 to 6 characters, or a word with Latin letters of as many syllables (``"hey siri"``).
        pinyin: its reading, if the dictionary's is wrong (``"chong2 qing4"``) or none can be guessed; with a
            tone for each syllable.

    Raises:
        CorpusError: a character that is neither hanzi nor a Latin letter or digit, a word too long, a reading
            that does not fit, or none that can be guessed.
    """
    hint = 'write it in Chinese characters: "你好小明"'
    require(hanzi, "the wake word is empty", hint=hint, error=CorpusError)
    if others := [
        each for each in hanzi if not (is_hanzi(each) or each == " " or (each.isascii() and each.isalnum()))
    ]:
        shown = ", ".join(f"'{character}'" for character in dict.fromkeys(others))
        raise CorpusError(f"the wake word '{hanzi}' has characters that are not hanzi: {shown}", hint=hint)
    if is_hanzi(hanzi):
        syllables = _read_pinyin(hanzi, pinyin) if pinyin else word_reading(hanzi)
        options: Sequence[Sequence[str]] = spoken_variants(hanzi, syllables)
    elif pinyin:
        syllables = _read_pinyin(hanzi, pinyin)
        options = [(syllable,) for syllable in syllables]
    else:
        readings = spelling_readings(hanzi)
        hint = 'type its pinyin: --pinyin "hei1 xi1 rui4"'
        require(readings, f"no reading of '{hanzi}' is known", hint=hint, error=CorpusError)
        options = readings[0]
    forms = tuple(islice(product(*options), _MAX_FORMS))
    if len(forms[0]) > MAX_SYLLABLES:
        raise CorpusError(
            f"the wake word '{hanzi}' has {len(forms[0])} syllables, more than {MAX_SYLLABLES}",
            hint="choose a shorter one: three or four syllables are usual",
        )
    return WakeWord(hanzi, forms[0], forms)


def near_phrases(word: WakeWord) -> list[Negative]:
    """Find up to 60 phrases of which one syllable has another initial, final or tone, the nearest first.

    Of equally near phrases, the syllables of the word take turns.
    """
    found: dict[tuple[str, ...], tuple[int, Negative]] = {}  # with the position of the changed syllable
    for position, syllable in enumerate(word.syllables):
        for other, kind in _similar_syllables(syllable):
            changed = (*word.syllables[:position], other, *word.syllables[position + 1 :])
            negative = make_negative(changed, kind, word)
            if 0 < negative.distance <= NEAR and not sounds_like(changed, word):
                found.setdefault(changed, (position, negative))
    turns: dict[tuple[int, int], int] = {}
    ranked = []
    for position, negative in sorted(found.values(), key=lambda item: (item[1].distance, item[1].syllables)):
        turn = turns[negative.distance, position] = turns.get((negative.distance, position), 0) + 1
        ranked.append((negative.distance, turn, position, negative))
    return [negative for *_, negative in sorted(ranked, key=lambda item: item[:3])[:_MAX_NEAR]]


def parts_of(word: WakeWord) -> list[Negative]:
    """Find parts of the word, from single syllables on; repeated parts; the word in another order."""
    count = len(word.syllables)
    spans = [(s, e) for s in range(count) for e in range(s + 1, count + 1) if e - s < count]
    chosen = [(tuple(range(start, end)), PART) for start, end in spans]
    chosen += [((*range(start, end), *range(start, end)), REPEATED) for start, end in spans]
    chosen += [((*range(cut, count), *range(cut)), ORDER) for cut in range(1, count)]
    chosen += [(tuple(reversed(range(count))), ORDER)]
    found: dict[tuple[str, ...], Negative] = {}
    for indices, kind in chosen:
        syllables = tuple(word.syllables[index] for index in indices)
        if len(syllables) <= MAX_SYLLABLES and not sounds_like(syllables, word):
            hanzi = "".join(word.hanzi[index] for index in indices) if is_hanzi(word.hanzi) else ""
            found.setdefault(syllables, make_negative(syllables, kind, word, hanzi))
    return list(found.values())


def near_words(word: WakeWord) -> list[Negative]:
    """Find up to 40 dictionary words that sound like the word, or like its first or last two syllables."""
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
            found[syllables] = nearest, make_negative(syllables, WORD, word, hanzi)
    ranked = sorted(found.values(), key=lambda pair: (pair[0], pair[1].syllables))
    return [negative for _, negative in ranked[:_MAX_WORDS]]


def sounds_like(syllables: Sequence[str], word: WakeWord) -> bool:
    """Whether a phrase may contain a pronunciation of the word."""
    size = len(word.syllables)
    if len(syllables) < size:
        return False
    pronunciations = [
        {syllable, third_tone_sandhi(syllable, tone_of(following) if following else 0)}
        for syllable, following in zip(syllables, [*syllables[1:], ""], strict=True)
    ]
    return any(
        all(
            syllable in possible
            for syllable, possible in zip(form, pronunciations[start : start + size], strict=True)
        )
        for start in range(len(syllables) - size + 1)
        for form in word.forms
    )


def _read_pinyin(hanzi: str, pinyin: str) -> tuple[str, ...]:
    syllables = read_syllables(pinyin)
    hint = 'a syllable with its tone for each character: --pinyin "ni3 hao3 xiao3 ming2"'
    if toneless := [syllable for syllable in syllables if not has_tone(syllable)]:
        raise CorpusError(f"'{toneless[0]}' in the reading '{pinyin}' has no tone", hint=hint)
    if is_hanzi(hanzi) and len(syllables) != len(hanzi):
        raise CorpusError(f"{len(syllables)} syllables for '{hanzi}'", hint=hint)
    return syllables


def _similar_syllables(syllable: str) -> Iterator[tuple[str, str]]:
    """Yield syllables that differ only in the initial, the final or the tone, and in which of them."""
    own = split_parts(syllable)
    for other in full_inventory():
        parts = split_parts(other)
        erhua = parts[1].endswith("r") and parts[1] != "er"
        # A neutral tone is a slurred form of the word itself; syllables without a vowel are not words.
        if parts[2] == str(NEUTRAL) or erhua or not _VOWEL.search(parts[1]):
            continue
        differing = [kind for kind, a, b in zip(NEAR_KINDS, own, parts, strict=True) if a != b]
        if len(differing) == 1:
            yield other, differing[0]


def make_negative(
    syllables: tuple[str, ...],
    kind: str,
    word: WakeWord,
    hanzi: str = "",
    spoken: tuple[str, ...] = (),
    pauses: tuple[int, ...] = (),
) -> Negative:
    """Measure the distance of a phrase from the word; without ``spoken``, it is spoken as ``syllables``."""
    return Negative(
        syllables,
        kind,
        distance=min(phrase_distance(syllables, form) for form in word.forms),
        hanzi=hanzi,
        spoken=spoken or syllables,
        pauses=pauses,
    )


@cache
def _dictionary() -> Iterable[tuple[str, tuple[str, ...]]]:
    """pypinyin's phrases of 2 to 6 hanzi with their readings, if these have vowels."""
    words = (word for word in sorted(phrases()) if 2 <= len(word) <= MAX_SYLLABLES and is_hanzi(word))
    readings = ((word, word_reading(word)) for word in words)
    return tuple(entry for entry in readings if all(map(_VOWEL.search, entry[1])))
