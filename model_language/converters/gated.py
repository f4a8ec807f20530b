"""Syllables in, hanzi out, by a context network alone: every position the best candidate, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model_language.converters.scoring import given_scores
from model_language.networks.gated_cnn_numpy import ContextNetwork
from model_language.search.grid import Conversion, Grid, length_batches, n_best
from model_language.vocabulary.symbols import Symbols
from model_language.vocabulary.tokens import TokenIds

# Padded syllables in one call of the network.
_BATCH_SYLLABLES = 4096


class ContextConverter:
    """A :class:`model_language.converters.explain.GridConverter` of a network alone; syllables without a
    digit may have any tone.

    Args:
        network: rates the candidates of each syllable.
        symbols: its vocabularies.
    """

    grid_part = "network"
    batch_syllables = _BATCH_SYLLABLES
    history_model = path_model = None  # it rates no hanzi by those before it
    margin = None
    beam = 8  # enough for user words: all else is decided place by place

    def __init__(self, network: ContextNetwork, symbols: Symbols):
        self._network, self.symbols = network, symbols
        self._tokens = TokenIds(symbols)

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character a syllable."""
        result = [""] * len(sentences)
        there = [index for index, sentence in enumerate(sentences) if len(sentence)]
        for batch in length_batches([len(sentences[index]) for index in there], self.batch_syllables):
            indices = [there[place] for place in batch]
            for index, text in zip(indices, self._best([sentences[i] for i in indices]), strict=True):
                result[index] = text
        return result

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """Up to ``n`` ways to write one sentence, the most probable first."""
        return n_best(self, sentence, n)

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :class:`model_language.converters.base.Converter`."""
        return given_scores(self, sentences, hanzi)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """All candidates of each syllable and their log-probabilities; no sentence may be empty."""
        syllables = self._tokens.encode(sentences)
        candidates, scores = self._network.candidates[syllables], self._network.log_probs(syllables)
        return Grid(candidates, scores, np.array([len(sentence) for sentence in sentences]))

    def narrow(self, grid: Grid) -> Grid:
        """All candidates: its search looks at each."""
        return grid

    def _best(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        syllables = self._tokens.encode(sentences)
        best = self._network.log_probs(syllables).argmax(axis=-1)  # (B, L)
        found = self._network.candidates[syllables, best]
        return [
            self.symbols.decode(row[: len(sentence)]) for row, sentence in zip(found, sentences, strict=True)
        ]
