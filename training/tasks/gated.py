"""Training of the context network: texts → pairs on disk → rows → the task that the loop trains."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops
from scipy.sparse import coo_array, csr_array

from data.text.pinyin_pair_dataset import (
    PairDataset,
    PairRows,
    ReadingCounts,
    hanzi_table,
    syllable_table,
)
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.pinyin_pairs import MANIFEST_ENDINGS, Pair, read_pairs
from model_language.converters.gated import ContextConverter
from model_language.networks.candidates import TABLES_FILE, ContextTables, build_tables
from model_language.networks.gated_cnn import build_context, context_weights
from model_language.networks.gated_cnn_numpy import ContextNetwork
from model_language.search.grid import length_batches
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols, build_symbols
from training.distributed.distribution import ALONE, Distribution
from training.initialise import freeze_layers
from training.loop import prepare_backend, train
from training.tasks.gated_rows import PARTICLES, RowBatch, RowBatches
from training.tasks.language_config import LanguageConfig
from utils.backend.model_summary import summary_text
from utils.errors import ConfigError
from utils.files import write_text
from utils.mandarin.pinyin import full_inventory, without_tone
from utils.metrics import ErrorCounts, count_errors
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")


class ContextTask:
    """Cross-entropy over the candidates of each syllable, in nats a position of a row.

    Evaluation is what the NumPy half makes of the dev sentences, with their tones and without.

    Args:
        model: of :func:`model_language.networks.gated_cnn.build_context`.
        tables: those that it was built with.
        symbols: vocabularies.
        batches: to learn from.
        steps: batches in an epoch.
        dev: sentences.
        share: (index, count): which part of each training batch is here: row i in share i % count.
    """

    metric = "dev_character_error_rate"

    def __init__(
        self,
        model: keras.Model,
        tables: ContextTables,
        symbols: Symbols,
        batches: RowBatches,
        steps: int,
        dev: Sequence[Pair],
        share: tuple[int, int] = (0, 1),
    ):
        self.model = model
        self._tables, self._symbols, self._batches, self._steps = tables, symbols, batches, steps
        self._dev, self._share = dev, share

    def steps(self, epoch: int) -> int:
        """Number of training batches in an epoch: the same in each."""
        return self._steps

    def batches(self, epoch: int, first_step: int) -> Iterator[RowBatch]:
        """An epoch's training batches from ``first_step`` on; all of one shape."""
        begin = (epoch - 1) * self._steps
        for number in range(begin + first_step, begin + self._steps):
            yield self._batches.batch(number, self._share)

    def arrays(self, batch: RowBatch) -> dict[str, np.ndarray]:
        """Tokens and the places of the true hanzi, both (batch, length) int32."""
        return {"syllables": batch.syllables, "choices": batch.choices}

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Mean cross-entropy of each row's positions, in nats, (batch,) float32.

        A position whose hanzi isn't among the candidates has none.
        """
        logits = self.model({"syllables": arrays["syllables"]}, training=training)  # (B, L, K)
        places = ops.arange(1, logits.shape[-1] + 1, dtype="int32")
        hit = places == ops.expand_dims(arrays["choices"], -1)
        losses = -ops.sum(ops.where(hit, ops.log_softmax(logits, axis=-1), 0.0), axis=-1)  # (B, L)
        return ops.mean(losses, axis=-1)

    def evaluate(self) -> dict[str, float]:
        """Character error rates of the dev set, and mean cross-entropy of a hanzi from toned syllables."""
        network = ContextNetwork(context_weights(self.model, self._tables))
        converter = ContextConverter(network, self._symbols)
        hanzi = [pair.hanzi for pair in self._dev]
        toned, loss = evaluated(converter, [pair.pinyin for pair in self._dev], hanzi)
        bare = [tuple(map(without_tone, pair.pinyin)) for pair in self._dev]
        toneless, _ = evaluated(converter, bare, hanzi)
        return {"dev_loss": loss, self.metric: toned.rate, "dev_toneless_error_rate": toneless.rate}


def evaluated(
    converter: ContextConverter, sentences: Sequence[Sequence[str]], hanzi: Sequence[str]
) -> tuple[ErrorCounts, float]:
    """Errors of a converter, and its mean cross-entropy of the true hanzi that it can write, in nats."""
    counts, loss, written = ErrorCounts(), 0.0, 0
    for batch in length_batches([len(sentence) for sentence in sentences], converter.batch_syllables):
        grid = converter.grid([sentences[index] for index in batch])
        best = np.take_along_axis(grid.candidates, grid.scores.argmax(axis=-1)[..., None], axis=-1)[..., 0]
        for row, index in enumerate(batch):
            length = grid.lengths[row]
            counts += count_errors(hanzi[index], converter.symbols.decode(best[row, :length]))
            ids = converter.symbols.encode_hanzi(hanzi[index])[:, None]  # (L, 1)
            scores = grid.scores[row, :length][(grid.candidates[row, :length] == ids) & (ids > PAD_ID)]
            loss, written = loss - float(scores.sum(dtype=np.float64)), written + len(scores)
    return counts, loss / max(written, 1)


def train_context(
    config: LanguageConfig, run: RunFolder, distribution: Distribution = ALONE
) -> dict[str, float]:
    """Train a context network into ``run`` (or go on where it was); returns the best epoch's figures.

    Raises:
        ConfigError, CorpusError, TrainingError: see the message.
    """
    data = config.data
    _check(config)
    dataset = prepare_pairs(data.train, data.cache, spoken=config.model.rows.spoken, seed=config.seed)
    dev = read_pairs(data.dev, cache=data.cache).pairs
    log.info("%s: %d training hanzi, %d dev sentences", config.model.name, dataset.hanzi_count, len(dev))
    if dataset.rejected:
        log.warning("lines left out: %s", ", ".join(f"{n}: {why}" for why, n in dataset.rejected.items()))
    symbols, tables = prepared_tables(config, run, dataset)
    prepare_backend(config.training, config.seed)
    distribution.check_same("vocabulary", [symbols.pinyin.tokens, symbols.hanzi.tokens])
    model = distribution.build(lambda: build_context(config.model, tables, len(symbols.hanzi)))
    freeze_layers(model, config.freeze)
    write_text(run.path / "model_summary.txt", summary_text(model))
    rows = text_rows(dataset, symbols, data.batch_syllables // data.batch_sentences)
    batches = RowBatches(rows, tables, symbols, config.model.rows, data.batch_sentences, config.seed)
    task = ContextTask(model, tables, symbols, batches, config.model.rows.steps, dev, distribution.share)
    return train(task, run, config.training, config.optimiser, distribution)


def prepared_tables(
    config: LanguageConfig, run: RunFolder, dataset: PairDataset
) -> tuple[Symbols, ContextTables]:
    """Vocabularies and candidates of a run: those that it has, or new ones from the text."""
    path = run.vocabulary(TABLES_FILE)
    if path.is_file():  # the last to be written
        return Symbols.load(run.path), ContextTables.load(path)
    found = dataset.count_readings()
    symbols = build_symbols(((syllable,), hanzi) for syllable, hanzi, _ in found.named())
    symbols.save(run.path)
    counts = reading_matrix(found, symbols, config.model.rows.particles)
    tables = build_tables(symbols, counts, config.model.choices)
    tables.save(path)
    return symbols, tables


def reading_matrix(found: ReadingCounts, symbols: Symbols, particles: float = 0.0) -> csr_array:
    """Counts of readings by a model's ids, (pinyin, hanzi).

    Args:
        found: of the text.
        symbols: vocabularies.
        particles: share of those read in full, which are counted as such too.
    """
    syllable_ids, hanzi_ids = _id_tables(symbols)
    syllables, hanzi = syllable_ids[found.syllables], hanzi_ids[found.hanzi]
    shape = (len(symbols.pinyin), len(symbols.hanzi))
    counts = csr_array(coo_array((found.counts.astype(np.float64), (syllables, hanzi)), shape=shape)).tolil()
    for one, weak, full in PARTICLES:
        if one in symbols.hanzi:
            column = symbols.hanzi.index(one)
            counts[symbols.pinyin.index(full), column] += (
                particles * counts[symbols.pinyin.index(weak), column]
            )
    return csr_array(counts)


def text_rows(dataset: PairDataset, symbols: Symbols, length: int) -> PairRows:
    """The texts as rows of a model's ids; what isn't in its vocabulary is ``<unk>``."""
    return PairRows(dataset.shards, length, *_id_tables(symbols))


def _id_tables(symbols: Symbols) -> tuple[np.ndarray, np.ndarray]:
    syllables = syllable_table(symbols.encode(full_inventory()), end=PAD_ID)
    return syllables, hanzi_table(symbols.hanzi.tokens, end=PAD_ID, unknown=UNKNOWN_ID)


def _check(config: LanguageConfig) -> None:
    data, name = config.data, config.model.name
    if config.initialise_from:
        raise ConfigError(f"initialise_from isn't for model.name={name}", hint="leave it out")
    if data.limit:
        raise ConfigError(f"data.limit isn't for model.name={name}", hint="leave it out; set training.epochs")
    lists = [source for source in data.train if source.endswith(MANIFEST_ENDINGS)]
    if lists:
        what = f"model.name={name} learns from texts, not from lists: {', '.join(lists)}"
        raise ConfigError(what, hint="give .txt or .txt.xz, a clause a line")
    if data.batch_syllables < data.batch_sentences:
        what = f"{data.batch_syllables} data.batch_syllables are none for {data.batch_sentences} rows"
        raise ConfigError(what, hint="a row has data.batch_syllables / data.batch_sentences of them")
