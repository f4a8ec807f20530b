"""Syllables in, hanzi out: what every language model looks like from outside, and the neural ones in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import keras
import numpy as np
from keras import ops

from model_language.converters.scoring import given_scores
from model_language.networks.loss import candidate_logits
from model_language.networks.windows import LONGEST, windows
from model_language.search.grid import Conversion, Grid, length_batches, n_best, pad_rows
from model_language.vocabulary.symbols import Symbols
from utils.backend.prediction import predict, prepare_prediction

# Padded syllables in one call of the network: its logits (7,000 hanzi) then take some 110 MB.
_BATCH_SYLLABLES = 4096
# Padded lengths are multiples of this: fewer shapes for compilers that specialise on them.
_LENGTH_STEP = 8


class Converter(Protocol):
    """A language model in use. Syllables are canonical (``zhong1``, ``de5``); one that nothing is known of
    becomes ``□`` and disturbs nothing else.
    """

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character a syllable."""

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """Up to ``n`` ways to write one sentence, the most probable first."""

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """How probable the model holds given hanzi to be: what :meth:`convert` looks for is the highest.

        Args:
            sentences: syllables.
            hanzi: of each sentence the characters to score, with :data:`UNREADABLE` where that is written.

        Returns:
            log-probabilities as in :meth:`n_best` (an n-gram model's are joint, with the readings'); -inf for
            what can't be written: another number of characters, or one that its syllable can't become.
        """


class CandidateScores(keras.layers.Layer):
    """Logits (B, L, hanzi), syllables (B, L) → the candidates' log-probabilities and hanzi ids, (B, L, K)."""

    def __init__(self, candidates: np.ndarray):
        super().__init__(dtype="float32", trainable=False)
        self._candidates = candidates

    def call(self, logits, syllables):
        """See the class."""
        picked, rows = candidate_logits(logits, syllables, self._candidates)
        return {"log_probs": ops.log_softmax(picked, axis=-1), "rows": rows}


class NeuralConverter:
    """Converts with a network that scores every position by itself; long sentences in windows that overlap.

    Args:
        model: ``{"syllables": (B, L) int32}`` → logits (B, L, hanzi).
        symbols: its vocabularies and lexicon.
    """

    grid_part = "network"  # what the scores of its grids are
    batch_syllables = _BATCH_SYLLABLES
    history_model = path_model = None  # it rates no hanzi by those before it
    margin = None
    beam = 8  # enough for user words: all else is decided place by place

    def __init__(self, model: keras.Model, symbols: Symbols):
        self.symbols = symbols
        outputs = CandidateScores(symbols.candidates)(model.output, model.input["syllables"])
        self._scorer = keras.Model(model.input, outputs)
        prepare_prediction(self._scorer)

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """See :class:`Converter`."""
        result = [""] * len(sentences)
        for batch in length_batches([len(sentence) for sentence in sentences], _BATCH_SYLLABLES):
            batch = [index for index in batch if len(sentences[index])]
            if not batch:
                continue
            log_probs, rows = self._score([self.symbols.encode(sentences[index]) for index in batch])
            best = np.take_along_axis(rows, log_probs.argmax(axis=-1)[:, :, None], axis=-1)[:, :, 0]  # (B, L)
            for index, ids in zip(batch, best, strict=True):
                result[index] = self.symbols.decode(ids[: len(sentences[index])])
        return result

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """See :class:`Converter`."""
        return n_best(self, sentence, n)

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :class:`Converter`."""
        return given_scores(self, sentences, hanzi)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """The candidates of each syllable and their log-probabilities; no sentence may be empty."""
        log_probs, rows = self._score([self.symbols.encode(sentence) for sentence in sentences])
        longest = max(len(sentence) for sentence in sentences)
        rows, log_probs = rows[:, :longest], log_probs[:, :longest]
        lengths = np.array([len(sentence) for sentence in sentences])
        return Grid(rows, np.where(rows > 0, log_probs, -np.inf), lengths)

    def narrow(self, grid: Grid) -> Grid:
        """All candidates: its search looks at each."""
        return grid

    def _score(self, encoded: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities and hanzi ids of the candidates, both (B, L, K); long rows window by window."""
        if max(map(len, encoded)) <= LONGEST:
            return self._predict(encoded)
        cut = [(row, window) for row, ids in enumerate(encoded) for window in windows(len(ids))]
        shape = (len(encoded), max(map(len, encoded)), self.symbols.candidates.shape[1])
        log_probs, rows = np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int32)
        for batch in length_batches([window.end - window.start for _, window in cut], _BATCH_SYLLABLES):
            parts = [cut[index] for index in batch]
            scored = self._predict([encoded[row][window.start : window.end] for row, window in parts])
            for (row, window), *found in zip(parts, *scored, strict=True):
                inside = slice(window.first - window.start, window.last - window.start)
                log_probs[row, window.first : window.last] = found[0][inside]
                rows[row, window.first : window.last] = found[1][inside]
        return log_probs, rows

    def _predict(self, encoded: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        outputs = predict(self._scorer, {"syllables": pad_rows(encoded, _LENGTH_STEP)})
        return outputs["log_probs"], outputs["rows"]
