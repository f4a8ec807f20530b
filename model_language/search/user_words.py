"""Reads a text file of user words; finds where their syllables occur in a sentence.

One word per line, then optionally its pinyin and a weight, separated by spaces or tabs; ``#`` at the
beginning or after a space starts a comment. Full-width letters and digits are taken as ordinary ones. A
word in hanzi without pinyin has the reading of the phrase dictionary; one that is not in the dictionary has
all readings of its characters. A word with Latin letters or digits (WiFi, K歌, hey siri) has as many
syllables as its pinyin; without pinyin its readings are guessed (``utils.mandarin.latin_readings``).
"""

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from utils.errors import CorpusError, require
from utils.files import read_text
from utils.hypotheses.recognition import Alternative
from utils.mandarin.hanzi_readings import possible_readings
from utils.mandarin.latin_readings import spelling_readings
from utils.mandarin.pinyin import (
    has_tone,
    is_hanzi,
    is_syllable,
    is_tone_written,
    normalise_syllable,
)
from utils.mandarin.syllable_distance import FARTHEST, syllable_distance
from utils.mandarin.typed_pinyin import read_pronunciation

WEIGHT = 6.0
"""Weight of each character if a line gives none: each is e⁶ ≈ 400 times as probable as without the word."""
_HIGHEST_WEIGHT = 1000.0
# Not nan, which is a syllable.
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf", re.IGNORECASE)
_HINT = "one word per line, then optionally its pinyin and a weight above 0, e.g. 喆 zhe2 5, WiFi wai1 fa1"
# A word that is not in hanzi alone: Latin letters, digits and hanzi, with single marks between them.
_SPELLING = re.compile(r"[^\W_]+(?:[ .&+'’_/-][^\W_]+)*[+#]*")
_COMMENT = re.compile(r"(?:^|\s)#.*")  # the # of C# is part of the word
# One character of this area for each syllable of such a word, so that the hanzi of a sentence are as many as
# its syllables until they are shown: :meth:`UserWords.texts`.
_FIRST_CODE = 0xF0000
_LATIN_OR_DIGITS = re.compile("[A-Za-z0-9]{2}")
# Distance for each syllable after the first: one classic confusion (n for l), or another tone.
_TOLERANCE = 20
# Tone sandhi: their tone depends on the next syllable. A word without pinyin accepts all of these.
_SANDHI = {"一": ("yi1", "yi2", "yi4"), "不": ("bu2", "bu4")}
# 儿 is er2 in dictionaries (女儿), but as the r of erhua (nar4) it is read as er5: both are accepted.
_ERHUA = frozenset({"er2", "er5"})


Reading = frozenset[str]
"""The syllables that a character may be read as; one without a digit has any tone."""


@dataclass(frozen=True)
class UserWord:
    """A word that conversion prefers.

    Attributes:
        hanzi: one character for each syllable. Those of a word with a spelling are codes that
            :class:`UserWords` chooses.
        readings: of each character.
        weight: natural-log bonus for each character.
        spelling: the word as it is written, if it is not in hanzi.
    """

    hanzi: str
    readings: tuple[Reading, ...]
    weight: float = WEIGHT
    spelling: str = ""

    @property
    def text(self) -> str:
        """The word as it is written."""
        return self.spelling or self.hanzi

    def matches(self, index: int, syllable: str) -> bool:
        """Whether the character at ``index`` can be read as ``syllable``; without a tone it has any tone."""
        return _matches(self.readings[index], syllable)

    @property
    def tolerance(self) -> int:
        """How far all syllables together may be from the readings for the word to be recognised in them.

        A short word that is heard nearly is probably another word.
        """
        return _TOLERANCE * (len(self.readings) - 1)


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
        found = {(word.text, word.readings): word for word in words}.values()
        codes: dict[tuple[str, int], str] = {}
        self._texts: dict[str, str] = {}  # of each code: the word for its first syllable, nothing for others
        for word in found:
            if word.spelling and (key := (word.spelling, len(word.readings))) not in codes:
                start = _FIRST_CODE + len(self._texts)
                codes[key] = "".join(map(chr, range(start, start + len(word.readings))))
                self._texts |= dict.fromkeys(codes[key], "") | {codes[key][0]: word.spelling}
        self.words = tuple(
            replace(word, hanzi=codes[word.spelling, len(word.readings)]) if word.spelling else word
            for word in found
        )
        # By their first two syllables without tones: one look-up a position, for any number of words.
        self._near: dict[tuple[str, int], dict[Reading, int]] = {}
        self._readings = {reading for word in self.words for reading in word.readings}
        self._by_first: dict[Reading, list[UserWord]] = {}
        for word in self.words:
            self._by_first.setdefault(word.readings[0], []).append(word)
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

    def beginning_with(self, reading: Reading) -> Sequence[UserWord]:
        """Words whose first character has this reading."""
        return self._by_first.get(reading, ())

    def readings_near(self, syllable: str, farthest: int) -> dict[Reading, int]:
        """The readings of characters that are at most so far from a canonical syllable, with the distance."""
        key = syllable, farthest
        if key not in self._near:
            distances = ((reading, distance_of(reading, syllable)) for reading in self._readings)
            self._near[key] = {reading: distance for reading, distance in distances if distance <= farthest}
        return self._near[key]

    def spans_in(self, hanzi: str) -> list[Span]:
        """Where the words are written in the hanzi of a sentence."""
        return [
            Span(found.start(), word)
            for word in self.words
            if word.hanzi in hanzi
            for found in re.finditer(re.escape(word.hanzi), hanzi)
        ]

    def texts(self, hanzi: str) -> list[str]:
        """The text of each syllable: its hanzi, or a word with Latin letters for the first one of the word.

        Two such words have a space between them.
        """
        if self._texts.keys().isdisjoint(hanzi):
            return list(hanzi)
        texts, before = [], ""
        for character in hanzi:
            text = self._texts.get(character, character)
            texts.append(f" {text}" if _LATIN_OR_DIGITS.match(f"{before[-1:]}{text[:1]}") else text)
            before = text or before
        return texts

    def text(self, hanzi: str) -> str:
        """The text of a sentence, see :meth:`texts`."""
        return "".join(self.texts(hanzi))

    def written(self, hypothesis: Alternative) -> Alternative:
        """A hypothesis with the texts of words with Latin letters."""
        texts = self.texts(hypothesis.hanzi)
        hanzi = "".join(texts)
        return (
            hypothesis if hanzi == hypothesis.hanzi else replace(hypothesis, hanzi=hanzi, texts=tuple(texts))
        )


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
        content = without_comment(line)
        if content.strip():
            words += _parse(content, f"{source}line {number}")
    return UserWords(words)


def without_comment(line: str) -> str:
    """A line of user words without its comment, and with ordinary instead of full-width characters."""
    return _COMMENT.sub("", unicodedata.normalize("NFKC", line))


def written_spans(spans: Iterable[Span], hanzi: str) -> tuple[Span, ...]:
    """The spans whose words are written in ``hanzi``."""
    return tuple(span for span in spans if hanzi[span.start : span.end] == span.word.hanzi)


def _parse(line: str, where: str) -> list[UserWord]:
    """The word of a line, once for each number of syllables that it may have."""
    text, rest = _split(line)
    weight = WEIGHT
    require(_SPELLING.fullmatch(text), f"'{text}' is not a word", where=where, hint=_HINT, error=CorpusError)
    if rest and _NUMBER.fullmatch(rest[-1]):
        weight = float(rest.pop())
        if not (math.isfinite(weight) and 0 < weight <= _HIGHEST_WEIGHT):
            raise CorpusError(
                f"'{text}' has the weight {weight:g}",
                where=where,
                hint=f"a weight is above 0 and at most {_HIGHEST_WEIGHT:g}; to ignore a word, remove it",
            )
    if not is_hanzi(text):
        readings = _spelled_readings(text, rest, where)
        return [UserWord("", reading, weight, spelling=text) for reading in readings]
    if not rest:
        return [UserWord(text, _usual_readings(text, where), weight)]
    syllables = read_pronunciation(text, " ".join(rest), where)
    reading = tuple(
        _ERHUA if character == "儿" and syllable in _ERHUA else frozenset((syllable,))
        for character, syllable in zip(text, syllables, strict=True)
    )
    return [UserWord(text, reading, weight)]


def _split(line: str) -> tuple[str, list[str]]:
    """The word of a line and the fields after it.

    A word of Latin letters may have spaces in it (hey siri): it ends at a tab, before a syllable with a tone,
    or before a number at the end, which is a weight.
    """
    word, tab, rest = line.strip().partition("\t")
    fields = word.split()
    count = len(fields)
    if not tab:
        numbers = [bool(_NUMBER.fullmatch(field)) for field in fields]
        toned = (at for at in range(1, count) if is_tone_written(fields[at]) and not numbers[at])
        count = 1 if not fields[0].isascii() else next(toned, count - (count > 1 and numbers[-1]))
    return " ".join(fields[:count]), fields[count:] + rest.split()


def _spelled_readings(text: str, fields: Sequence[str], where: str) -> list[tuple[frozenset[str], ...]]:
    """The readings of a word that is not in hanzi: those given, or guessed ones."""
    if fields:
        given = read_pronunciation(text, " ".join(fields), where)
        return [tuple(frozenset((syllable,)) for syllable in given)]
    guessed = spelling_readings(text)
    if not guessed:
        raise CorpusError(
            f"no reading of '{text}' is known",
            where=where,
            hint=f"type its pinyin after it, with tones: {text} …",
        )
    return [tuple(map(frozenset, way)) for way in guessed]


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


def _matches(reading: Reading, syllable: str) -> bool:
    base = _base(syllable)
    if syllable in reading or base in reading:
        return True
    return base == syllable and any(_base(known) == base for known in reading)


@lru_cache(maxsize=1_000_000)
def distance_of(reading: Reading, syllable: str) -> int:
    """The phonetic distance of a canonical syllable from the nearest syllable of a reading, 0 to 100."""
    if _matches(reading, syllable):
        return 0
    known = (each if has_tone(each) else f"{each}{syllable[-1]}" for each in reading)
    return min((syllable_distance(each, syllable) for each in known), default=FARTHEST)
