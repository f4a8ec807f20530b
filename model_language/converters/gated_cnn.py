"""Converts pinyin with the gated CNN alone, in NumPy: the most probable hanzi of each syllable, no search."""

from collections.abc import Sequence

import numpy as np

from model_language.converters.base import Converter
from model_language.networks.gated_cnn_numpy import NumpyGatedCnn
from model_language.search.grid import Grid
from model_language.vocabulary.symbols import Symbols
from model_language.vocabulary.tokens import Tokens


class GatedCnnConverter(Converter):
    """Takes the best candidate at every position. Syllables without a digit may have any tone.

    Args:
        network: scores the candidates of each syllable.
        symbols: vocabularies of the network.
    """

    def __init__(self, network: NumpyGatedCnn, symbols: Symbols):
        self._network, self.symbols = network, symbols
        self._tokens = Tokens(symbols)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """All candidates of each syllable and their log-probabilities; no sentence may be empty."""
        syllables = self._tokens.encode(sentences)
        candidates, scores = self._network.candidates[syllables], self._network.log_probs(syllables)
        return Grid(candidates, scores, np.array([len(sentence) for sentence in sentences]))
