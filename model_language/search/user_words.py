"""A text file of words that a user wants to see written → where their syllables come in a sentence.

One word a line: hanzi, and, if wanted, its pinyin and a weight, with spaces or tabs between; ``#`` begins a
comment. Without pinyin a word is read as the dictionary of phrases reads it; one that isn't there, in every
way that its characters can be read.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.errors import CorpusError
from utils.mandarin.pinyin import has_tone, is_hanzi, is_syllable, normalise_syllable
from utils.mandarin.pypinyin_data import possible_readings
from utils.mandarin.typed_pinyin import read_syllables

WEIGHT = 6.0
"""For each character, where a line gives no weight: makes the word e⁶ ≈ 400 times as probable a character."""
_MOST = 1000.0
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|nan)", re.IGNORECASE)
_HINT = "one word a line: hanzi, then if wanted its pinyin and a weight above 0: 喆 zhe2 5"
# Their tones follow the next syllable's; a user who writes no pinyin means any of them.
_SANDHI = {"一": ("yi1", "yi2", "yi4"), "不": ("bu2", "bu4")}


@dataclass(frozen=True)
class UserWord:
    """A word that is to be preferred.

    Attributes:
        hanzi: the characters.
        readings: of each character the syllables that it may come as; one without a digit: in any tone.
        weight: natural logarithm, for each character.
    """

    hanzi: str
    readings: tuple[frozenset[str], ...]
    weight: float = WEIGHT

    def reads(self, place: int, syllable: str) -> bool:
        """Whether its character at ``place`` may be said as a syllable; one without a tone may have any."""
        return _matches(self.readings[place], syllable)


@dataclass(frozen=True)
class Span:
    """A word whose syllables were found in a sentence: ``start`` is the place of its first syllable."""

    start: int
    word: UserWord

    @property
    def end(self) -> int:
        """One place behind its last syllable."""
        return self.start + len(self.word.hanzi)


class UserWords:
    """Words, found by their syllables.

    Args:
        words: any number; of the same hanzi with the same readings the last counts.
    """

    def __init__(self, words: Iterable[UserWord] = ()):
        self.words = tuple({(word.hanzi, word.readings): word for word in words}.values())
        # By the first two syllables without their tones: a look-up a place, however many words there are.
        self._by_beginning: dict[tuple[str, ...], list[UserWord]] = {}
        for word in self.words:
            for key in sorted(_beginnings(word)):
                self._by_beginning.setdefault(key, []).append(word)

    def __len__(self) -> int:
        return len(self.words)

    def spans(self, syllables: Sequence[str]) -> list[Span]:
        """Where the syllables of words come; ``[]`` in most sentences.

        Args:
            syllables: canonical, or without a digit for any tone.
        """
        bases = [_base(syllable) for syllable in syllables]
        return [
            Span(start, word)
            for start in range(len(bases))
            for key in _keys(bases, start)
            for word in self._by_beginning.get(key, ())
            if start + len(word.readings) <= len(syllables)
            and all(word.reads(i, syllables[start + i]) for i in range(len(word.readings)))
        ]

    def beginning_with(self, first: str, second: str | None) -> Sequence[UserWord]:
        """Words that may begin with these syllables, tones aside; without a second: those of one syllable."""
        bases = tuple(_base(syllable) for syllable in (first, second) if syllable is not None)
        return self._by_beginning.get(bases, ())


def read_user_words(path: str | Path, weight: float = WEIGHT) -> UserWords:
    """Read a file of words.

    Args:
        path: UTF-8 text.
        weight: of a line that gives none.

    Raises:
        CorpusError: no such file, not UTF-8, or a line that can't be used: it is named with its word.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CorpusError("can't read the user words", where=path, hint=error.strerror) from error
    except UnicodeDecodeError as error:
        raise CorpusError("user words are UTF-8 text", where=path, hint="save the file as UTF-8") from error
    words = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        fields = line.partition("#")[0].split()
        if fields:
            words.append(_word(fields, weight, f"{path}, line {number}"))
    return UserWords(words)


def _word(fields: Sequence[str], weight: float, where: str) -> UserWord:
    hanzi, *rest = fields
    if not is_hanzi(hanzi):
        raise CorpusError(f"'{hanzi}' is no word in hanzi", where=where, hint=_HINT)
    if rest and _NUMBER.fullmatch(rest[-1]):
        weight = float(rest.pop())
        if not (math.isfinite(weight) and 0 < weight <= _MOST):
            hint = f"a weight is above 0 and at most {_MOST:g}; leave the word out if it is to have none"
            raise CorpusError(f"'{hanzi}' has the weight {weight:g}", where=where, hint=hint)
    readings = _given(hanzi, " ".join(rest), where) if rest else _looked_up(hanzi, where)
    return UserWord(hanzi, readings, weight)


def _given(hanzi: str, written: str, where: str) -> tuple[frozenset[str], ...]:
    try:
        syllables = read_syllables(written)
    except CorpusError as error:
        what = f"'{hanzi}' can't be read: {error.what}"
        raise CorpusError(what, where=where, hint=error.hint) from error
    if len(syllables) != len(hanzi):
        what = f"'{hanzi}' has {len(hanzi)} hanzi but {len(syllables)} syllables ({' '.join(syllables)})"
        raise CorpusError(what, where=where, hint="one syllable a hanzi")
    return tuple(frozenset((syllable,)) for syllable in syllables)


def _looked_up(hanzi: str, where: str) -> tuple[frozenset[str], ...]:
    """Readings by the dictionary of phrases; each character's own where it hasn't the word."""
    readings = []
    for character, found in zip(hanzi, possible_readings(hanzi), strict=True):
        known = frozenset(normalise_syllable(one) for one in found if is_syllable(one))
        if not known:
            what = f"'{hanzi}' can't be read: no syllable is known for '{character}'"
            raise CorpusError(what, where=where, hint=f"write its pinyin beside it: {hanzi} …")
        readings.append(known | frozenset(_SANDHI.get(character, ())))
    return tuple(readings)


def fired(spans: Iterable[Span], hanzi: str) -> tuple[Span, ...]:
    """The words that a sentence is really written with."""
    return tuple(span for span in spans if hanzi[span.start : span.end] == span.word.hanzi)


def _keys(bases: Sequence[str], start: int) -> tuple[tuple[str, ...], ...]:
    """Under which a word that begins at ``start`` may be found."""
    return ((bases[start],), tuple(bases[start : start + 2]))[: len(bases) - start]


def _beginnings(word: UserWord) -> set[tuple[str, ...]]:
    firsts = [{_base(one) for one in reading} for reading in word.readings[:2]]
    return set(itertools.product(*firsts))


def _base(syllable: str) -> str:
    return syllable[:-1] if has_tone(syllable) else syllable


def _matches(reading: frozenset[str], syllable: str) -> bool:
    """Whether a syllable of a sentence may be one of a word's; what has no tone may have any."""
    if syllable in reading:
        return True
    base = _base(syllable)
    if base == syllable:
        return any(_base(one) == base for one in reading)
    return base in reading
