"""What the tasks on rows of text share: shuffled batches of rows, the texts that they read, epochs.

A text is cut into rows of equal length, in each epoch at another offset.
"""

import logging
from collections.abc import Iterator
from typing import Any, Protocol

import keras
import numpy as np

from data.text.pinyin_pair_dataset import PairDataset, PairRows
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.pinyin_pairs import Pair, read_pairs
from model_language.vocabulary.symbols import PAD_ID
from training.tasks.language_config import LanguageConfig, check_text_rows


class ShuffledRows:
    """The rows of a text, batch by batch; a batch depends only on its number and the seed."""

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


log = logging.getLogger("train")


class NumberedBatches(Protocol):
    """All batches of a training run by number."""

    def batch(self, number: int, shard: tuple[int, int] = (0, 1)) -> Any:
        """Batch ``number`` of the training, from 0; only the rows i with i % count = index of a shard."""


class RowTask:
    """What tasks on rows of text have in common: epochs of as many batches each.

    Args:
        model: the network.
        batches: training batches.
        steps: batches in an epoch.
        shard: (index, count): this process trains the rows i of each batch with i % count = index.
    """

    accepts_padding = True

    def __init__(self, model: keras.Model, batches: NumberedBatches, steps: int, shard: tuple[int, int]):
        self.model = model
        self._batches, self._steps, self._shard = batches, steps, shard

    def steps(self, epoch: int) -> int:
        """Number of training batches in an epoch, the same in each."""
        return self._steps

    def batches(self, epoch: int, first_step: int) -> Iterator[Any]:
        """The training batches of an epoch from ``first_step`` on, all of the same shape."""
        start = (epoch - 1) * self._steps
        for number in range(start + first_step, start + self._steps):
            yield self._batches.batch(number, self._shard)


def read_texts(config: LanguageConfig, spoken: float = 0.0) -> tuple[PairDataset, list[Pair]]:
    """The training texts, prepared on disk, and the dev sentences of a recipe.

    Args:
        config: the recipe.
        spoken: fraction of the syllables with a spoken variant that are replaced by it, as for
            :func:`data.text.pinyin_pair_preparation.prepare_pairs`.

    Raises:
        ConfigError, CorpusError: see the message.
    """
    data = config.data
    check_text_rows(config)
    dataset = prepare_pairs(data.train, data.cache, spoken=spoken, seed=config.seed)
    dev = read_pairs(data.dev, cache=data.cache)
    log.info("%s: %d training hanzi, %d dev sentences", config.model.name, dataset.hanzi_count, len(dev))
    if dataset.rejected:
        log.warning(
            "lines left out: %s", ", ".join(f"{n}: {reason}" for reason, n in dataset.rejected.items())
        )
    return dataset, dev
