"""A piece of raw text in; its lines as flat arrays, a syllable and a hanzi at each position, out.

What every worker process of ``data.text.pinyin_pair_shards`` does. Lines that can't be used are counted by
reason.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from data.text.sources import decoded
from utils.errors import CorpusError
from utils.files import read_arrays, replacing
from utils.mandarin.pinyin import full_inventory, hanzi_to_pinyin, is_hanzi
from utils.mandarin.sandhi import spoken_variants

NOT_HANZI = "not hanzi only"
BEYOND_BMP = "hanzi outside of the BMP"
UNREAD = "hanzi without a reading"
NOT_UTF8 = "not UTF-8"
REASONS = (NOT_HANZI, BEYOND_BMP, UNREAD, NOT_UTF8)

SYLLABLE_LINE_END, HANZI_LINE_END = 0, ord("\n")


@dataclass(frozen=True)
class PairPiece:
    """Pairs of a stretch of text.

    Attributes:
        syllables: (positions,) uint16, place in the full inventory + 1; ``SYLLABLE_LINE_END`` ends a line.
        hanzi: (positions,) uint16, code points; ``HANZI_LINE_END`` ends a line.
        rejected: reason → lines; empty lines don't count.
    """

    syllables: np.ndarray
    hanzi: np.ndarray
    rejected: Counter[str]

    def save(self, path: str | Path) -> None:
        """Write it as ``.npz``, whole or not at all."""
        rejected = np.array([self.rejected[reason] for reason in REASONS])
        with replacing(path) as temporary:
            np.savez(temporary, syllables=self.syllables, hanzi=self.hanzi, rejected=rejected)

    @classmethod
    def load(cls, path: str | Path) -> PairPiece:
        """Read what :meth:`save` wrote.

        Raises:
            CorpusError: it is damaged.
        """
        try:
            saved = read_arrays(path)
            rejected = Counter(dict(zip(REASONS, map(int, saved["rejected"]), strict=True)))
            return cls(saved["syllables"], saved["hanzi"], rejected)
        except (KeyError, ValueError) as error:
            raise CorpusError(
                "a piece of a preparation is damaged", where=path, hint="delete this file"
            ) from error


@dataclass(frozen=True)
class PairReader:
    """How text is read aloud.

    Attributes:
        spoken: share of the positions that may be said otherwise than cited where it is done
            (``utils.mandarin.sandhi.spoken_variants``); drawn for each line from it and ``seed`` alone.
    """

    spoken: float = 0.0
    seed: int = 0

    def read(self, piece: bytes) -> PairPiece:
        """The pairs of some lines of UTF-8 text, one clause of nothing but hanzi a line."""
        text, undecodable = decoded(piece)
        rejected = Counter({NOT_UTF8: undecodable})
        kept: list[str] = []
        places: list[int] = []
        for line in filter(None, map(str.strip, text.lstrip("\ufeff").split("\n"))):
            if reason := self._add(line, places):
                rejected[reason] += 1
            else:
                kept.append(line)
                places.append(SYLLABLE_LINE_END)
        hanzi = "".join(f"{line}\n" for line in kept).encode("utf-16-le")
        return PairPiece(np.array(places, np.uint16), np.frombuffer(hanzi, "<u2"), rejected)

    def _add(self, line: str, places: list[int]) -> str:
        """Add a line's syllables, or say why it can't be used."""
        if not is_hanzi(line):
            return NOT_HANZI
        if max(line) > "\uffff":
            return BEYOND_BMP
        try:
            syllables = hanzi_to_pinyin(line)
        except CorpusError:
            return UNREAD
        if self.spoken:
            syllables = self._said(line, syllables)
        places += map(_places().__getitem__, syllables)
        return ""

    def _said(self, line: str, cited: Sequence[str]) -> Sequence[str]:
        variants = spoken_variants(line, cited)
        if max(map(len, variants)) == 1:
            return cited
        draw = random.Random(f"{self.seed}\t{line}")
        return [
            draw.choice(ways[1:]) if len(ways) > 1 and draw.random() < self.spoken else ways[0]
            for ways in variants
        ]


def write_piece(reader: PairReader, piece: bytes, path: Path) -> int:
    """Read a piece of text and keep it at ``path``; how many lines it has. For worker processes."""
    pairs = reader.read(piece)
    pairs.save(path)
    return int(np.count_nonzero(pairs.hanzi == HANZI_LINE_END)) + pairs.rejected.total()


@cache
def _places() -> dict[str, int]:
    return {syllable: place for place, syllable in enumerate(full_inventory(), start=1)}
