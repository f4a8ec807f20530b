"""Prepared pairs in; rows of equal length, cut from the texts wherever asked, as a model's ids out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from data.text.pinyin_pair_part import PairPart


class PairRows:
    """All positions of some texts as rows; each text is cut for itself, its first and last row are filled up.

    Args:
        parts: whose arrays stay on disk.
        length: positions in a row.
        syllable_ids: of :func:`data.text.pinyin_pair_part.syllable_table`.
        hanzi_ids: of :func:`data.text.pinyin_pair_part.hanzi_table`.

    Attributes:
        length: as given.
    """

    def __init__(
        self, parts: Sequence[PairPart], length: int, syllable_ids: np.ndarray, hanzi_ids: np.ndarray
    ):
        self._parts, self.length = parts, length
        self._syllable_ids, self._hanzi_ids = syllable_ids, hanzi_ids
        # One more than fit: wherever the first cut is, the last positions are in a row too.
        self._ends = np.cumsum([len(part) // length + 1 for part in parts])

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._ends[-1])

    def cut(self, numbers: np.ndarray, offset: int) -> tuple[np.ndarray, np.ndarray]:
        """Syllables and hanzi of some rows, (rows, length) int32 each, 0 beyond a text.

        Args:
            numbers: (rows,) int, which ones, from 0.
            offset: positions by which the first row of each text begins before it, less than a row.
        """
        syllables, hanzi = (np.zeros((len(numbers), self.length), np.int32) for _ in range(2))
        for number, part, places in self._places(numbers, offset):
            inside = (places >= 0) & (places < len(part))
            there = places[inside]
            mask = np.zeros(syllables.shape, bool)
            mask[number] = inside
            syllables[mask] = self._syllable_ids[part.syllables[there]]
            hanzi[mask] = self._hanzi_ids[part.characters[there]]
        return syllables, hanzi

    def names(self, numbers: np.ndarray, offset: int) -> list[str]:
        """Text and position of each row's beginning, for messages."""
        names = [""] * len(numbers)
        for rows, part, places in self._places(numbers, offset):
            for row, first in zip(rows, places[:, 0].tolist(), strict=True):
                names[row] = f"{part.stem.name}:{max(first, 0)}"
        return names

    def _places(self, numbers: np.ndarray, offset: int):
        """For each text with some of the rows: which of them, the text, positions in it (rows, length)."""
        owners = np.searchsorted(self._ends, numbers, side="right")
        for owner in np.unique(owners):
            rows = np.flatnonzero(owners == owner)
            part = self._parts[owner]
            first = self._ends[owner] - (len(part) // self.length + 1)
            begins = (numbers[rows] - first) * self.length - offset
            yield rows, part, begins[:, None] + np.arange(self.length)
