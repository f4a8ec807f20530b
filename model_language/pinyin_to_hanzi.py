"""Converts lines of text with pinyin in any usual spelling to hanzi: the main interface to the converters.

>>> from model_language.pinyin_to_hanzi import PinyinToHanzi
>>> to_hanzi = PinyinToHanzi()
>>> to_hanzi("jin1 tian1 tian1 qi4 hen3 hao3, Python!")
'今天天气很好, Python!'

Each stretch of pinyin is converted by itself. Other text is not changed, nor is a syllable that is not a
reading of any hanzi. If a word can be segmented into syllables in several ways, all are converted, and the
most probable text is returned. Typed pinyin is assumed to be correct: each syllable becomes a hanzi with this
reading. For pinyin from a speech recogniser, recognition errors are corrected too.
"""

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_language.converters.base import Converter
from model_language.converters.explanation import Explanation
from model_language.converters.user_word_converter import UserWordConverter
from model_language.registry import load_converter
from model_language.search.grid import Conversion
from model_language.search.second_pass import SecondPass
from model_language.search.user_words import UserWords, read_user_words
from model_language.vocabulary.lexicon import Lexicon
from utils.errors import CorpusError
from utils.mandarin.pinyin import full_inventory
from utils.mandarin.typed_pinyin import Piece, plain_syllables, read_line
from utils.run_folder.run import PRETRAINED

SEGMENTATIONS = 8  # number of segmentations of a stretch of pinyin that are tried
# The end of a linked list of values: (the previous link, its value). The parts of a long line are joined
# once, at its end: joining them part by part would take quadratic time.
_Chain = tuple[Any, Any] | None
# Subtracted from the log-probability for each rank below the best segmentation: xian should be one syllable,
# but many people omit the apostrophe of xi'an.
_RANK_COST = 2.0


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
        example: the first of them and its position.

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
        self._strict, self._unwritable = strict, _unwritable(converter.symbols.lexicon)
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
        hanzi = iter([next(others) if found is None else found for _, found in chosen])
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
        found = self._converter.explain(syllables, n_best, reasons)
        explained = iter(list(zip(syllables, found, strict=True)))
        return [_join(line, explained, n_best) for line in read]

    def _read(self, lines: Sequence[str], first_number: int) -> list[list[Piece | list[Piece]]]:
        """The parts of each line; a list of pieces is a stretch of pinyin."""
        read = []
        for number, line in enumerate(lines, start=first_number):
            if (plain := plain_syllables(line)) and self._unwritable.isdisjoint(plain):
                read.append([[Piece(line, 1, (plain,))]])
                continue
            pieces = read_line(line, self._unwritable)
            if self._strict:
                _check(pieces, number)
            parts: list[Piece | list[Piece]] = []
            for is_pinyin, group in itertools.groupby(pieces, key=lambda piece: bool(piece.readings)):
                found = list(group)
                parts += [found] if is_pinyin else found
            read.append(parts)
            for word, column in itertools.chain.from_iterable(piece.unread for piece in pieces):
                self.unread += 1
                self.example = self.example or f"'{word}' in line {number}, column {column}"
        return read

    def _segment(self, stretches: Sequence[list[Piece]]) -> list[tuple[tuple[str, ...], str | None]]:
        """The syllables of each stretch, and its hanzi if they were necessary to choose a segmentation."""
        found = [_segmentations(stretch) for stretch in stretches]
        several = [index for index, ways in enumerate(found) if len(ways) > 1]
        conversions = iter(
            self._converter.best([syllables for index in several for _, syllables in found[index]])
        )
        result: list[tuple[tuple[str, ...], str | None]] = [(ways[0][1], None) for ways in found]
        for index in several:
            tried = [(next(conversions), rank, syllables) for rank, syllables in found[index]]
            best, _, syllables = max(tried, key=lambda way: way[0].score - _RANK_COST * way[1])
            result[index] = (syllables, best.hanzi)
        return result


def _check(pieces: Sequence[Piece], number: int) -> None:
    for piece in pieces:
        if not piece.readings and any(character.isalnum() for character in piece.text):
            raise CorpusError(
                f"'{piece.text.strip()}' is not pinyin",
                where=f"line {number}, column {piece.column}",
                hint="write syllables like zhong1, zhōng or zhong; without strict reading it is not changed",
            )


def _segmentations(stretch: Sequence[Piece]) -> list[tuple[int, tuple[str, ...]]]:
    """Ways to segment a stretch into syllables: the sum of the ranks of its pieces, syllables; best first."""
    if all(len(piece.readings) == 1 for piece in stretch):
        return [(0, tuple(itertools.chain.from_iterable(piece.readings[0] for piece in stretch)))]
    found: list[tuple[int, _Chain]] = [(0, None)]
    for piece in stretch:
        longer = (
            (rank + further, (before, reading))
            for rank, before in found
            for further, reading in enumerate(piece.readings)
        )
        found = heapq.nsmallest(SEGMENTATIONS, longer, key=lambda way: way[0])
    return [(rank, tuple(itertools.chain.from_iterable(_links(last)))) for rank, last in found]


def _join(
    parts: Sequence[Piece | list[Piece]], explained: Iterator[tuple[tuple[str, ...], Explanation]], n: int
) -> ConvertedLine:
    """A line of its parts; each stretch of pinyin takes the next conversion."""
    best: list[tuple[float, _Chain]] = [(0.0, None)]
    sentences: list[tuple[tuple[str, ...], Explanation]] = []
    for part in parts:
        if isinstance(part, list):
            sentences.append(next(explained))
            ways: Sequence[Conversion] = sentences[-1][1].n_best
        else:
            ways = (Conversion(part.text, 0.0),)
        joined = (
            (score + way.score, (before, way.hanzi)) for (score, before), way in itertools.product(best, ways)
        )
        best = heapq.nlargest(n, joined, key=lambda line: line[0])
    unread = [word for part in parts if isinstance(part, Piece) for word in part.unread]
    n_best = tuple(Conversion("".join(_links(last)), score) for score, last in best)
    return ConvertedLine(n_best, tuple(sentences), tuple(unread))


def _links(last: _Chain) -> list[Any]:
    """The values of a chain, the first one first."""
    found = []
    while last:
        last, value = last
        found.append(value)
    return found[::-1]


def _unwritable(lexicon: Lexicon) -> frozenset[str]:
    """Syllables, with and without tone, that are not a reading of any hanzi in any tone."""
    found = [syllable for syllable in full_inventory() if lexicon.nearest(syllable) is None]
    return frozenset([*found, *(syllable[:-1] for syllable in found)])
