"""Base class of all converters from syllables to hanzi: batches sentences and searches for the best hanzi.

A subclass lists the candidate hanzi of each syllable with their scores (its ``grid``, see
:mod:`model_language.search.grid`) and may name models that score sequences of hanzi. From these the base
class computes conversions, n-best lists, and the scores of given hanzi.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from model_language.batching import length_batches
from model_language.language_model import SecondPass
from model_language.ngram.words import WordUnigram
from model_language.search.beam import beam_search
from model_language.search.grid import Grid, HistoryModel
from model_language.vocabulary.symbols import Symbols
from utils.errors import ConfigError

NETWORK, EMISSIONS = "network", "readings"
"""What the scores of a converter's grids are: log P(hanzi | all syllables), or log P(syllable | hanzi)."""
RESCORED, NEAR = 8, 1.5
"""Conversions that the second pass may choose: this many, the best ones of the search, and only those whose
log-score is at most this much lower than the first one's."""


class Converter(ABC):
    """A language model with its search.

    Syllables are canonical (``zhong1``, ``de5``). An unknown syllable becomes ``□``; the others are converted
    as usual.

    Attributes:
        symbols: vocabularies and lexicon.
        score_kind: what the scores of :meth:`grid` are, :data:`NETWORK` or :data:`EMISSIONS`.
        history_model: scores a hanzi given the hanzi before it; None: the grid decides alone.
        path_model: scores the words that hanzi form; None: no such model.
        second_pass: rescores the best results of the search; None: there is no second pass.
        margin: hypotheses whose log-probability is lower than the best one's by more than this are dropped.
        effort: limit of :func:`~model_language.search.beam.beam_search` for improbable combinations.
        beam: largest number of hypotheses after each syllable.
        batch_syllables: largest number of padded syllables in a batch.
    """

    symbols: Symbols
    score_kind = NETWORK
    history_model: HistoryModel | None = None
    path_model: WordUnigram | None = None
    second_pass: SecondPass | None = None
    margin = effort = np.inf
    beam = 8
    batch_syllables = 4096

    @abstractmethod
    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """All candidates of each syllable with their scores; no sentence may be empty."""

    def narrow(self, grid: Grid) -> Grid:
        """Reduce a grid to the candidates that :meth:`convert` searches; in this base class all of them."""
        return grid

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character for each syllable."""
        converted = [""] * len(sentences)
        for indices in length_batches([len(sentence) for sentence in sentences], self.batch_syllables):
            paths = self._best_paths(self.narrow(self.grid([sentences[index] for index in indices])))
            for index, path in zip(indices, paths, strict=True):
                converted[index] = self.symbols.decode(path[: len(sentences[index])])
        return converted

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """Log-probabilities of given hanzi; :meth:`convert` searches for the highest of these scores.

        If the reference has a higher score than the output, the search has missed it.

        Args:
            sentences: syllables.
            hanzi: the characters of each sentence, :data:`UNREADABLE` for a syllable without hanzi.

        Returns:
            Log-probabilities, as in :meth:`n_best`; those of an n-gram model are joint with the readings.
            -inf for another number of characters, or for one that its syllable cannot become.
        """
        sizes = [(len(syllables), len(written)) for syllables, written in zip(sentences, hanzi, strict=True)]
        result = [0.0 if size == (0, 0) else -np.inf for size in sizes]
        possible = [index for index, (syllables, written) in enumerate(sizes) if syllables == written > 0]
        for batch in length_batches([sizes[index][0] for index in possible], self.batch_syllables):
            indices = [possible[number] for number in batch]
            grid = self.grid([sentences[index] for index in indices])
            for row, index in enumerate(indices):
                result[index] = self._score(grid, row, self.symbols.encode_hanzi(hanzi[index]))
        return result

    def word_starts(self, hanzi: str) -> list[int]:
        """Positions at which the words of a text begin; without a model of words each hanzi is one."""
        if self.path_model is None:
            return list(range(len(hanzi)))
        return self.path_model.word_starts(self.symbols.encode_hanzi(hanzi))

    def by_error_rate(self) -> Sequence[Converter]:
        """Converters that each assume one rate of recognition errors, highest first; by default itself."""
        return [self]

    def corrects(self, sentences: Sequence[Sequence[str]], paths: np.ndarray) -> np.ndarray:
        """Whether paths (B, L) of hanzi ids correct recognition errors, (B,) bool; by default never."""
        return np.zeros(len(sentences), bool)

    def typed(self) -> Converter:
        """The converter for typed pinyin, in which no syllable is a recognition error; by default itself."""
        return self

    def with_second_pass(self, second_pass: SecondPass) -> Converter:
        """A converter whose best results are rescored by a language model; by default there is none.

        Raises:
            ConfigError: this kind of converter has no second pass.
        """
        raise ConfigError(
            "this kind of converter has no second pass",
            hint="it is for the converter that comes with the project and for runs of model.name=combined",
        )

    def generative(self) -> Converter:
        """A form of this converter that scores position by position, if there is one; otherwise itself.

        It scores hanzi and readings from left to right. A search through a confusion network needs such a
        converter (:mod:`model_language.search.joint`).
        """
        return self

    def _best_paths(self, grid: Grid) -> np.ndarray:
        """(B, L) int32, hanzi ids."""
        if self.history_model is None:
            best = grid.scores.argmax(axis=2)[:, :, None]
            return np.take_along_axis(grid.candidates, best, axis=2)[:, :, 0]
        paths, _ = beam_search(grid, self.beam, self.margin, self.effort, self.history_model, self.path_model)
        return paths[:, 0]

    def _score(self, grid: Grid, row: int, ids: np.ndarray) -> float:
        """The score of hanzi ids (L,) for a row of a grid."""
        candidates, scores = grid.candidates[row, : len(ids)], grid.scores[row, : len(ids)]  # (L, K)
        own = np.where(candidates == ids[:, None], scores, -np.inf).max(axis=1)
        total = float(own.sum(dtype=np.float64))
        if self.history_model:
            total += float(self.history_model.sentence_log_probs(ids).sum(dtype=np.float64))
        if self.path_model:
            ends = None if grid.word_ends is None else grid.word_ends[row, None, : len(ids)]
            total += float(self.path_model.scores(ids[None], ends)[0])
        return total


def near_the_best(scores: np.ndarray) -> np.ndarray:
    """How many conversions of each sentence the second pass may choose: (..., n) sorted scores → (...)."""
    return (scores[..., :RESCORED] >= scores[..., :1] - NEAR).sum(axis=-1)
