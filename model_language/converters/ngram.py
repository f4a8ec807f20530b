"""The n-gram converter, the baseline for the neural models: trains its model, and converts by beam search.

The score is P(hanzi | hanzi before), estimated by :mod:`model_language.ngram.kneser_ney`, times
P(syllable | hanzi), counted in the training pairs. All parts are NumPy arrays, saved as ``ngram.npz``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model_language.array_files import load_part
from model_language.converters.base import EMISSIONS, Converter
from model_language.ngram.kneser_ney import (
    BOUNDARY,
    BackoffModel,
    NgramTable,
    check_order,
    estimate,
    find,
    tables_of,
)
from model_language.search.grid import Grid
from model_language.vocabulary.symbols import UNKNOWN_ID, Symbols, Tokens
from utils.errors import TrainingError
from utils.limits import Count, Limited
from utils.run_folder.run import RunFolder

NAME = "ngram"
_READING_SMOOTHING = 0.1  # of the counts of the readings; small, because most hanzi have one


@dataclass(frozen=True)
class NgramConfig(Limited, section="model"):
    """Settings of the estimation and of the search.

    Attributes:
        order: length of the longest n-grams, 2 to 4.
        beam: hypotheses kept after each syllable.
    """

    name: str = NAME
    order: int = 3
    beam: Count = 16


class NgramModel(BackoffModel):
    """P(hanzi | hanzi before), with the ids of :class:`Symbols`.

    Args:
        tables: one for each order, 1-grams first.
        size: number of hanzi ids.
        readings: log P(syllable | hanzi) of ``symbols.candidates``, (pinyin, K) float32, -inf in empty
            columns.
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
            config: the order.
            symbols: vocabularies and lexicon, built from these pairs or more.

        Raises:
            ConfigError: the order is not possible.
            TrainingError: there are no pairs.
        """
        size = len(symbols.hanzi)
        check_order(config.order, size)
        if not any(hanzi for _, hanzi in pairs):
            raise TrainingError("no training text for the n-gram model", hint="see data.train of the config")
        ids = _text_ids((hanzi for _, hanzi in pairs), symbols)
        syllables = symbols.encode([syllable for pinyin, _ in pairs for syllable in pinyin])
        readings = _reading_log_probs(syllables, ids[ids != BOUNDARY], symbols)
        return cls(estimate(ids, config.order, size), size, readings)

    @classmethod
    def load(cls, path: str | Path) -> NgramModel:
        """Read what ``save`` wrote.

        Raises:
            RunError: the file is missing or damaged.
        """
        return load_part(
            path,
            "the n-gram model",
            lambda arrays: cls(tables_of(arrays), int(arrays["size"]), arrays["readings"]),
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**super()._arrays(), "readings": self.readings}


class NgramConverter(Converter):
    """Converts by beam search. Syllables without a digit may have any tone.

    Args:
        model: the n-gram model.
        symbols: the vocabularies and the lexicon that it was trained with.
        beam: hypotheses kept after each syllable.
    """

    score_kind = EMISSIONS
    batch_syllables = 2048

    def __init__(self, model: NgramModel, symbols: Symbols, beam: int):
        self.history_model, self.symbols, self.beam = model, symbols, beam
        self._tokens = Tokens(symbols)
        self._candidates, self._readings = self._tokens.with_readings(model.readings)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """The candidates of each syllable and log P(syllable | hanzi); no sentence may be empty."""
        syllables = self._tokens.encode(sentences)  # (B, L)
        lengths = np.array([len(sentence) for sentence in sentences])
        return Grid(self._candidates[syllables], self._readings[syllables], lengths)


def load_ngram_converter(run: RunFolder, config: NgramConfig) -> NgramConverter:
    """The converter of a finished run; it needs no framework.

    Raises:
        RunError: a part is missing or damaged.
    """
    return NgramConverter(NgramModel.load(run.ngram), Symbols.load(run.path), config.beam)


def _text_ids(sentences: Iterable[str], symbols: Symbols) -> np.ndarray:
    """Hanzi ids of non-empty sentences with one 0 before, between and after them: (hanzi + …,) int32."""
    text = "\n" + "".join(f"{sentence}\n" for sentence in sentences if sentence)
    ids_of_code_points = np.full(0x110000, UNKNOWN_ID, np.int32)
    for number, token in enumerate(symbols.hanzi.tokens):
        if len(token) == 1:
            ids_of_code_points[ord(token)] = number
    ids_of_code_points[ord("\n")] = BOUNDARY
    return ids_of_code_points[np.frombuffer(text.encode("utf-32-le"), np.uint32)]


def _reading_log_probs(syllables: np.ndarray, hanzi: np.ndarray, symbols: Symbols) -> np.ndarray:
    """log P(syllable | hanzi) with additive smoothing over the syllables that may become the hanzi.

    Args:
        syllables, hanzi: (tokens,) int, aligned.
        symbols: their vocabularies.

    Returns:
        (pinyin, K) float32, aligned with ``symbols.candidates``, -inf in its empty columns.
    """
    table, size = symbols.candidates, len(symbols.hanzi)
    keys, counts = np.unique(syllables.astype(np.int64) * size + hanzi, return_counts=True)
    index, seen = find(keys, np.arange(len(table))[:, None] * size + table)
    weights = np.where(table > 0, _READING_SMOOTHING + np.where(seen, counts[index], 0), 0.0)  # (pinyin, K)
    totals = np.bincount(table.ravel(), weights.ravel(), minlength=size)  # of each hanzi
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(table > 0, np.log(weights / totals[table]), -np.inf).astype(np.float32)
