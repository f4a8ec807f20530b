"""Defines the grid, the candidate hanzi of each syllable with scores, and the models that score paths."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from model_language.ngram.words import WordUnigram
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID
from utils.arrays import pad_rows


class WordEnd(str):
    """A syllable after which a word is known to end, because a space was typed there; else like any other."""


@dataclass(frozen=True)
class Conversion:
    """One conversion of a sentence to hanzi.

    Attributes:
        hanzi: one character for each syllable.
        score: natural-log probability.
    """

    hanzi: str
    score: float


@dataclass(frozen=True)
class Grid:
    """The candidate hanzi of a batch: B sentences, L syllables, up to K candidates of each syllable.

    Attributes:
        candidates: (B, L, K) int32, hanzi ids; used columns come first, the others are 0.
        scores: (B, L, K) float, log-score of each candidate by itself; -inf in unused columns.
        lengths: (B,) int, syllables of each sentence, ≥ 1.
        unlikely: (B, L, K) float, ascending: how much less promising each candidate is than the first, beside
            its neighbours; None: unknown.
        word_ends: (B, L) bool, syllables after which a word is known to end; None: none is known.
    """

    candidates: np.ndarray
    scores: np.ndarray
    lengths: np.ndarray
    unlikely: np.ndarray | None = None
    word_ends: np.ndarray | None = None


def known_word_ends(sentences: Sequence[Sequence[str]]) -> np.ndarray | None:
    """:attr:`Grid.word_ends` of syllables."""
    ends = [[isinstance(syllable, WordEnd) for syllable in sentence] for sentence in sentences]
    return pad_rows(ends, fill=False, dtype=bool) if any(map(any, ends)) else None


class HistoryModel(ABC):
    """A model that scores a hanzi given the hanzi before it.

    Attributes:
        history: number of preceding hanzi that the model uses.
    """

    history: int

    @abstractmethod
    def score(self, histories: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Log-probabilities of single hanzi.

        Args:
            histories: (N, history) int, oldest first; 0 before the beginning of the sentence.
            rows: (E,) int, the row of ``histories`` that each hanzi follows.
            tokens: (E,) int, hanzi ids; 0 is the end of the sentence.

        Returns:
            (E,) float32.
        """

    def log_probs(self, histories: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Log-probabilities of several hanzi after each history.

        Args:
            histories: (N, history) int, as for :meth:`score`.
            tokens: (N, K) int.

        Returns:
            (N, K) float32.
        """
        rows = np.repeat(np.arange(len(tokens)), tokens.shape[1])
        return self.score(histories, rows, tokens.ravel()).reshape(tokens.shape)

    def sentence_log_probs(self, ids: np.ndarray) -> np.ndarray:
        """Log-probabilities of the hanzi of a sentence and of its end: (L,) int → (L + 1,) float32."""
        ended = np.append(ids, PAD_ID)  # id 0 is the boundary
        begun = np.concatenate([np.full(self.history, PAD_ID, ended.dtype), ended])
        histories = sliding_window_view(begun, self.history)[:-1]  # (L + 1, history), before each of them
        return self.score(np.ascontiguousarray(histories), np.arange(len(ended)), ended)

    def preview(self, last: np.ndarray, tokens: np.ndarray) -> np.ndarray | None:
        """A quick approximation of :meth:`score` from the last hanzi alone; None: there is none.

        Args:
            last, tokens: (E,) int, the hanzi before, and the hanzi.

        Returns:
            (E,) float32.
        """
        return None


class MaskedHistory(HistoryModel):
    """A history model that takes ids beyond its vocabulary for ``<unk>``.

    Args:
        model: the model.
        size: number of ids that it knows.
    """

    def __init__(self, model: HistoryModel, size: int):
        self.history, self._model, self._size = model.history, model, size

    def score(self, histories: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`."""
        return self._model.score(_masked(histories, self._size), rows, _masked(tokens, self._size))

    def preview(self, last: np.ndarray, tokens: np.ndarray) -> np.ndarray | None:
        """See :class:`HistoryModel`."""
        return self._model.preview(_masked(last, self._size), _masked(tokens, self._size))


class MaskedPaths:
    """A model of words that takes ids beyond its vocabulary for ``<unk>``; arguments as above."""

    def __init__(self, model: WordUnigram, size: int):
        self.reach, self._model, self._size = model.reach, model, size
        self.initial_states, self.next_states = model.initial_states, model.next_states

    def gains(self, past: np.ndarray, states: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """See :class:`WordUnigram`."""
        return self._model.gains(_masked(past, self._size), states, rows, _masked(tokens, self._size))

    def scores(self, sequences: np.ndarray, word_ends: np.ndarray | None = None) -> np.ndarray:
        """See :class:`WordUnigram`."""
        return self._model.scores(_masked(sequences, self._size), word_ends)


def _masked(ids: np.ndarray, size: int) -> np.ndarray:
    return np.where(ids < size, ids, UNKNOWN_ID)


def most_promising(
    grid: Grid, choices: int, margin: float = np.inf, promise: np.ndarray | None = None
) -> Grid:
    """Keep the most promising candidates of each syllable, the best first.

    Args:
        grid: all candidates.
        choices: largest number of candidates to keep.
        margin: candidates less promising than the best one by more than this are dropped.
        promise: (B, L, K) float, how promising each candidate is; None: its score.
    """
    promise = grid.scores if promise is None else promise
    width = promise.shape[-1]
    # Sorting all is faster than finding the best, and indices of cells are faster than of each axis.
    order = np.argsort(-promise.reshape(-1, width), axis=-1)[:, :choices]
    cells = order + np.arange(len(order))[:, None] * width
    promise = promise.ravel().take(cells)
    kept = (promise >= promise[:, :1] - margin) & (promise > -np.inf)
    used = kept.sum(axis=1).max(initial=1)
    cells, kept, promise = cells[:, :used], kept[:, :used], promise[:, :used]
    unlikely = np.full(cells.shape, np.inf, promise.dtype)
    tables = (
        np.where(kept, grid.candidates.ravel().take(cells), PAD_ID),
        np.where(kept, grid.scores.ravel().take(cells), -np.inf),
        np.subtract(promise[:, :1], promise, out=unlikely, where=kept),
    )
    candidates, scores, unlikely = (table.reshape(*grid.scores.shape[:-1], used) for table in tables)
    return replace(grid, candidates=candidates, scores=scores, unlikely=unlikely)


class TokenModel:
    """The language models of a search through networks, and their weights.

    Args:
        history: scores a token given the tokens before it.
        weight: factor of all log-probabilities of tokens.
        bonus: added for each token.
        size: ids from here on are unknown to the models; None: there are none.
        paths: scores the words that tokens form; None: no such model.
    """

    def __init__(
        self,
        history: HistoryModel,
        weight: float,
        bonus: float,
        size: int | None = None,
        paths: WordUnigram | None = None,
    ):
        self._history = MaskedHistory(history, size) if size else history
        self.paths = MaskedPaths(paths, size) if paths and size else paths
        self.weight, self.bonus = weight, bonus
        self.seen = max(history.history, paths.reach if paths else 0)
        """Number of preceding tokens on which the models depend."""

    def log_probs(self, past: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Weighted log-probabilities: past (N, seen), rows (E,) of it, next tokens (E,) → (E,) float64."""
        histories = past[:, past.shape[1] - self._history.history :]
        return self.weight * self._history.score(histories, rows, tokens).astype(float)

    def preview(self, last: np.ndarray, tokens: np.ndarray) -> np.ndarray | None:
        """A quick approximation of :meth:`log_probs` for last tokens (E,), at most 0; None: there is none."""
        previewed = self._history.preview(last, tokens)
        return None if previewed is None else self.weight * previewed
