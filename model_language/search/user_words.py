"""Reads a text file of user words; finds where their syllables occur in a sentence.

One word per line: hanzi, then optionally its pinyin and a weight, separated by spaces or tabs; ``#`` starts a
comment. A word without pinyin has the reading of the phrase dictionary; a word that is not in the dictionary
has all readings of its characters.
"""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.errors import CorpusError, require
from utils.files import read_text
from utils.mandarin.hanzi_readings import possible_readings
from utils.mandarin.pinyin import has_tone, is_hanzi, is_syllable, normalise_syllable
from utils.mandarin.typed_pinyin import read_pronunciation

WEIGHT = 6.0
"""Weight of each character if a line gives none: each is e⁶ ≈ 400 times as probable as without the word."""
_HIGHEST_WEIGHT = 1000.0
# Not nan, which is a syllable.
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf", re.IGNORECASE)
_HINT = "one word per line: hanzi, then optionally its pinyin and a weight above 0, e.g. 喆 zhe2 5"
# Tone sandhi: their tone depends on the next syllable. A word without pinyin accepts all of these.
_SANDHI = {"一": ("yi1", "yi2", "yi4"), "不": ("bu2", "bu4")}
# 儿 is er2 in dictionaries (女儿), but as the r of erhua (nar4) it is read as er5: both are accepted.
_ERHUA = frozenset({"er2", "er5"})


@dataclass(frozen=True)
class UserWord:
    """A word that conversion prefers.

    Attributes:
        hanzi: the characters.
        readings: the syllables of each character; a syllable without a digit has any tone.
        weight: natural-log bonus for each character.
    """

    hanzi: str
    readings: tuple[frozenset[str], ...]
    weight: float = WEIGHT

    def matches(self, index: int, syllable: str) -> bool:
        """Whether the character at ``index`` can be read as ``syllable``; without a tone it has any tone."""
        reading, base = self.readings[index], _base(syllable)
        if syllable in reading or base in reading:
            return True
        return base == syllable and any(_base(known) == base for known in reading)


@dataclass(frozen=True)
class Span:
    """A user word whose syllables occur in a sentence; ``start`` is the index of its first syllable."""

    start: int
    word: UserWord

    @property
    def end(self) -> int:
        """Index after its last syllable."""
        return self.start + len(self.word.hanzi)


class UserWords:
    """Words, found by their syllables.

    Args:
        words: any number; of equal words that match the same syllables the last one is used.
    """

    def __init__(self, words: Iterable[UserWord] = ()):
        self.words = tuple({(word.hanzi, word.readings): word for word in words}.values())
        # By their first two syllables without tones: one look-up a position, for any number of words.
        self._by_beginning: dict[tuple[str, ...], list[UserWord]] = {}
        for word in self.words:
            bases = [{_base(syllable) for syllable in reading} for reading in word.readings[:2]]
            for key in sorted(set(itertools.product(*bases))):
                self._by_beginning.setdefault(key, []).append(word)

    def __len__(self) -> int:
        return len(self.words)

    def spans(self, syllables: Sequence[str]) -> list[Span]:
        """Where the syllables of the words occur; empty for most sentences.

        Args:
            syllables: canonical, or without a digit for any tone.
        """
        if not self.words:
            return []
        bases = [_base(syllable) for syllable in syllables]
        found = {
            (start, word.hanzi): Span(start, word)
            for start in range(len(bases))
            for length in (1, 2)[: len(bases) - start]
            for word in self._by_beginning.get(tuple(bases[start : start + length]), ())
            if start + len(word.readings) <= len(syllables)
            and all(word.matches(i, syllables[start + i]) for i in range(len(word.readings)))
        }
        return list(found.values())

    def beginning_with(self, *syllables: str) -> Sequence[UserWord]:
        """Words of one syllable (if one is given), or words that begin with these two; tones are ignored."""
        return self._by_beginning.get(tuple(map(_base, syllables)), ())


def read_user_words(path: str | Path) -> UserWords:
    """Read a file of user words, UTF-8.

    Raises:
        CorpusError: the file does not exist or is not UTF-8, or a line is wrong; the line is named.
    """
    return parse_user_words(read_text(path, "the user words", CorpusError), f"{path}, ")


def parse_user_words(text: str, source: str = "") -> UserWords:
    """Read the text of a file of user words; ``source`` stands before the line in messages.

    Raises:
        CorpusError: a line is wrong; it is named.
    """
    words = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        fields = line.partition("#")[0].split()
        if fields:
            words.append(_parse(fields, f"{source}line {number}"))
    return UserWords(words)


def written_spans(spans: Iterable[Span], hanzi: str) -> tuple[Span, ...]:
    """The spans whose words are written in ``hanzi``."""
    return tuple(span for span in spans if hanzi[span.start : span.end] == span.word.hanzi)


def _parse(fields: Sequence[str], where: str) -> UserWord:
    hanzi, *rest = fields
    weight = WEIGHT
    require(is_hanzi(hanzi), f"'{hanzi}' is not a word in hanzi", where=where, hint=_HINT, error=CorpusError)
    if rest and _NUMBER.fullmatch(rest[-1]):
        weight = float(rest.pop())
        if not (math.isfinite(weight) and 0 < weight <= _HIGHEST_WEIGHT):
            raise CorpusError(
                f"'{hanzi}' has the weight {weight:g}",
                where=where,
                hint=f"a weight is above 0 and at most {_HIGHEST_WEIGHT:g}; to ignore a word, remove it",
            )
    if not rest:
        return UserWord(hanzi, _usual_readings(hanzi, where), weight)
    syllables = read_pronunciation(hanzi, " ".join(rest), where)
    readings = tuple(
        _ERHUA if character == "儿" and syllable in _ERHUA else frozenset((syllable,))
        for character, syllable in zip(hanzi, syllables, strict=True)
    )
    return UserWord(hanzi, readings, weight)


def _usual_readings(hanzi: str, where: str) -> tuple[frozenset[str], ...]:
    """Readings of the phrase dictionary; for a word that it does not have, all readings of each character."""
    readings = []
    for character, found in zip(hanzi, possible_readings(hanzi), strict=True):
        known = frozenset(normalise_syllable(reading) for reading in found if is_syllable(reading))
        if not known:
            raise CorpusError(
                f"'{hanzi}': no reading of '{character}' is known",
                where=where,
                hint=f"write its pinyin beside it: {hanzi} …",
            )
        erhua = _ERHUA if character == "儿" else frozenset()
        readings.append(known | erhua | frozenset(_SANDHI.get(character, ())))
    return tuple(readings)


def _base(syllable: str) -> str:
    return syllable[:-1] if has_tone(syllable) else syllable
