"""Reads a typed line: finds the pinyin in it, in any usual spelling, and segments it into syllables.

A syllable of the result has a tone digit (``zhong1``, ``de5``), or none if any tone is possible (``zhong``).
A syllable that is typed without a tone is neutral if most syllables of the line have tones, and it is a word
by itself or another syllable of its word has a tone; otherwise it may have any tone, as in a name without
tones (wo3 zhu4 zai4 Beijing). Whether a hanzi has this neutral reading is not known here; the caller must
find out (:class:`model_language.pinyin_to_hanzi.PinyinToHanzi` takes a neutral syllable that no hanzi has for
any tone).

Pinyin without spaces is segmented into syllables. The best segmentation has, in this order

1. the fewest syllables with the r of erhua (``dier`` is di er, but ``huar`` can only be hua + r);
2. the fewest inner syllables that begin with a, e or o, because the standard (GB/T 16159) requires an
   apostrophe before them: ``xian`` is one syllable, ``xi'an`` two, ``fangan`` fan gan;
3. the fewest syllables;
4. the longest syllables first.

The next best segmentations are alternatives, except for words with tones and for lines in which spaces
separate all syllables. Erhua becomes the syllable and ``er``, as in hanzi (花儿).
"""

import itertools
import re
import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any

from utils.errors import CorpusError, UserError
from utils.mandarin.pinyin import (
    TEXTBOOK_LETTERS,
    full_inventory,
    has_tone,
    is_hanzi,
    is_syllable,
    is_tone_written,
    normalise_syllable,
)

WAYS_KEPT = 4  # segmentations of one word
_MARKS = "\u0304\u0301\u030c\u0306\u0300"  # tones 1-4; the breve is often typed for tone 3
_MAX_SYLLABLE_LETTERS = 7  # the longest syllable is zhuangr
_MAX_RANKED_LETTERS = 200  # a word of more letters gets the best segmentation only, no alternatives
# Cached words and parts of words, and the letters of the longest: at most about 30 MB.
_WORDS_KEPT, _MAX_CACHED_LETTERS = 16_384, 48
_VOWELS = "aeo"
# Syllables only if they are the whole word; elsewhere such a consonant belongs to a neighbouring syllable.
_STANDALONE = frozenset({"m", "n", "ng", "hm", "hng", "r"})


def _letters() -> str:
    bases = [chr(code) for code in range(ord("a"), ord("z") + 1)] + ["ü", "ê"]
    marked = {unicodedata.normalize("NFC", base + mark) for base in bases for mark in _MARKS}
    letters = [*bases, *(letter for letter in marked if len(letter) == 1)]
    forms = (form for letter in letters for form in (letter, letter.upper()) if len(form) == 1)
    return "".join(dict.fromkeys(forms))


_LETTER = f"[{_letters()}][{_MARKS}\u0308\u0302]*"
_WORD = re.compile(rf"{_LETTER}(?:{_LETTER}|(?<=[nlNL][uU]):|[0-9]|['’‘`ʼ\-](?={_LETTER}))*")
_UNIT = re.compile(rf"(?:[uU]:|{_LETTER})|[0-9]")
_SUPERSCRIPT_TONE = re.compile("(?<=[A-Za-zÜüÊê]{2}|[Uu]:)[⁰¹²³⁴⁵]")
_MARKS_AFTER, _FULL_WIDTH = re.compile(r"^[,?!]+"), str.maketrans(",?!", "，？！")
_SEPARATOR = re.compile(r"['’‘`ʼ\-]")


@dataclass(frozen=True)
class LinePart:
    """A part of a line: pinyin, or other text.

    Attributes:
        text: as it was typed, but , ? ! after pinyin are ，？！.
        column: where it begins, from 1.
        readings: segmentations into syllables, the best first; () for other text.
    """

    text: str
    column: int
    readings: tuple[tuple[str, ...], ...] = ()

    @property
    def unread(self) -> tuple[tuple[str, int], ...]:
        """Words of Latin letters in other text, which may be typing errors, with their columns."""
        if self.readings:
            return ()
        found = _WORD.finditer(_ordinary(self.text))
        return tuple((self.text[word.start() : word.end()], self.column + word.start()) for word in found)


def read_line(line: str, unwritable: Set[str] = frozenset()) -> list[LinePart]:
    """Separate pinyin from other text, and segment it into syllables.

    White space beside pinyin is dropped; elsewhere it is part of the other text.

    Args:
        line: any text.
        unwritable: syllables, with or without a tone digit, that have no known hanzi; readings with them are
            left out.

    Returns:
        the pieces in order: one for each word of pinyin, one for each stretch of other text.
    """
    plain = _ordinary(line)
    words = []
    for found in _WORD.finditer(plain):
        segment = _segment_cached if len(found[0]) <= _MAX_CACHED_LETTERS else _segment
        # u: is ü; but if the word can't be read with it, its final colon is punctuation.
        for word in dict.fromkeys((found[0], found[0].removesuffix(":"))):
            readings = tuple(reading for reading in segment(word) if unwritable.isdisjoint(reading))
            if readings:
                break
        digit_before = found.start() > 0 and plain[found.start() - 1].isdecimal()
        if readings and not (digit_before and len(word) == 1):  # the m of 5m
            words.append((found.start(), found.start() + len(word), readings))
    if len(words) > 1 and all(len(readings[0]) == 1 for _, _, readings in words):
        words = [(start, end, readings[:1]) for start, end, readings in words]
    best = [syllable for _, _, readings in words for syllable in readings[0]]
    mostly_toned = 2 * sum(map(has_tone, best)) > len(best)
    pieces, reached = [], 0
    for start, end, readings in words:
        pieces += _other_text(line, reached, start, after=reached > 0, before=True)
        if mostly_toned:
            readings = tuple(map(_with_neutral_tones, readings))
        pieces.append(LinePart(line[start:end], start + 1, readings))
        reached = end
    return pieces + _other_text(line, reached, len(line), after=reached > 0, before=False)


def plain_syllables(line: str) -> tuple[str, ...] | None:
    """The syllables of a line with only canonical syllables and single spaces; None for any other line.

    A fast replacement for :func:`read_line` on such lines. A syllable without a tone must not be alone, as it
    may then be two.
    """
    words = line.split(" ")
    if _plain().issuperset(words):
        return tuple(words)
    toneless = _plain_toneless()
    if len(words) == 1 or not all(word in toneless or word in _plain() for word in words):
        return None
    if 2 * sum(word not in toneless for word in words) > len(words):
        words = [f"{word}5" if word in toneless else word for word in words]
    return tuple(words)


@cache
def _plain() -> frozenset[str]:
    return frozenset(
        word for word in full_inventory() if _canonical(word) == (word,) and word[:-1] not in _STANDALONE
    )


@cache
def _plain_toneless() -> frozenset[str]:
    names = {word[:-1] for word in _plain()}
    return frozenset(name for name in names if _segment(name)[:1] == ((name,),))


def read_syllables(text: str) -> tuple[str, ...]:
    """The syllables of a text that must be pinyin only.

    Raises:
        CorpusError: the text has something else, which is named with its column.
    """
    syllables: list[str] = []
    for piece in read_line(text):
        if not piece.readings:
            raise CorpusError(
                f"'{piece.text.strip()}' is not pinyin",
                where=f"column {piece.column}",
                hint="write syllables like zhong1 or zhōng, or zhong for any tone",
            )
        syllables += piece.readings[0]
    return tuple(syllables)


def read_pronunciation(
    text: str, pinyin: str, where: str, error: type[UserError] = CorpusError
) -> tuple[str, ...]:
    """The syllables of the pinyin that the user gave for a word or a phrase.

    Args:
        text: the word; of hanzi only, or any other text.
        pinyin: its pinyin, in any usual spelling.
        where: file and line, for messages.
        error: class of the errors.

    Raises:
        CorpusError, or the given ``error``: this is not pinyin, or not one syllable for each hanzi.
    """
    try:
        syllables = read_syllables(pinyin)
    except CorpusError as caught:
        raise error(
            f"'{text}' has no valid pinyin: {caught.message}", where=where, hint=caught.hint
        ) from caught
    if not syllables:
        raise error(f"'{text}' has no pinyin", where=where, hint="e.g. 重庆路 = chong2 qing4 lu4")
    if is_hanzi(text) and len(text) != len(syllables):
        raise error(
            f"'{text}' has {len(text)} hanzi but {len(syllables)} syllables ({' '.join(syllables)})",
            where=where,
            hint="write one syllable for each hanzi",
        )
    return syllables


def _with_neutral_tones(reading: tuple[str, ...]) -> tuple[str, ...]:
    """A reading of a word with neutral tones where none is typed; unchanged if it is a name without tones."""
    if len(reading) > 1 and not any(map(has_tone, reading)):
        return reading
    return tuple(syllable if has_tone(syllable) else f"{syllable}5" for syllable in reading)


def _ordinary(text: str) -> str:
    """A text with ordinary letters for full-width and textbook ones, and digits for superscript tones.

    Columns stay the same. The exponents of m², a² + b² are no tones: one letter is before them.
    """
    letters = text.translate(_ordinary_letters())
    return _SUPERSCRIPT_TONE.sub(lambda tone: unicodedata.normalize("NFKC", tone[0]), letters)


@cache
def _ordinary_letters() -> dict[int, str]:
    ranges = ((0xFF10, 0xFF1A), (0xFF21, 0xFF3B), (0xFF41, 0xFF5B))
    full_width = {code: chr(code - 0xFEE0) for start, stop in ranges for code in range(start, stop)}
    return full_width | TEXTBOOK_LETTERS


def _other_text(line: str, start: int, end: int, after: bool, before: bool) -> list[LinePart]:
    """The text between two words as a piece, without spaces beside pinyin; [] if it is empty.

    The marks of , ? ! that directly follow pinyin become those of Chinese.
    """
    text = line[start:end]
    if before:
        text = text.rstrip()
    if after:
        start += len(text) - len(text.lstrip())
        text = _MARKS_AFTER.sub(lambda marks: marks[0].translate(_FULL_WIDTH), text.lstrip())
    return [LinePart(text, start + 1)] if text else []


@lru_cache(maxsize=_WORDS_KEPT)
def _canonical(text: str) -> tuple[str, ...] | None:
    """A typed syllable as canonical syllables, without a digit if it has no tone; None if it is not one."""
    if not is_syllable(text):
        return None
    syllable = normalise_syllable(text)
    tone = syllable[-1] if is_tone_written(text) else ""
    name = syllable[:-1]
    if name.endswith("r") and name != "er":
        return name[:-1] + tone, "er5" if tone else "er"
    return (name + tone,)


_Rank = tuple[int, int, int, tuple[int, ...]]  # erhua, inner vowels, syllables, negative lengths


def _segment(word: str) -> tuple[tuple[str, ...], ...]:
    """The best segmentations of a word, with cuts at its apostrophes; () if there is none."""
    ways: list[tuple[str, ...]] = [()]
    for part in filter(None, _SEPARATOR.split(word)):
        found = _ways([unit[0] for unit in _UNIT.finditer(part)])
        if not found:
            return ()
        ways = [way + more for way in ways for more in found][:WAYS_KEPT]
    if any(map(has_tone, ways[0])):  # a tone digit ends a syllable
        ways = ways[:1]
    return tuple(dict.fromkeys(ways))


_segment_cached = lru_cache(maxsize=_WORDS_KEPT)(_segment)


def _ways(units: Sequence[str]) -> list[tuple[str, ...]]:
    """Segmentations of letters and digits without separators, the best first."""
    whole = _canonical("".join(units)) if len(units) <= _MAX_SYLLABLE_LETTERS + 1 else None
    if whole and (_without_digit(whole[0]) in _STANDALONE or units[0] in "rR"):
        return [whole]
    kept = WAYS_KEPT if len(units) <= _MAX_RANKED_LETTERS else 1
    # For each position the best paths to it: rank, path without the last step, syllables of the last step.
    best: list[list[tuple[_Rank, Any, tuple[str, ...]]]] = [[((0, 0, 0, ()), None, ())]]
    best += [[] for _ in units]
    for start in range(len(units)):
        best[start] = sorted(best[start], key=itemgetter(0))[:kept]
        for end, syllables, erhua in _syllables_from(units, start) if best[start] else ():
            begins_open = unicodedata.normalize("NFD", units[start].lower())[0] in _VOWELS
            inner = begins_open and start > 0 and not units[start - 1].isdigit()
            for way in best[start]:
                r, v, n, lengths = way[0]
                rank = (r + erhua, v + inner, n + 1, (*lengths, start - end) if kept > 1 else ())
                best[end].append((rank, way, syllables))
    return [_unrolled(way) for way in sorted(best[-1], key=itemgetter(0))[:kept]]


def _unrolled(way: tuple[_Rank, Any, tuple[str, ...]]) -> tuple[str, ...]:
    steps = []
    while way:
        steps.append(way[2])
        way = way[1]
    return tuple(itertools.chain.from_iterable(reversed(steps)))


def _syllables_from(units: Sequence[str], start: int) -> list[tuple[int, tuple[str, ...], bool]]:
    """(end, canonical syllables, whether it has erhua) of syllables from ``start`` on, the longest first."""
    found = []
    for end in range(min(start + _MAX_SYLLABLE_LETTERS + 1, len(units)), start, -1):
        digit_follows = end < len(units) and units[end].isdigit()
        if digit_follows or units[start].isdigit() or any(unit.isdigit() for unit in units[start : end - 2]):
            continue
        written = "".join(units[start:end]).lower()
        syllables = _canonical(written)
        if syllables and not _STANDALONE & {written.rstrip("012345"), _without_digit(syllables[0])}:
            found.append((end, syllables, len(syllables) > 1))
    return found


def _without_digit(syllable: str) -> str:
    return syllable.rstrip("12345")
