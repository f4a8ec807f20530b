"""Shuffled batches of rows: a text is cut into rows of equal length, in each epoch at another offset."""

import numpy as np

from data.text.pinyin_pair_dataset import PairRows
from model_language.vocabulary.symbols import PAD_ID


class ShuffledRows:
    """The rows of a text, batch by batch; a batch depends only on its number and the seed.

    Args:
        rows: the text.
        size: rows in a batch.
        seed: seed of the order and the offsets.
    """

    def __init__(self, rows: PairRows, size: int, seed: int):
        self._rows, self._size, self._seed = rows, size, seed
        self._order: tuple[int, int, np.ndarray] | None = None  # of the current epoch

    def batch(self, number: int) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Batch ``number`` of the training, from 0.

        Returns:
            names of the rows; their syllables and hanzi, (batch, length) int32 each.
        """
        ids: list[str] = []
        cut = []
        first = number * self._size
        while len(ids) < self._size:
            epoch, start = divmod(first + len(ids), len(self._rows))
            offset, order = self._shuffled(epoch)
            chosen = order[start : start + self._size - len(ids)]
            ids += self._rows.names(chosen, offset)
            cut.append(self._rows.read(chosen, offset))
        syllables, hanzi = map(np.concatenate, zip(*cut, strict=True))
        return ids, syllables, hanzi

    def _shuffled(self, epoch: int) -> tuple[int, np.ndarray]:
        """The offset at which the text is cut into rows in an epoch, and the order of the rows."""
        if self._order is None or self._order[0] != epoch:
            random = np.random.default_rng([self._seed, 0, epoch])
            length = self._rows.length
            self._order = (epoch, int(random.integers(length)), random.permutation(len(self._rows)))
        return self._order[1:]


def without(dropped: np.ndarray, *rows: np.ndarray) -> list[np.ndarray]:
    """Rows (batch, length) without the dropped positions, filled with 0 at the end."""
    order = np.argsort(dropped, axis=1, kind="stable")
    return [np.take_along_axis(np.where(dropped, PAD_ID, row), order, axis=1) for row in rows]
