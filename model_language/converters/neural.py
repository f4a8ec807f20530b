"""Converters that use a Keras network alone, such as a transformer: the best candidate at each position.

The network reads the whole sentence; the hanzi of the positions are chosen independently of each other.
"""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from model_language.batching import LONGEST_WINDOW, length_batches, windows
from model_language.converters.base import Converter
from model_language.networks.candidates import CandidateTables, rare_priors
from model_language.networks.loss import candidate_logits
from model_language.search.grid import Grid
from model_language.vocabulary.symbols import PAD_ID, Symbols, Tokens
from utils.arrays import log_softmax, pad_rows
from utils.backend.prediction import predict, prepare_prediction

# Padded lengths are multiples of this: fewer shapes for compilers that specialise on them.
_LENGTH_STEP = 8


class CandidateScores(keras.layers.Layer):
    """Logits (B, L, hanzi), syllables (B, L) → the candidates' log-probabilities and hanzi ids, (B, L, K)."""

    def __init__(self, candidates: np.ndarray):
        super().__init__(dtype="float32", trainable=False)
        self._candidates = candidates

    def call(self, logits, syllables):
        """See the class."""
        picked, rows = candidate_logits(logits, syllables, self._candidates)
        return {"log_probs": ops.log_softmax(picked, axis=-1), "rows": rows}


class NeuralConverter(Converter):
    """Converts with a network; long sentences are divided into overlapping windows.

    Args:
        model: ``{"syllables": (B, L) int32}`` → logits (B, L, hanzi).
        symbols: vocabularies and lexicon of the network.
    """

    def __init__(self, model: keras.Model, symbols: Symbols):
        self.symbols = symbols
        outputs = CandidateScores(symbols.candidates)(model.output, model.input["syllables"])
        self._scorer = keras.Model(model.input, outputs)
        prepare_prediction(self._scorer)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """The candidates of each syllable and their log-probabilities; no sentence may be empty."""
        encoded = [self.symbols.encode(sentence) for sentence in sentences]
        lengths = np.array([len(ids) for ids in encoded])
        shape = (len(encoded), lengths.max(), self.symbols.candidates.shape[1])
        log_probs, candidates = np.full(shape, -np.inf, np.float32), np.zeros(shape, np.int32)
        cut = [
            (row, window) for row, length in enumerate(lengths) for window in windows(length, LONGEST_WINDOW)
        ]
        # The logits of a batch (7,000 hanzi) take some 110 MB.
        for batch in length_batches([window.end - window.start for _, window in cut], self.batch_syllables):
            parts = [cut[index] for index in batch]
            rows = [encoded[row][window.start : window.end] for row, window in parts]
            found = predict(self._scorer, {"syllables": pad_rows(rows, multiple=_LENGTH_STEP)})
            for (row, window), scores, ids in zip(parts, found["log_probs"], found["rows"], strict=True):
                log_probs[row, window.first : window.last] = scores[window.kept]
                candidates[row, window.first : window.last] = ids[window.kept]
        return Grid(candidates, np.where(candidates > PAD_ID, log_probs, -np.inf), lengths)


class CandidateConverter(Converter):
    """Converts with a network that scores only the candidates; syllables without a digit may have any tone.

    Args:
        model: ``{"syllables": (B, L) int32}`` → logits (B, L, K) in the order of ``tables.candidates``.
        tables: the tables that it was built with; their rare hanzi have a fixed score.
        symbols: vocabularies of the network.
    """

    def __init__(self, model: keras.Model, tables: CandidateTables, symbols: Symbols):
        self._model, self.symbols, self._tokens = model, symbols, Tokens(symbols)
        self._candidates = np.concatenate([tables.candidates, tables.rare], axis=1)
        self._rare = rare_priors(tables).astype(np.float32)
        prepare_prediction(model)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """All candidates of each syllable and their log-probabilities; no sentence may be empty."""
        syllables = self._tokens.encode(sentences)  # (B, L)
        length = syllables.shape[1]
        padded = np.pad(syllables, [(0, 0), (0, -length % _LENGTH_STEP)])
        rated = predict(self._model, {"syllables": padded})[: len(syllables), :length]
        candidates = self._candidates[syllables]
        scores = log_softmax(np.concatenate([rated, self._rare[syllables]], axis=-1))
        lengths = np.array([len(sentence) for sentence in sentences])
        return Grid(candidates, np.where(candidates > PAD_ID, scores, -np.inf), lengths)
