"""Training pairs in; a hanzi n-gram model with readings out, and its conversion of syllables by beam search.

The baseline beside the neural models: P(hanzi | hanzi before) by :mod:`model_language.ngram.kneser_ney`,
times P(syllable | hanzi) counted in the pairs. Everything is flat NumPy arrays, saved as ``ngram.npz``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from model_language.converters.scoring import given_scores
from model_language.ngram.backoff import BackoffModel, find, read_arrays, tables_of
from model_language.ngram.kneser_ney import BOUNDARY, NgramTable, bits_needed, estimate
from model_language.search.grid import Conversion, Grid, beam_search, length_batches, n_best, pad_rows
from model_language.vocabulary.any_tone import ToneTables
from model_language.vocabulary.symbols import UNKNOWN_ID, Symbols
from utils.errors import ConfigError, RunError, TrainingError
from utils.mandarin.pinyin import has_tone
from utils.run_folder.run import RunFolder

NAME = "ngram"
READINGS = "readings"
"""What the scores of its grids are: log P(syllable | hanzi), whatever stands beside."""
NGRAM_FILE = "ngram.npz"

# Padded syllables in one call of the search: some 10 MB an array with a beam of 32.
_BATCH_SYLLABLES = 2048


@dataclass(frozen=True)
class NgramConfig:
    """How to estimate and search.

    Attributes:
        order: length of the longest n-grams, 2 to 4.
        beam: hypotheses kept after each syllable.
        reading_smoothing: added to the count of each possible reading of a hanzi; small, since most hanzi
            have one.
    """

    name: str = NAME
    order: int = 3
    beam: int = 16
    reading_smoothing: float = 0.1


class NgramModel(BackoffModel):
    """P(hanzi | hanzi before), with ids of :class:`Symbols`.

    Args:
        tables: one an order, 1-grams first.
        size: hanzi vocabulary.
        readings: log P(syllable | hanzi) of ``symbols.candidates``, (pinyin, K) float32, -inf where empty.
    """

    def __init__(self, tables: Sequence[NgramTable], size: int, readings: np.ndarray):
        super().__init__(tables, size)
        self.readings = readings

    @classmethod
    def train(
        cls, pairs: Sequence[tuple[Sequence[str], str]], config: NgramConfig, symbols: Symbols
    ) -> NgramModel:
        """Count and estimate.

        Args:
            pairs: (canonical syllables, hanzi) of equal length.
            config: order and smoothing.
            symbols: vocabularies and lexicon, built from the same pairs or more.

        Raises:
            ConfigError: the order is not possible.
            TrainingError: there are no pairs.
        """
        size = len(symbols.hanzi)
        if config.order < 2 or config.order * bits_needed(size) > 63:
            raise ConfigError(f"order {config.order} is not possible", where="model.order", hint="2, 3 or 4")
        if not any(hanzi for _, hanzi in pairs):
            raise TrainingError("no training text for the n-gram model", hint="see data.train of the config")
        ids = _text_ids((hanzi for _, hanzi in pairs), symbols)
        syllables = symbols.encode([syllable for pinyin, _ in pairs for syllable in pinyin])
        readings = _reading_log_probs(syllables, ids[ids != BOUNDARY], config.reading_smoothing, symbols)
        return cls(estimate(ids, config.order, size), size, readings)

    @classmethod
    def load(cls, path: str | Path) -> NgramModel:
        """Read what ``save`` wrote.

        Raises:
            RunError: the file is missing or damaged.
        """
        arrays = read_arrays(path, also=("readings",))
        return cls(tables_of(arrays), int(arrays["size"]), arrays["readings"])

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**super()._arrays(), "readings": self.readings}


class NgramConverter:
    """Converts by beam search (see :class:`model_language.converters.base.Converter`).

    Syllables without a digit may have any tone.

    Args:
        model: the n-gram model.
        symbols: the vocabularies and the lexicon it was trained with.
        beam: hypotheses kept after each syllable.
    """

    grid_part = READINGS  # what the scores of its grids are
    path_model = None  # it rates no words
    margin = None
    batch_syllables = _BATCH_SYLLABLES

    def __init__(self, model: NgramModel, symbols: Symbols, beam: int):
        if model.readings.shape != symbols.candidates.shape or model.size != len(symbols.hanzi):
            sizes = f"{model.size} hanzi in the model, {len(symbols.hanzi)} in the vocabulary"
            hint = "copy the whole run folder again, or train it again"
            raise RunError(f"the n-gram model belongs to another vocabulary or lexicon ({sizes})", hint=hint)
        self._model, self.symbols, self.beam = model, symbols, beam

    @property
    def history_model(self) -> NgramModel:
        """What rates a hanzi by those before it."""
        return self._model

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character a syllable."""
        result = [""] * len(sentences)
        for batch in length_batches([len(sentence) for sentence in sentences], self.batch_syllables):
            batch = [index for index in batch if len(sentences[index])]
            if not batch:
                continue
            sequences, _ = self._search([sentences[index] for index in batch], self.beam, recombine=True)
            for index, best in zip(batch, sequences[:, 0], strict=True):
                result[index] = self.symbols.decode(best[: len(sentences[index])])
        return result

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """Up to ``n`` ways to write one sentence, the most probable first."""
        return n_best(self, sentence, n)

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :class:`model_language.converters.base.Converter`."""
        return given_scores(self, sentences, hanzi)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """The candidates of each syllable and log P(syllable | hanzi); no sentence may be empty."""
        encode, candidates, readings = self.symbols.encode, self.symbols.candidates, self._model.readings
        if not all(has_tone(syllable) for sentence in sentences for syllable in sentence):
            tables = self._any_tone
            encode, candidates, readings = tables.encode, tables.candidates, tables.readings
        syllables = pad_rows([encode(sentence) for sentence in sentences])  # (B, L)
        lengths = np.array([len(sentence) for sentence in sentences])
        return Grid(candidates[syllables], readings[syllables], lengths)

    def narrow(self, grid: Grid) -> Grid:
        """All candidates: its search looks at each."""
        return grid

    @cached_property
    def _any_tone(self) -> ToneTables:
        return ToneTables(self.symbols, self._model.readings)

    def _search(
        self, sentences: Sequence[Sequence[str]], beam: int, recombine: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        grid = self.grid(sentences)
        return beam_search(grid.candidates, grid.scores, grid.lengths, beam, self._model, recombine=recombine)


def ngram_parts(run: RunFolder, config: NgramConfig) -> list[Path]:
    """The files that :func:`load_ngram_converter` reads."""
    return [run.path / NGRAM_FILE, *Symbols.files(run.path)]


def load_ngram_converter(run: RunFolder, config: NgramConfig) -> NgramConverter:
    """The converter of a finished run: it takes no framework.

    Raises:
        RunError: a part is missing or damaged.
    """
    model = NgramModel.load(run.path / NGRAM_FILE)
    return NgramConverter(model, Symbols.load(run.path), config.beam)


def _text_ids(sentences: Iterable[str], symbols: Symbols) -> np.ndarray:
    """Hanzi ids of non-empty sentences with one 0 before, between and after them: (hanzi + …,) int32."""
    text = "\n" + "".join(f"{sentence}\n" for sentence in sentences if sentence)
    ids_of_code_points = np.full(0x110000, UNKNOWN_ID, np.int32)
    for number, token in enumerate(symbols.hanzi.tokens):
        if len(token) == 1:
            ids_of_code_points[ord(token)] = number
    ids_of_code_points[ord("\n")] = BOUNDARY
    return ids_of_code_points[np.frombuffer(text.encode("utf-32-le"), np.uint32)]


def _reading_log_probs(
    syllables: np.ndarray, hanzi: np.ndarray, smoothing: float, symbols: Symbols
) -> np.ndarray:
    """log P(syllable | hanzi) with additive smoothing over the syllables that may become this hanzi.

    Args:
        syllables, hanzi: (tokens,) int, aligned.
        smoothing: added to each count, > 0.
        symbols: their vocabularies.

    Returns:
        (pinyin, K) float32 beside ``symbols.candidates``, -inf at its empty places.
    """
    table, size = symbols.candidates, len(symbols.hanzi)
    keys, counts = np.unique(syllables.astype(np.int64) * size + hanzi, return_counts=True)
    place, seen = find(keys, np.arange(len(table))[:, None] * size + table)
    weights = np.where(table > 0, smoothing + np.where(seen, counts[place], 0), 0.0)  # (pinyin, K)
    totals = np.bincount(table.ravel(), weights.ravel(), minlength=size)  # of each hanzi
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(table > 0, np.log(weights / totals[table]), -np.inf).astype(np.float32)
