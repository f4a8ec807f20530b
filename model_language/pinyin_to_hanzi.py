"""Typed lines in, pinyin in any usual spelling among other text; hanzi out: the converter for everybody.

>>> from model_language.pinyin_to_hanzi import PinyinToHanzi
>>> to_hanzi = PinyinToHanzi()
>>> to_hanzi("jin1 tian1 tian1 qi4 hen3 hao3, Python!")
'今天天气很好, Python!'

Each stretch of pinyin is converted by itself; what stands between stays as it is, and so does a syllable that
no hanzi is read as. A word that can be cut into syllables in several ways is converted in each, and the most
probable text stays. Typed pinyin is taken as it is: each syllable becomes a hanzi that is read so. Only of
pinyin that comes from a recogniser are syllables corrected that it may have mistaken.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_language.converters.combined import NAME as FUSED
from model_language.converters.combined import FusedConfig, FusedConverter, load_fused_converter
from model_language.converters.explain import Explained, GridConverter, GuidedConverter
from model_language.converters.ngram import NAME as NGRAM
from model_language.converters.ngram import NgramConfig, load_ngram_converter
from model_language.search.grid import Conversion
from model_language.search.user_words import UserWords, read_user_words
from model_language.vocabulary.lexicon import Lexicon
from utils.backend.quiet import silence_tensorflow
from utils.config import build_config
from utils.errors import CorpusError, RunError
from utils.mandarin.pinyin import full_inventory
from utils.mandarin.typed_pinyin import Piece, plain_syllables, read_line
from utils.run_folder.run import PRETRAINED, open_run

VARIANTS = 8  # ways to cut a stretch of pinyin that are tried
# The last link of a chain of values: (the link before it, its value). Parts of a long line are put together
# once, at its end: joining them part by part would take quadratic time.
_Chain = tuple[Any, Any] | None
# What each step down from the best way to cut costs (natural logarithm): who leaves the apostrophe of xi'an
# out goes against the norm, but many do.
_REMOTENESS = 2.0


@dataclass(frozen=True)
class ConvertedLine:
    """A line and what became of it.

    Attributes:
        n_best: whole lines, the best first, with other text in its place.
        sentences: the stretches of pinyin: canonical syllables and what was made of them.
        unread: words of Latin letters that are no pinyin and stay as they are, with their columns.
    """

    n_best: tuple[Conversion, ...]
    sentences: tuple[tuple[tuple[str, ...], Explained], ...]
    unread: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """The best line."""
        return self.n_best[0].hanzi


class PinyinToHanzi:
    """Lines of pinyin → hanzi.

    Args:
        run: run folder of a language model; without it the one that comes with this project.
        words: user words, or the file that holds them.
        strict: a word that is no pinyin is an error; else it stays as it is.
        recognised: the pinyin comes from a speech recogniser, so single syllables may be wrong.

    Attributes:
        unread: words of Latin letters so far that were no pinyin.
        example: the first of them, and where it was.

    Raises:
        UserError: the run or the file of words can't be used.
    """

    def __init__(
        self,
        run: str | Path = PRETRAINED,
        words: UserWords | str | Path | None = None,
        strict: bool = False,
        recognised: bool = False,
    ):
        found = words if isinstance(words, UserWords) else read_user_words(words) if words else UserWords()
        converter = load_grid_converter(Path(run))
        if isinstance(converter, FusedConverter) and not recognised:  # no other one corrects syllables
            converter = converter.typed()
        self._converter = GuidedConverter(converter, found)
        self._strict, self._unwritable = strict, _unwritable(converter.symbols.lexicon)
        self.unread, self.example = 0, ""

    def __call__(self, line: str) -> str:
        """Convert one line.

        Raises:
            CorpusError: with ``strict``, a word is no pinyin.
        """
        return self.convert([line])[0]

    def convert(self, lines: Sequence[str], first_number: int = 1) -> list[str]:
        """Convert lines together, which is faster.

        Args:
            lines: text without line ends.
            first_number: of the first line, for errors.

        Raises:
            CorpusError: with ``strict``, a word is no pinyin; its line and column are named.
        """
        read = self._read(lines, first_number)
        chosen = self._cut([stretch for line in read for stretch in line if isinstance(stretch, list)])
        # What had to be converted to choose among ways to cut it is there already.
        left = iter(self._converter.convert([syllables for syllables, hanzi in chosen if hanzi is None]))
        hanzi = iter([next(left) if found is None else found for _, found in chosen])
        return [
            "".join(next(hanzi) if isinstance(part, list) else part.text for part in line) for line in read
        ]

    def explain(self, lines: Sequence[str], n_best: int = 1, first_number: int = 1) -> list[ConvertedLine]:
        """Convert lines, with the ``n_best`` most probable ways to write each, and reasons.

        Raises:
            CorpusError: as :meth:`convert`.
        """
        read = self._read(lines, first_number)
        chosen = self._cut([stretch for line in read for stretch in line if isinstance(stretch, list)])
        syllables = [syllables for syllables, _ in chosen]
        explained = iter(list(zip(syllables, self._converter.explain(syllables, n_best), strict=True)))
        return [_line(line, explained, n_best) for line in read]

    def _read(self, lines: Sequence[str], first_number: int) -> list[list[Piece | list[Piece]]]:
        """Of each line its parts: a list of pieces is a stretch of pinyin."""
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

    def _cut(self, stretches: Sequence[list[Piece]]) -> list[tuple[tuple[str, ...], str | None]]:
        """Of each stretch its syllables; with hanzi, where these were needed to choose."""
        variants = [_variants(stretch) for stretch in stretches]
        several = [index for index, found in enumerate(variants) if len(found) > 1]
        asked = [syllables for index in several for _, syllables in variants[index]]
        answers = iter(self._converter.best(asked))
        result: list[tuple[tuple[str, ...], str | None]] = [(found[0][1], None) for found in variants]
        for index in several:
            tried = [(next(answers), remoteness, syllables) for remoteness, syllables in variants[index]]
            best, _, syllables = max(tried, key=lambda one: one[0].score - _REMOTENESS * one[1])
            result[index] = (syllables, best.hanzi)
        return result


def _check(pieces: Sequence[Piece], number: int) -> None:
    for piece in pieces:
        if not piece.readings and any(character.isalnum() for character in piece.text):
            hint = "write syllables like zhong1, zhōng or zhong; without strict reading it stays as it is"
            where = f"line {number}, column {piece.column}"
            raise CorpusError(f"'{piece.text.strip()}' is not pinyin", where=where, hint=hint)


def _variants(stretch: Sequence[Piece]) -> list[tuple[int, tuple[str, ...]]]:
    """Ways to cut a stretch into syllables, with how far from the best each is; the best first."""
    found: list[tuple[int, _Chain]] = [(0, None)]
    for piece in stretch:
        longer = (
            (far + further, (before, reading))
            for far, before in found
            for further, reading in enumerate(piece.readings)
        )
        found = heapq.nsmallest(VARIANTS, longer, key=lambda one: one[0])
    return [(far, tuple(itertools.chain.from_iterable(_links(last)))) for far, last in found]


def _line(
    parts: Sequence[Piece | list[Piece]], explained: Iterator[tuple[tuple[str, ...], Explained]], n: int
) -> ConvertedLine:
    best: list[tuple[float, _Chain]] = [(0.0, None)]
    sentences: list[tuple[tuple[str, ...], Explained]] = []
    for part in parts:
        if isinstance(part, list):
            sentences.append(next(explained))
            ways: Sequence[Conversion] = sentences[-1][1].n_best
        else:
            ways = (Conversion(part.text, 0.0),)
        joined = (
            (score + way.score, (before, way.hanzi)) for (score, before), way in itertools.product(best, ways)
        )
        best = heapq.nlargest(n, joined, key=lambda one: one[0])
    unread = [word for part in parts if isinstance(part, Piece) for word in part.unread]
    n_best = tuple(Conversion("".join(_links(last)), score) for score, last in best)
    return ConvertedLine(n_best, tuple(sentences), tuple(unread))


def _links(last: _Chain) -> list[Any]:
    """What a chain holds, the first link first."""
    found = []
    while last:
        last, value = last
        found.append(value)
    return found[::-1]


def _unwritable(lexicon: Lexicon) -> frozenset[str]:
    """Syllables, with and without tone, that no hanzi is read as in any tone."""
    found = [syllable for syllable in full_inventory() if lexicon.nearest(syllable) is None]
    return frozenset([*found, *(syllable[:-1] for syllable in found)])


def load_grid_converter(path: Path) -> GridConverter:
    """A converter; a framework is loaded only for one that needs it."""
    if path == PRETRAINED and not path.is_dir():
        hint = "give another model: --model RUN, e.g. runs/demo/language, which `make demo` makes"
        raise RunError("the converter that comes with this project is not there", where=path, hint=hint)
    run = open_run(path, task="language")
    values = run.config().get("model") or {}
    for name, config, load in (
        (NGRAM, NgramConfig, load_ngram_converter),
        (FUSED, FusedConfig, load_fused_converter),
    ):
        if values.get("name") == name:
            return load(run, build_config(config, values, where=str(run.config_file)))
    silence_tensorflow()
    from model_language.registry import load_converter  # here: those above start without Keras

    return load_converter(path)
