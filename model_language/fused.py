"""The converter that comes with this project: a network of the whole sentence and an n-gram model, together.

    score = network · log P(hanzi | syllables) + ngram · Σ log P(hanzi | hanzi before) − prior · log P(hanzi)

The network knows both sides of a syllable and expects mistakes in it; the n-gram model knows more words. Their
weights (log-linear, Och and Ney 2002, "Discriminative Training and Maximum Entropy Models for Statistical
Machine Translation") were tuned on held-out text. All of it is NumPy: it starts in a second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from model_language.context_network import ContextNetwork, read_weights
from model_language.decoding import Conversion, Grid, beam_search, length_batches, narrowed, pad_rows
from model_language.packed_ngrams import PackedNgrams, read_packed
from model_language.scoring import given_scores
from model_language.symbols import Symbols
from utils.run import RunFolder

NAME = "fused"
NETWORK_PART = "network"
NETWORK_FILE, NGRAMS_FILE = "network.npz", "ngrams.npz"
# Padded syllables in one call of the search.
_BATCH_SYLLABLES = 4096
# The network finds what is so much less probable than its best candidate (natural logarithm) out of place.
_HOPELESS = 9.0


@dataclass(frozen=True)
class FusedConfig:
    """How much each model counts, and how wide the search is.

    Attributes:
        network: factor of the network's log-probabilities.
        ngram: factor of the n-gram model's.
        prior: factor of a hanzi's own log-probability, which both models have in them.
        beam: hypotheses kept after each syllable.
        choices: candidates of each syllable that are searched, the best ones by the network.
    """

    name: str = NAME
    network: float = 0.7
    ngram: float = 0.5
    prior: float = 0.0
    beam: int = 8
    choices: int = 8


class FusedConverter:
    """Converts by beam search (see :class:`model_language.guided.GridConverter`).

    Syllables without a digit may have any tone.

    Args:
        network: rates the candidates of each syllable.
        ngrams: rates a hanzi by those before it.
        symbols: their vocabularies; ids beyond the syllables are syllables in any tone, sorted.
        config: weights and widths.
    """

    grid_part = NETWORK_PART
    batch_syllables = _BATCH_SYLLABLES

    def __init__(self, network: ContextNetwork, ngrams: PackedNgrams, symbols: Symbols, config: FusedConfig):
        self._network, self.symbols, self._config, self.beam = network, symbols, config, config.beam
        self.history_model = WeightedHistory(ngrams, config.ngram)
        self._prior = config.prior * ngrams.unigrams  # (hanzi,)
        bases = sorted({token[:-1] for token in symbols.pinyin.tokens if token[-1].isdigit()})
        self._ids = {base: len(symbols.pinyin) + place for place, base in enumerate(bases)}

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character a syllable."""
        result = [""] * len(sentences)
        batches = [
            [index for index in batch if len(sentences[index])]
            for batch in length_batches([len(sentence) for sentence in sentences], self.batch_syllables)
        ]

        def converted(batch: list[int]) -> list[str]:
            grid = self.narrow(self._grid([sentences[index] for index in batch], rare=False))
            found, _ = self._search(grid, self.beam, recombine=True)
            return [
                self.symbols.decode(row[:length])
                for row, length in zip(found[:, 0], grid.lengths, strict=True)
            ]

        # NumPy lets other threads run while it computes.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for batch, texts in zip(batches, pool.map(converted, filter(None, batches)), strict=False):
                for index, text in zip(batch, texts, strict=True):
                    result[index] = text
        return result

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """Up to ``n`` ways to write one sentence, the most probable first."""
        if not len(sentence):
            return [Conversion("", 0.0)]
        sequences, scores = self._search(self.grid([sentence]), max(self.beam, 4 * n), recombine=False)
        found = zip(sequences[0, :n], scores[0, :n], strict=True)
        return [
            Conversion(self.symbols.decode(best), float(score)) for best, score in found if score > -np.inf
        ]

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :class:`model_language.converter.Converter`."""
        return given_scores(self, sentences, hanzi)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """All candidates of each syllable and the network's part of their score; no sentence may be empty."""
        return self._grid(sentences, rare=True)

    def narrow(self, grid: Grid) -> Grid:
        """The candidates of a grid that a search has to look at."""
        return narrowed(grid, self._config.choices, self._config.network * _HOPELESS)

    def _grid(self, sentences: Sequence[Sequence[str]], rare: bool) -> Grid:
        syllables = self._encoded(sentences)
        logs = self._network.log_probs(syllables, rare)
        candidates = self._network.candidates[:, : logs.shape[-1]][syllables]
        scores = self._config.network * logs - self._prior[candidates]
        return Grid(candidates, scores, np.array([len(sentence) for sentence in sentences]))

    def _encoded(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """(B, L) int32, filled with 0."""
        return pad_rows([self._encode(sentence) for sentence in sentences])

    def _encode(self, sentence: Sequence[str]) -> np.ndarray:
        ids = self._ids
        for syllable in sentence:
            if syllable not in ids:
                ids[syllable] = int(self.symbols.encode([syllable])[0])
        return np.array([ids[syllable] for syllable in sentence], np.int32)

    def _search(self, grid: Grid, beam: int, recombine: bool) -> tuple[np.ndarray, np.ndarray]:
        return beam_search(
            grid.candidates, grid.scores, grid.lengths, beam, self.history_model, recombine=recombine
        )


class WeightedHistory:
    """A history model whose log-probabilities count this much."""

    def __init__(self, model: PackedNgrams, weight: float):
        self._model, self._weight, self.history = model, weight, model.history

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See :class:`model_language.decoding.HistoryModel`."""
        return self._weight * self._model.log_probs(histories, words)


def load_fused_converter(run: RunFolder, config: FusedConfig) -> FusedConverter:
    """The converter of a finished run: it takes no framework.

    Raises:
        RunError: a part is missing or damaged.
    """
    network = ContextNetwork(read_weights(run.path / NETWORK_FILE))
    return FusedConverter(network, read_packed(run.path / NGRAMS_FILE), Symbols.load(run.path), config)
