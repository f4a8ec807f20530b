"""Makes training batches from rows of text for the gated CNN, corrupted like recognised speech.

Tones are removed, syllables replaced by confusable ones, pauses dropped, and weak particles get their full
reading. A batch depends only on its number and the seed, so a resumed training sees the same batches.
"""

from dataclasses import dataclass

import numpy as np

from data.text.pinyin_pair_dataset import PairRows
from model_language.networks.candidates import CandidateTables
from model_language.networks.gated_cnn import RowsConfig
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from training.tasks.text_rows.rows import ShuffledRows, without

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
