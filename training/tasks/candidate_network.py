"""Trains the gated CNN or the Transformer over candidates (pinyin → hanzi) on texts, by cross-entropy.

Texts become pairs of pinyin and hanzi on disk, then rows of fixed length. The rows of a batch are corrupted
like recognised speech: tones are removed, syllables replaced by confusable ones, pauses dropped, and weak
particles get their full reading. A batch depends only on its number and the seed, so a resumed training sees
the same batches. The dev set is converted with the network alone, toned and toneless.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from data.text.pinyin_pairs import Pair
from model_language.batching import length_batches
from model_language.converters.neural import CandidateConverter
from model_language.networks.candidates import TABLES_FILE, CandidateTables, build_tables
from model_language.networks.gated_cnn import RowsConfig
from model_language.registry import MODELS
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols, build_symbols
from training.distributed.distribution import SINGLE_PROCESS, Distribution
from training.loop import prepare_backend, train
from training.tasks.language_config import LanguageConfig
from training.tasks.recipe import prepare_model
from training.tasks.text_rows import RowTask, ShuffledRows, read_texts, without
from utils.errors import require
from utils.mandarin.pinyin import full_inventory, without_tone
from utils.metrics import ErrorCounts, count_errors
from utils.run_folder.run import RunFolder

CLEAN, TONELESS, MIXED, CONFUSED = range(4)  # kinds of row
# By kind of row: fraction of the syllables that lose their tone, and of those replaced by a confusable one.
TONELESS_FRACTIONS = np.array([0.0, 1.0, 0.35, 0.0])
MISRECOGNISED_FRACTIONS = np.array([0.0, 0.0, 0.03, 0.12])
# Particles with their weak and their full readings.
PARTICLES = (("地", "de5", "di4"), ("得", "de5", "de2"))


@dataclass(frozen=True)
class RowBatch:
    """Rows of text.

    Attributes:
        ids: the start of each row; of all rows of the batch, even if the arrays hold only some of them.
        syllables: (batch, length) int32 tokens, 0 at pauses and at the end.
        choices: (batch, length) int32, index of the reference hanzi among the candidates, from 1; 0: none.
    """

    ids: list[str]
    syllables: np.ndarray
    choices: np.ndarray


class RowBatches:
    """All batches of a training run by number."""

    def __init__(
        self,
        rows: PairRows,
        tables: CandidateTables,
        symbols: Symbols,
        config: RowsConfig,
        size: int,
        seed: int,
    ):
        self._rows, self._seed = ShuffledRows(rows, size, seed), seed
        self._tables, self._config = tables, config
        index, hanzi = symbols.pinyin.index, symbols.hanzi
        self._particles = [
            (hanzi.index(particle), index(weak), index(full))
            for particle, weak, full in PARTICLES
            if particle in hanzi
        ]
        clean = 1 - config.toneless - config.mixed - config.confused
        self._kinds = np.cumsum([clean, config.toneless, config.mixed])

    def batch(self, number: int, shard: tuple[int, int] = (0, 1)) -> RowBatch:
        """Batch ``number`` of the training, from 0.

        Args:
            number: number of the batch.
            shard: (index, count): only the rows i with i % count = index.
        """
        ids, syllables, hanzi = self._rows.batch(number)  # (batch, length) each
        syllables, hanzi = self._corrupt(syllables, hanzi, np.random.default_rng([self._seed, 1, number]))
        index, count = shard
        syllables, hanzi = syllables[index::count], hanzi[index::count]
        return RowBatch(ids, syllables, self._choices(syllables, hanzi))

    def _corrupt(
        self, syllables: np.ndarray, hanzi: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with joined clauses, full readings of particles, misrecognised syllables and missing tones."""
        config, shape = self._config, syllables.shape
        syllables, hanzi = without(
            (hanzi == PAD_ID) & (random.random(shape) < config.joined), syllables, hanzi
        )
        in_full = random.random(shape) < config.particles
        for particle, weak, full in self._particles:
            syllables = np.where(in_full & (syllables == weak) & (hanzi == particle), full, syllables)
        kinds = np.searchsorted(self._kinds, random.random(len(syllables)), side="right")[:, None]
        confused = self._confused(syllables, random)
        misrecognised = (random.random(shape) < MISRECOGNISED_FRACTIONS[kinds]) & (confused != PAD_ID)
        syllables = np.where(misrecognised, confused, syllables)
        toneless = random.random(shape) < TONELESS_FRACTIONS[kinds]
        return np.where(toneless, self._tables.toneless[syllables], syllables).astype(np.int32), hanzi

    def _confused(self, syllables: np.ndarray, random: np.random.Generator) -> np.ndarray:
        confusions = self._tables.confusions
        return confusions[syllables, random.integers(confusions.shape[1], size=syllables.shape)]

    def _choices(self, syllables: np.ndarray, hanzi: np.ndarray) -> np.ndarray:
        hit = (self._tables.candidates[syllables] == hanzi[:, :, None]) & (hanzi > UNKNOWN_ID)[:, :, None]
        return np.where(hit.any(axis=-1), hit.argmax(axis=-1) + 1, 0).astype(np.int32)


class CandidateNetworkTask(RowTask):
    """Cross-entropy over the candidates of each syllable, in nats for each position of a row.

    The evaluation converts the dev sentences with the network alone, with and without tones.

    Args:
        model: one of :data:`model_language.registry.CANDIDATE_NETWORKS`.
        tables: the tables that it was built with.
        symbols: vocabularies.
        batches: training batches.
        steps: batches in an epoch.
        dev: dev sentences.
        shard: (index, count): this process trains the rows i of each batch with i % count = index.
    """

    metric = "dev_character_error_rate"

    def __init__(
        self,
        model: keras.Model,
        tables: CandidateTables,
        symbols: Symbols,
        batches: RowBatches,
        steps: int,
        dev: Sequence[Pair],
        shard: tuple[int, int] = (0, 1),
    ):
        super().__init__(model, batches, steps, shard)
        self._converter, self._dev = CandidateConverter(model, tables, symbols), dev

    def arrays(self, batch: RowBatch) -> dict[str, np.ndarray]:
        """Tokens and the indices of the reference hanzi, both (batch, length) int32."""
        return {"syllables": batch.syllables, "choices": batch.choices}

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """See :func:`choice_losses`."""
        return choice_losses(self.model, arrays, training)

    def evaluate(self) -> dict[str, float]:
        """Character error rates of the dev set, and mean cross-entropy of a hanzi given toned syllables."""
        hanzi = [pair.hanzi for pair in self._dev]
        toned, loss = evaluate_converter(self._converter, [pair.pinyin for pair in self._dev], hanzi)
        toneless_pinyin = [tuple(map(without_tone, pair.pinyin)) for pair in self._dev]
        toneless, _ = evaluate_converter(self._converter, toneless_pinyin, hanzi)
        return {"dev_loss": loss, self.metric: toned.rate, "dev_toneless_error_rate": toneless.rate}


def choice_losses(model: keras.Model, arrays: dict[str, Any], training: bool) -> Any:
    """Mean cross-entropy of each row's positions, in nats, (batch,) float32.

    A position whose hanzi is not a candidate has the loss 0.

    Args:
        model: a network over candidates.
        arrays: tokens and candidate numbers of the reference hanzi, 0 for none, both (batch, length) int32.
        training: whether dropout is used.
    """
    logits = model({"syllables": arrays["syllables"]}, training=training)  # (B, L, K)
    numbers = ops.arange(1, logits.shape[-1] + 1, dtype="int32")
    hit = numbers == ops.expand_dims(arrays["choices"], -1)
    losses = -ops.sum(ops.where(hit, ops.log_softmax(logits, axis=-1), 0.0), axis=-1)  # (B, L)
    return ops.mean(losses, axis=-1)


def evaluate_converter(
    converter: CandidateConverter, sentences: Sequence[Sequence[str]], hanzi: Sequence[str]
) -> tuple[ErrorCounts, float]:
    """Errors of a converter, and its mean cross-entropy (nats) of the reference among the candidates."""
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


def train_candidate_network(
    config: LanguageConfig, run: RunFolder, distribution: Distribution = SINGLE_PROCESS
) -> dict[str, float]:
    """Train a network over candidates into ``run``, or resume it; returns the metrics of the best epoch.

    Raises:
        ConfigError, CorpusError, TrainingError: see the message.
    """
    data = config.data
    require(
        not config.initialise_from,
        f"initialise_from cannot be used with model.name={config.model.name}",
        hint="leave it out",
    )
    dataset, dev = read_texts(config, config.model.rows.spoken)
    symbols, tables = prepare_tables(config, run, dataset)
    prepare_backend(config.training, config.seed)
    distribution.check_same("vocabulary", [symbols.pinyin.tokens, symbols.hanzi.tokens])
    build = MODELS[config.model.name].build
    assert build
    model = distribution.build(lambda: build(config.model, symbols, run))
    prepare_model(model, config, run)
    return train(
        task=CandidateNetworkTask(
            model,
            tables,
            symbols,
            batches=RowBatches(
                rows=text_rows(dataset, symbols, data.batch_syllables // data.batch_sentences),
                tables=tables,
                symbols=symbols,
                config=config.model.rows,
                size=data.batch_sentences,
                seed=config.seed,
            ),
            steps=config.model.rows.steps,
            dev=dev,
            shard=distribution.shard,
        ),
        run=run,
        config=config.training,
        optimiser=config.optimiser,
        distribution=distribution,
    )


def prepare_tables(
    config: LanguageConfig, run: RunFolder, dataset: PairDataset
) -> tuple[Symbols, CandidateTables]:
    """Vocabularies and candidates of a run: the existing ones, or new ones from the text."""
    path = run.vocabulary(TABLES_FILE)
    if path.is_file():  # written last
        return Symbols.load(run.path), CandidateTables.load(path)
    found = dataset.count_readings()
    symbols = build_symbols(((syllable,), hanzi) for syllable, hanzi, _ in found.named())
    symbols.save(run.path)
    tables = build_tables(
        symbols,
        counts=reading_matrix(found, symbols, config.model.rows.particles),
        choices=config.model.choices,
    )
    tables.save(path)
    return symbols, tables


def reading_matrix(found: ReadingCounts, symbols: Symbols, particles: float = 0.0) -> csr_array:
    """Counts of readings by ids, (pinyin, hanzi).

    Args:
        found: counts of the text.
        symbols: vocabularies.
        particles: fraction of the particles with their full reading, which is counted too.
    """
    syllable_ids, hanzi_ids = _id_tables(symbols)
    syllables, hanzi = syllable_ids[found.syllables], hanzi_ids[found.hanzi]
    shape = (len(symbols.pinyin), len(symbols.hanzi))
    counts = csr_array(coo_array((found.counts.astype(np.float64), (syllables, hanzi)), shape=shape)).tolil()
    for particle, weak, full in PARTICLES:
        if particle in symbols.hanzi:
            column = symbols.hanzi.index(particle)
            counts[symbols.pinyin.index(full), column] += (
                particles * counts[symbols.pinyin.index(weak), column]
            )
    return csr_array(counts)


def text_rows(dataset: PairDataset, symbols: Symbols, length: int) -> PairRows:
    """The texts as rows of ids; a hanzi outside the vocabulary is ``<unk>``."""
    return PairRows(dataset.shards, length, *_id_tables(symbols))


def _id_tables(symbols: Symbols) -> tuple[np.ndarray, np.ndarray]:
    syllables = syllable_table(symbols.encode(full_inventory()), end=PAD_ID)
    return syllables, hanzi_table(symbols.hanzi.tokens, end=PAD_ID, unknown=UNKNOWN_ID)
