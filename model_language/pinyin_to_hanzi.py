"""Converts lines of text with pinyin in any usual spelling to hanzi: the main interface to the converters.

>>> from model_language.pinyin_to_hanzi import PinyinToHanzi
>>> to_hanzi = PinyinToHanzi()
>>> to_hanzi("jin1 tian1 tian1 qi4 hen3 hao3, Python!")
'今天天气很好， Python!'

Each stretch of pinyin is converted by itself. Other text is not changed, except , ? ! after pinyin, nor is a
syllable that is not a reading of any hanzi. If a word can be segmented into syllables in several ways, they
are converted with the words beside it, and the most probable one is chosen. Where spaces separate words, not
single syllables, no word of the result crosses a space. Typed pinyin is assumed to be correct: each syllable
becomes a hanzi with this reading. For pinyin from a speech recogniser, recognition errors are corrected too.
"""

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model_language.converters.base import Converter
from model_language.converters.explanation import Explanation
from model_language.converters.user_word_converter import UserWordConverter
from model_language.language_model import SecondPass
from model_language.registry import load_converter
from model_language.search.grid import Conversion, WordEnd
from model_language.search.user_words import UserWords, read_user_words
from model_language.vocabulary.lexicon import Lexicon
from utils.errors import CorpusError
from utils.mandarin.pinyin import full_inventory, without_tone
from utils.mandarin.typed_pinyin import LinePart, plain_syllables, read_line
from utils.run_folder.run import PRETRAINED

SEGMENTATIONS = 8  # number of segmentations of a stretch with few ambiguous words that are tried
_FEW = 3  # ambiguous words, which have several segmentations; more have too many combinations to try all
# More ambiguous words are decided in small groups: the words of a group, the segmentations of it that are
# tried, and the syllables on each side that are converted with it. On 85 lines of 30 to 50 syllables, groups
# of 3 words, 8 segmentations and 8 syllables gave the same error rate, in 1.9 times the time.
_GROUP, _GROUP_SEGMENTATIONS, _CONTEXT = 2, 4, 4
# Subtracted from the log-probability for each rank below the best segmentation: xian should be one syllable,
# but many people omit the apostrophe of xi'an.
_RANK_COST = 2.0

_Part = LinePart | list[LinePart]  # of a line: other text, or a stretch of pinyin


@dataclass(frozen=True)
class ConvertedLine:
    """A converted line.

    Attributes:
        n_best: whole lines with all other text, the best first.
        sentences: the stretches of pinyin: canonical syllables and their conversion.
        unread: words of Latin letters that are not pinyin and were not changed, with their columns.
    """

    n_best: tuple[Conversion, ...]
    sentences: tuple[tuple[tuple[str, ...], Explanation], ...]
    unread: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """The best line."""
        return self.n_best[0].hanzi


@dataclass(frozen=True)
class _Trial:
    """A way to segment a group of pieces: the sum of its ranks, the reading of each, what is converted."""

    rank: int
    readings: tuple[tuple[str, ...], ...]
    syllables: tuple[str, ...]


class PinyinToHanzi:
    """Lines of pinyin → hanzi.

    Args:
        run: run folder of a language model, or its converter; by default the one that is shipped.
        words: user words, or a file of user words.
        strict: a word that is not pinyin is an error; otherwise it is not changed.
        recognised: the pinyin comes from a speech recogniser and may contain errors.
        second_pass: rescores the best conversions with a language model, which takes two to three times as
            long (:func:`model_language.registry.load_second_pass`); None: no second pass.

    Attributes:
        unread: number of words of Latin letters so far that were not pinyin.
        example: the position of the first of them, and the word.

    Raises:
        UserError: the run or the file of user words cannot be used, or the run has no second pass.
    """

    def __init__(
        self,
        run: str | Path | Converter = PRETRAINED,
        words: UserWords | str | Path | None = None,
        strict: bool = False,
        recognised: bool = False,
        second_pass: SecondPass | None = None,
    ):
        found = words if isinstance(words, UserWords) else read_user_words(words) if words else UserWords()
        converter = load_converter(run) if isinstance(run, str | Path) else run
        converter = converter if recognised else converter.typed()
        if second_pass:
            converter = converter.with_second_pass(second_pass)
        self._converter = UserWordConverter(converter, found)
        self._strict, self._unwritable = strict, _unwritable(converter.symbols.lexicon, found)
        self._any_tone = _without_neutral_tone(converter.symbols.lexicon)
        self.unread, self.example = 0, ""

    def __call__(self, line: str) -> str:
        """Convert one line.

        Raises:
            CorpusError: with ``strict``, a word is not pinyin.
        """
        return self.convert([line])[0]

    def convert(self, lines: Sequence[str], first_number: int = 1) -> list[str]:
        """Convert several lines together, which is faster.

        Args:
            lines: text without line ends.
            first_number: number of the first line, for messages.

        Raises:
            CorpusError: with ``strict``, a word is not pinyin; its line and column are named.
        """
        read = self._read(lines, first_number)
        chosen = self._segment([stretch for line in read for stretch in line if isinstance(stretch, list)])
        # A stretch with several segmentations is converted already.
        others = iter(self._converter.convert([syllables for syllables, hanzi in chosen if hanzi is None]))
        text = self._converter.words.text
        hanzi = iter([text(next(others) if found is None else found) for _, found in chosen])
        return [
            "".join(next(hanzi) if isinstance(part, list) else part.text for part in line) for line in read
        ]

    def explain(
        self, lines: Sequence[str], n_best: int = 1, first_number: int = 1, reasons: bool = True
    ) -> list[ConvertedLine]:
        """Convert lines, with the ``n_best`` most probable conversions of each, confidences and reasons.

        Without ``reasons`` the sentences have no characters and no used words, which takes a fraction of the
        time.

        Raises:
            CorpusError: as :meth:`convert`.
        """
        read = self._read(lines, first_number)
        chosen = self._segment([stretch for line in read for stretch in line if isinstance(stretch, list)])
        syllables = [syllables for syllables, _ in chosen]
        found = [
            _in_letters(explained, self._converter.words)
            for explained in self._converter.explain(syllables, n_best, reasons)
        ]
        explained = iter(list(zip(syllables, found, strict=True)))
        return [_join(line, explained, n_best) for line in read]

    def _read(self, lines: Sequence[str], first_number: int) -> list[list[_Part]]:
        """The parts of each line; a list of pieces is a stretch of pinyin."""
        read: list[list[_Part]] = []
        for number, line in enumerate(lines, start=first_number):
            if (plain := plain_syllables(line)) and self._unwritable.isdisjoint(plain):
                read.append([[LinePart(line, 1, (self._with_any_tone(plain),))]])
                continue
            pieces = [
                replace(piece, readings=tuple(map(self._with_any_tone, piece.readings)))
                for piece in read_line(line, self._unwritable)
            ]
            if _is_spaced_by_words(pieces):
                pieces = [replace(piece, readings=tuple(map(_as_word, piece.readings))) for piece in pieces]
            if self._strict:
                _check(pieces, number)
            parts: list[_Part] = []
            for is_pinyin, group in itertools.groupby(pieces, key=lambda piece: bool(piece.readings)):
                found = list(group)
                parts += [found] if is_pinyin else found
            read.append(parts)
            for word, column in itertools.chain.from_iterable(piece.unread for piece in pieces):
                self.unread += 1
                self.example = self.example or f"line {number}, column {column}: '{word}'"
        return read

    def _with_any_tone(self, syllables: tuple[str, ...]) -> tuple[str, ...]:
        """Without the tone of neutral syllables that no hanzi has, such as the zhan5 of huo3 che zhan."""
        if self._any_tone.keys().isdisjoint(syllables):
            return syllables
        return tuple(self._any_tone.get(syllable, syllable) for syllable in syllables)

    def _segment(self, stretches: Sequence[list[LinePart]]) -> list[tuple[tuple[str, ...], str | None]]:
        """The syllables of each stretch, and its hanzi if they were necessary to choose a segmentation."""
        readings = [[piece.readings[0] for piece in stretch] for stretch in stretches]
        hanzi: list[str | None] = [None] * len(stretches)
        groups = [_ambiguous(stretch) for stretch in stretches]
        for turn in (0, 1):  # every other group, then those between them, whose neighbours are decided
            jobs = [(index, group) for index, own in enumerate(groups) for group in own[turn::2]]
            trials = [
                _trials(stretches[index], readings[index], group, alone=len(groups[index]) == 1)
                for index, group in jobs
            ]
            conversions = iter(self._converter.best([way.syllables for ways in trials for way in ways]))
            for (index, group), ways in zip(jobs, trials, strict=True):
                tried = [(next(conversions), way) for way in ways]
                best, way = max(tried, key=lambda each: each[0].score - _RANK_COST * each[1].rank)
                for position, reading in zip(group, way.readings, strict=True):
                    readings[index][position] = reading
                if len(groups[index]) == 1:
                    hanzi[index] = best.hanzi
        return [
            (tuple(itertools.chain.from_iterable(own)), text)
            for own, text in zip(readings, hanzi, strict=True)
        ]


def _is_spaced_by_words(pieces: Sequence[LinePart]) -> bool:
    """Whether at least half of the syllables are typed together with others: spaces are word borders then."""
    best = [piece.readings[0] for piece in pieces if piece.readings]
    sizes = [sum(syllable not in ("er", "er5") for syllable in reading) for reading in best]  # er: erhua
    return 2 * sum(size for size in sizes if size > 1) >= max(1, sum(sizes))


def _as_word(reading: tuple[str, ...]) -> tuple[str, ...]:
    """The syllables of a word that spaces separate from others."""
    return (*reading[:-1], WordEnd(reading[-1]))


def _check(pieces: Sequence[LinePart], number: int) -> None:
    for piece in pieces:
        if not piece.readings and any(character.isalnum() for character in piece.text):
            raise CorpusError(
                f"'{piece.text.strip()}' is not pinyin",
                where=f"line {number}, column {piece.column}",
                hint="write syllables like zhong1, zhōng or zhong; without --strict it is not changed",
            )


def _ambiguous(stretch: Sequence[LinePart]) -> list[list[int]]:
    """The indices of the pieces with several readings, in groups that are decided together."""
    found = [index for index, piece in enumerate(stretch) if len(piece.readings) > 1]
    if len(found) <= _FEW:
        return [found] if found else []
    return [found[start : start + _GROUP] for start in range(0, len(found), _GROUP)]


def _trials(
    stretch: Sequence[LinePart], readings: Sequence[tuple[str, ...]], group: Sequence[int], alone: bool
) -> list[_Trial]:
    """The best ways to segment the pieces of a group, if all others have the given readings.

    Args:
        stretch: all pieces.
        readings: the reading of each piece so far.
        group: indices of the pieces to segment.
        alone: there is no other group; the whole stretch is converted.
    """
    start, end = (0, len(stretch)) if alone else _window(readings, group)
    ranked = itertools.product(*(enumerate(stretch[index].readings) for index in group))
    count = SEGMENTATIONS if alone else _GROUP_SEGMENTATIONS
    trials = []
    for way in heapq.nsmallest(count, ranked, key=lambda way: sum(rank for rank, _ in way)):
        window = list(readings[start:end])
        for index, (_, reading) in zip(group, way, strict=True):
            window[index - start] = reading
        ranks, own = zip(*way, strict=True)
        trials.append(_Trial(sum(ranks), own, tuple(itertools.chain.from_iterable(window))))
    return trials


def _window(readings: Sequence[tuple[str, ...]], group: Sequence[int]) -> tuple[int, int]:
    """The pieces (start, end) of a group and of the syllables beside it that are converted with it."""
    start, end = group[0], group[-1] + 1
    before = after = 0
    while start > 0 and before < _CONTEXT:
        start -= 1
        before += len(readings[start])
    while end < len(readings) and after < _CONTEXT:
        after += len(readings[end])
        end += 1
    return start, end


def _join(
    parts: Sequence[_Part],
    explained: Iterator[tuple[tuple[str, ...], Explanation]],
    n: int,
) -> ConvertedLine:
    """A line of its parts; each stretch of pinyin takes the next conversion."""
    best = [Conversion("", 0.0)]
    sentences: list[tuple[tuple[str, ...], Explanation]] = []
    for part in parts:
        if isinstance(part, list):
            sentences.append(next(explained))
            ways: Sequence[Conversion] = sentences[-1][1].n_best
        else:
            ways = (Conversion(part.text, 0.0),)
        joined = (
            Conversion(line.hanzi + way.hanzi, line.score + way.score)
            for line, way in itertools.product(best, ways)
        )
        best = heapq.nlargest(n, joined, key=lambda line: line.score)
    unread = [word for part in parts if isinstance(part, LinePart) for word in part.unread]
    return ConvertedLine(tuple(best), tuple(sentences), tuple(unread))


def _in_letters(explained: Explanation, words: UserWords) -> Explanation:
    """An explanation with the texts of words with Latin letters."""
    texts = words.texts(explained.n_best[0].hanzi)
    return replace(
        explained,
        n_best=tuple(replace(way, hanzi=words.text(way.hanzi)) for way in explained.n_best),
        characters=tuple(
            replace(character, hanzi=text.strip(), runner_up=words.text(character.runner_up))
            for character, text in zip(explained.characters, texts, strict=False)
        ),
    )


def _unwritable(lexicon: Lexicon, words: UserWords) -> frozenset[str]:
    """Syllables, with and without tone, that no hanzi has in any tone and no user word has."""
    toned = [syllable for syllable in full_inventory() if lexicon.nearest(syllable) is None]
    readings = [syllable for word in words.words for reading in word.readings for syllable in reading]
    unknown, written = ({*found, *map(without_tone, found)} for found in (toned, readings))
    return frozenset(unknown - written)


def _without_neutral_tone(lexicon: Lexicon) -> dict[str, str]:
    """Neutral syllables without an entry in the lexicon → the same for any tone."""
    known = frozenset(lexicon.syllables)
    return {s: s[:-1] for s in full_inventory() if s.endswith("5") and s not in known}
