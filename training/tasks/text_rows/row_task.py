"""What the tasks on rows of text share: the texts that they read, and epochs of as many batches each."""

import logging
from collections.abc import Iterator
from typing import Any, Protocol

from data.text.pinyin_pair_dataset import PairDataset
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.pinyin_pairs import Pair, read_pairs
from training.tasks.language_config import LanguageConfig, check_text_rows

log = logging.getLogger("train")


class NumberedBatches(Protocol):
    """All batches of a training run by number."""

    def batch(self, number: int, shard: tuple[int, int] = (0, 1)) -> Any:
        """Batch ``number`` of the training, from 0; only the rows i with i % count = index of a shard."""


class RowTask:
    """What tasks on rows of text have in common: epochs of as many batches each.

    Args:
        batches: training batches.
        steps: batches in an epoch.
        shard: (index, count): this process trains the rows i of each batch with i % count = index.
    """

    accepts_padding = True

    def __init__(self, batches: NumberedBatches, steps: int, shard: tuple[int, int]):
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
    dev = read_pairs(data.dev, cache=data.cache).pairs
    log.info("%s: %d training hanzi, %d dev sentences", config.model.name, dataset.hanzi_count, len(dev))
    if dataset.rejected:
        log.warning(
            "lines left out: %s", ", ".join(f"{n}: {reason}" for reason, n in dataset.rejected.items())
        )
    return dataset, dev
