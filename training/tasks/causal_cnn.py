"""Trains the causal gated CNN, a language model of hanzi, on texts: a task with a sampled softmax.

Texts become pairs of pinyin and hanzi on disk, the same ones as for the other language models, then rows of
hanzi. The dev set is rated with the NumPy network and the full softmax.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import keras
import numpy as np
from keras import ops

from data.text.pinyin_pair_dataset import PairDataset, PairRows, hanzi_table, syllable_table
from model_language.language_model import HanziLanguageModel
from model_language.networks.causal_cnn import build_causal_cnn, numpy_weights, sampled_losses
from model_language.networks.causal_cnn_numpy import NumpyCausalCnn, TextRowsConfig
from model_language.registry import load_network
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, symbols_of_run
from training.distributed.distribution import SINGLE_PROCESS, Distribution
from training.initialise import TokenLayer
from training.loop import prepare_backend, train
from training.tasks.language_config import LanguageConfig
from training.tasks.recipe import SourceModel, prepare_model
from training.tasks.text_rows import RowTask, ShuffledRows, read_texts, without
from utils.backend.weights import load_weights
from utils.errors import require
from utils.mandarin.pinyin import full_inventory
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary

FREQUENT = 4096
"""Hanzi in the softmax of a finished run, the most frequent ones. On Common Voice's dev set the 7,000 others
of the shipped model have half a percent of the probability."""
_FLATTENED = 0.75  # exponent of the frequencies by which negatives are drawn (Mikolov et al. 2013)


@dataclass(frozen=True)
class HanziBatch:
    """Rows of text.

    Attributes:
        ids: the start of each row; of all rows of the batch, even if the arrays hold only some of them.
        hanzi: (batch, length) int32, ids plus 1; 0 after the end of the text.
        negatives: (batch, n) int32, drawn ids plus 1; those of all rows together, the same in each row.
    """

    ids: list[str]
    hanzi: np.ndarray
    negatives: np.ndarray


class HanziBatches:
    """All batches of a training run by number.

    Args:
        rows: the texts, and how many rows of a batch come from each.
        frequencies: (hanzi,) float, by which negatives are drawn; their sum is 1.
        config: how rows are made.
        seed: seed of all draws.
    """

    def __init__(
        self,
        rows: Sequence[tuple[PairRows, int]],
        frequencies: np.ndarray,
        config: TextRowsConfig,
        seed: int,
    ):
        self._rows = [ShuffledRows(text, size, seed) for text, size in rows]
        self._seed, self._config, self._cumulative = seed, config, np.cumsum(frequencies)

    def batch(self, number: int, shard: tuple[int, int] = (0, 1)) -> HanziBatch:
        """Batch ``number`` of the training, from 0.

        Args:
            number: number of the batch.
            shard: (index, count): only the rows i with i % count = index.
        """
        names, _, cut = zip(*(rows.batch(number) for rows in self._rows), strict=True)
        ids, hanzi = list(chain.from_iterable(names)), np.concatenate(cut)  # (batch, length)
        random = np.random.default_rng([self._seed, 1, number])
        dropped = (hanzi == PAD_ID) & (random.random(hanzi.shape) < self._config.joined)
        (hanzi,) = without(dropped, hanzi + 1)
        draws = random.random(len(hanzi) * self._config.negatives) * self._cumulative[-1]
        negatives = np.searchsorted(self._cumulative, draws, side="right") + 1
        index, count = shard
        own = hanzi[index::count].astype(np.int32)
        # Each row has all of them: the loss does not depend on devices, processes and parts of a batch.
        return HanziBatch(ids, own, np.tile(negatives.astype(np.int32), (len(own), 1)))


class CausalCnnTask(RowTask):
    """Cross-entropy of each hanzi given those before it, in nats.

    Args:
        model: network from :func:`model_language.networks.causal_cnn.build_causal_cnn`.
        vocabulary: its hanzi.
        batches: training batches.
        frequencies: those by which the batches draw negatives.
        steps: batches in an epoch.
        dev: dev sentences.
        shard: (index, count): this process trains the rows i of each batch with i % count = index.
    """

    metric = "dev_perplexity"

    def __init__(
        self,
        model: keras.Model,
        vocabulary: Vocabulary,
        batches: HanziBatches,
        frequencies: np.ndarray,
        steps: int,
        dev: Sequence[str],
        shard: tuple[int, int] = (0, 1),
    ):
        super().__init__(model, batches, steps, shard)
        self._vocabulary, self._dev = vocabulary, dev
        self._log_frequencies = np.log(frequencies).astype(np.float32)

    def arrays(self, batch: HanziBatch) -> dict[str, np.ndarray]:
        """Hanzi (batch, length) and negatives (batch, n), int32."""
        return {"hanzi": batch.hanzi, "negatives": batch.negatives}

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """See :func:`model_language.networks.causal_cnn.sampled_losses`."""
        return sampled_losses(
            self.model, arrays["hanzi"], arrays["negatives"], ops.array(self._log_frequencies), training
        )

    def evaluate(self) -> dict[str, float]:
        """Mean cross-entropy of the dev set's hanzi and sentence ends in nats, and its exponential."""
        language_model = HanziLanguageModel(NumpyCausalCnn(numpy_weights(self.model)), self._vocabulary)
        loss = -float(np.mean(np.concatenate(language_model.log_probs(self._dev)), dtype=np.float64))
        return {"dev_loss": loss, self.metric: float(np.exp(loss))}


def train_causal_cnn(
    config: LanguageConfig, run: RunFolder, distribution: Distribution = SINGLE_PROCESS
) -> dict[str, float]:
    """Train a causal gated CNN into ``run`` (or continue its training).

    Returns:
        metrics of the best epoch.

    Raises:
        ConfigError, CorpusError, TrainingError: see the message.
    """
    data, rows = config.data, config.model.rows
    dataset, dev = read_texts(config)
    vocabulary = symbols_of_run(run, lambda: _readings(dataset)).hanzi
    prepare_backend(config.training, config.seed)
    distribution.check_same("vocabulary", vocabulary.tokens)
    model = distribution.build(lambda: build_causal_cnn(config.model, len(vocabulary)))
    prepare_model(model, config, run, partial(_load_source, vocabulary))
    frequencies = _frequencies(dataset, vocabulary)
    text = text_rows(
        dataset, vocabulary, data.batch_syllables // data.batch_sentences, data.batch_sentences, rows.shares
    )

    def export() -> None:
        frequent = np.sort(np.argsort(-frequencies, kind="stable")[:FREQUENT])
        load_weights(model, run.best_weights)
        numpy_weights(model, frequent).save(run.causal_network)

    return train(
        task=CausalCnnTask(
            model,
            vocabulary,
            HanziBatches(text, frequencies, rows, config.seed),
            frequencies,
            rows.steps,
            [pair.hanzi for pair in dev],
            distribution.shard,
        ),
        run=run,
        config=config.training,
        optimiser=config.optimiser,
        distribution=distribution,
        export=export,
    )


def _readings(dataset: PairDataset) -> Iterator[tuple[tuple[str], str]]:
    """The readings of the hanzi of the text, as pairs of a syllable and a hanzi."""
    return (((syllable,), hanzi) for syllable, hanzi, _ in dataset.count_readings().named())


def text_rows(
    dataset: PairDataset, vocabulary: Vocabulary, length: int, size: int, shares: Sequence[float] = ()
) -> list[tuple[PairRows, int]]:
    """The texts as rows of hanzi ids, and how many of a batch come from each.

    Args:
        dataset: the texts.
        vocabulary: the hanzi.
        length: positions in a row.
        size: rows in a batch.
        shares: see :class:`model_language.networks.causal_cnn_numpy.TextRowsConfig`.

    Raises:
        ConfigError: there are more or fewer shares than texts.
    """
    nothing = syllable_table(np.zeros(len(full_inventory()), int), end=PAD_ID)
    hanzi = hanzi_table(vocabulary.tokens, end=PAD_ID, unknown=UNKNOWN_ID)
    if not shares:
        return [(PairRows(dataset.shards, length, nothing, hanzi), size)]
    require(
        len(shares) == len(dataset.shards),
        f"model.rows.shares has {len(shares)} fractions, data.train {len(dataset.shards)} texts",
        hint="give a fraction for each text",
    )
    ends = np.round(np.cumsum(shares) * size).astype(int)
    sizes = np.diff(ends, prepend=0).tolist()
    parts = zip(dataset.shards, sizes, strict=True)
    return [(PairRows((shard,), length, nothing, hanzi), rows) for shard, rows in parts if rows]


def _load_source(vocabulary: Vocabulary, run: str) -> SourceModel:
    """The trained network of another run; weights of hanzi go to the same hanzi."""
    source, theirs = load_network(run)
    return source, {"vectors": TokenLayer(theirs.hanzi, vocabulary, axis=0)}


def _frequencies(dataset: PairDataset, vocabulary: Vocabulary) -> np.ndarray:
    """Flattened frequencies of the hanzi and of the line end, (hanzi,) float64; their sum is 1."""
    counts = np.ones(len(vocabulary))
    for _, hanzi, count in dataset.count_readings().named():
        counts[vocabulary.index(hanzi) if hanzi in vocabulary else UNKNOWN_ID] += count
    counts[PAD_ID] += sum(shard.line_count for shard in dataset.shards)
    flattened = counts**_FLATTENED
    return flattened / flattened.sum()
