"""Finds the syllable sequences by which a phrase in hanzi may be pronounced, the usual one first.

They come from readings by context, plausible other readings, tone sandhi, and pronunciations of the user;
those of Latin letters are guessed.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from utils.errors import CorpusError, PhraseError
from utils.mandarin.hanzi_readings import plausible_readings
from utils.mandarin.latin_readings import spelling_readings
from utils.mandarin.pinyin import TONES, hanzi_to_pinyin, has_tone, is_hanzi, is_syllable, normalise_syllable
from utils.mandarin.sandhi import spoken_variants, third_tone_sandhi

MOST_PRONUNCIATIONS = 64
"""Limit for each phrase; those with the fewest unusual syllables are kept."""
MOST_TONELESS = 4
"""Limit for syllables without a tone in a given pronunciation: each may have any of five."""

# The pronunciations of a character or word, the usual one first.
Pronunciations = tuple[tuple[str, ...], ...]


def pronunciations(spoken: str, words: Mapping[str, Pronunciations], where: str) -> Iterator[tuple[str, ...]]:
    """Syllable sequences of a phrase: readings by context, plausible other readings, and tone sandhi.

    Args:
        spoken: hanzi, Latin letters, and words of ``words``; white space and punctuation are silent.
        words: pronunciations that the user gives; they replace all others of the word.
        where: file and line, for messages.

    Raises:
        PhraseError: a character or word has no known reading, or there is none.
    """
    units: list[Pronunciations] = []
    for text, given in _split(spoken, words):
        if given:
            units.append(given)
        elif is_hanzi(text):
            units += _hanzi_pronunciations(text, where)
        elif guessed := _guessed(text):
            units.append(guessed)
        elif text[0].isalnum():
            hint = f"add a line with its pronunciation: {text} = …"
            if is_syllable(text):
                hint = f"write a tab, not a space, before the pinyin of a phrase; or {hint}"
            raise PhraseError(f"the pronunciation of '{text}' is unknown", where=where, hint=hint)
    if not units:
        raise PhraseError(
            f"'{spoken}' has no syllable",
            where=where,
            hint="write the phrase in hanzi, or put a # before a comment",
        )
    return itertools.islice(_combinations(units), MOST_PRONUNCIATIONS)


def given_pronunciations(syllables: Sequence[str]) -> Pronunciations:
    """The pronunciations that a user's pinyin allows: any tone where there is none, and third-tone sandhi.

    Args:
        syllables: with or without a tone digit; at most :data:`MOST_TONELESS` without.

    >>> given_pronunciations(("ni3", "hao3"))
    (('ni3', 'hao3'), ('ni2', 'hao3'))
    """
    options = []
    for index, syllable in enumerate(syllables):
        following = syllables[index + 1] if index + 1 < len(syllables) else ""
        tones = [syllable] if has_tone(syllable) else [f"{syllable}{tone}" for tone in TONES]
        next_tone = int(following[-1]) if has_tone(following) else 0
        tones += [third_tone_sandhi(tone, next_tone) for tone in tones]
        options.append(tuple((tone,) for tone in dict.fromkeys(tones)))
    toneless = sum(not has_tone(syllable) for syllable in syllables)
    return tuple(itertools.islice(_combinations(options), max(len(TONES) ** toneless, MOST_PRONUNCIATIONS)))


def _split(spoken: str, words: Mapping[str, Pronunciations]) -> Iterator[tuple[str, Pronunciations]]:
    """Words with pronunciations, the longest first; runs of hanzi, of letters and digits, and the rest."""
    known = sorted(words, key=len, reverse=True)
    start = 0
    while start < len(spoken):
        word = next((word for word in known if spoken.startswith(word, start)), None)
        if word:
            yield word, words[word]
            start += len(word)
            continue
        end = start + 1
        kind = _kind(spoken[start])
        while end < len(spoken) and _kind(spoken[end]) == kind and not spoken.startswith(tuple(known), end):
            end += 1
        yield spoken[start:end], ()
        start = end


def _kind(character: str) -> str:
    if is_hanzi(character):
        return "hanzi"
    return "letters" if character.isalnum() else "silent"


def _guessed(text: str) -> Pronunciations:
    """The guessed pronunciations of Latin letters and digits; () if there are none."""
    found = (way for options in spelling_readings(text) for way in itertools.product(*options))
    return tuple(itertools.islice(found, MOST_PRONUNCIATIONS))


def _hanzi_pronunciations(text: str, where: str) -> list[Pronunciations]:
    try:
        usual, plausible = hanzi_to_pinyin(text), plausible_readings(text)
    except CorpusError as error:
        raise PhraseError(
            error.message, where=where, hint=f"{error.hint}, or give the pronunciation: {text} = …"
        ) from error
    units: list[tuple[tuple[str, ...], ...]] = []
    for variants, others in zip(spoken_variants(text, usual), plausible, strict=True):
        readings = [*variants, *(normalise_syllable(other) for other in others if is_syllable(other))]
        units.append(tuple((reading,) for reading in dict.fromkeys(readings)))
    return units


def _combinations(units: Sequence[Pronunciations]) -> Iterator[tuple[str, ...]]:
    """All pronunciations of a sequence of units, those with the fewest unusual ones first."""
    ambiguous = [index for index, unit in enumerate(units) if len(unit) > 1]
    for count in range(len(ambiguous) + 1):
        for chosen in itertools.combinations(ambiguous, count):
            for others in itertools.product(*(units[index][1:] for index in chosen)):
                parts = [unit[0] for unit in units]
                for index, other in zip(chosen, others, strict=True):
                    parts[index] = other
                yield tuple(itertools.chain.from_iterable(parts))
