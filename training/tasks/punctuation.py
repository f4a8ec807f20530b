"""Trains the punctuation network on punctuated text: cross-entropy of the mark after each hanzi.

A batch depends only on its number and the seed, so a resumed training sees the same batches. The dev set is
evaluated passage by passage, with drawn pauses and without pauses.
"""

import logging
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops

from data.text.punctuated import Passages, draw_pauses, draw_row, encode_passages, read_passages
from model_language.batching import length_batches
from model_language.networks.punctuation import build_punctuation
from model_language.vocabulary.symbols import PAD_ID, symbols_of_run
from training.distributed.distribution import SINGLE_PROCESS, Distribution
from training.loop import prepare_backend, train
from training.tasks.language_config import LanguageConfig
from training.tasks.recipe import prepare_model
from training.tasks.text_rows import RowTask
from utils.arrays import log_softmax, pad_rows
from utils.backend.prediction import predict, prepare_prediction
from utils.errors import require
from utils.mandarin.punctuation import UNKNOWN_PAUSE, f1_scores
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")
_DEV_SEED = 1
_DEV_BATCH = 16_384  # hanzi


@dataclass(frozen=True)
class PunctuationBatch:
    """Rows of text.

    Attributes:
        ids: names of all rows of the batch, even if the array holds only some of them.
        rows: (3, batch, length) int32: hanzi, 0 after the end; pauses; marks.
    """

    ids: list[str]
    rows: np.ndarray


class PunctuationBatches:
    """All batches of a training run by number: ``size`` rows of at most ``length`` hanzi."""

    def __init__(self, passages: Passages, length: int, size: int, seed: int):
        self._passages, self._length, self._size, self._seed = passages, length, size, seed

    def batch(self, number: int, shard: tuple[int, int] = (0, 1)) -> PunctuationBatch:
        """Batch ``number`` of the training, from 0; only the rows i with i % count = index of a shard."""
        random = np.random.default_rng([self._seed, number])
        rows = [draw_row(self._passages, self._length, random) for _ in range(self._size)]
        padded = np.zeros((3, self._size, self._length), np.int32)
        for index, row in enumerate(rows):
            padded[:, index, : row.shape[1]] = row
        ids = [f"row {index} of batch {number}" for index in range(self._size)]
        return PunctuationBatch(ids, padded[:, shard[0] :: shard[1]])


class PunctuationTask(RowTask):
    """Cross-entropy of the mark after each hanzi, summed over a row, in nats.

    Args:
        model: network from :func:`model_language.networks.punctuation.build_punctuation`.
        batches: training batches.
        steps: batches in an epoch.
        dev: dev passages.
        shard: (index, count): this process trains the rows i of each batch with i % count = index.
    """

    metric = "dev_mark_error"

    def __init__(
        self,
        model: keras.Model,
        batches: PunctuationBatches,
        steps: int,
        dev: Passages,
        shard: tuple[int, int] = (0, 1),
    ):
        super().__init__(model, batches, steps, shard)
        self._dev = dev
        prepare_prediction(model)

    def arrays(self, batch: PunctuationBatch) -> dict[str, np.ndarray]:
        """Hanzi, pauses and marks, (batch, length) int32 each."""
        hanzi, pauses, marks = batch.rows
        return {"hanzi": hanzi, "pauses": pauses, "marks": marks}

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Cross-entropy of a row's marks in nats, (batch,) float32."""
        inputs = {"hanzi": arrays["hanzi"], "pauses": arrays["pauses"]}
        logits = self.model(inputs, training=training)
        losses = keras.losses.sparse_categorical_crossentropy(arrays["marks"], logits, from_logits=True)
        return ops.sum(losses * ops.cast(arrays["hanzi"] != PAD_ID, losses.dtype), axis=1)

    def evaluate(self) -> dict[str, float]:
        """Loss of a hanzi in nats with drawn pauses; 1 − F1 of all marks with them and without pauses."""
        random = np.random.default_rng(_DEV_SEED)
        drawn = draw_pauses(self._dev.marks, random)
        loss, scores = self._score(drawn)
        _, without = self._score(np.full_like(drawn, UNKNOWN_PAUSE))
        for mark, score in scores.items():
            log.info("%s: F1 %.3f, without pauses %.3f", mark, score, without[mark])
        return {
            "dev_loss": loss,
            self.metric: 1 - scores["all"],
            "dev_mark_error_without_pauses": 1 - without["all"],
        }

    def _score(self, pauses: np.ndarray) -> tuple[float, dict[str, float]]:
        dev = self._dev
        found, losses = np.zeros(len(dev.hanzi), np.int32), np.zeros(len(dev.hanzi))
        for batch in length_batches(np.diff(dev.starts).tolist(), _DEV_BATCH):
            places = [dev.places(number) for number in batch]
            inputs = {
                name: pad_rows([values[each] for each in places])
                for name, values in (("hanzi", dev.hanzi), ("pauses", pauses))
            }
            log_probs = log_softmax(np.asarray(predict(self.model, inputs)))
            for each, rows in zip(places, log_probs, strict=True):
                found[each] = rows[: len(each)].argmax(axis=1)
                losses[each] = -rows[np.arange(len(each)), dev.marks[each]]
        return float(losses.mean()), f1_scores(dev.marks, found)


def train_punctuation(
    config: LanguageConfig, run: RunFolder, distribution: Distribution = SINGLE_PROCESS
) -> dict[str, float]:
    """Train a punctuation network into ``run`` (or continue its training); metrics of the best epoch.

    Raises:
        ConfigError, CorpusError, TrainingError: see the message.
    """
    data = config.data
    require(
        not config.initialise_from, "a punctuation network begins with random weights", hint="leave it out"
    )
    passages, dev = read_passages(data.train), read_passages(data.dev)
    vocabulary = symbols_of_run(run, tuple).hanzi  # the hanzi of GB 2312, in every run the same
    encoded, encoded_dev = (encode_passages(each, vocabulary) for each in (passages, dev))
    log.info("%d training passages, %d hanzi", len(encoded), len(encoded.hanzi))
    prepare_backend(config.training, config.seed)
    distribution.check_same("vocabulary", vocabulary.tokens)
    model = distribution.build(lambda: build_punctuation(config.model, len(vocabulary)))
    prepare_model(model, config, run, None)
    length = data.batch_syllables // data.batch_sentences
    return train(
        task=PunctuationTask(
            model,
            PunctuationBatches(encoded, length, data.batch_sentences, config.seed),
            config.model.steps,
            encoded_dev,
            distribution.shard,
        ),
        run=run,
        config=config.training,
        optimiser=config.optimiser,
        distribution=distribution,
    )
