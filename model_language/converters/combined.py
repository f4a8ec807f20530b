"""The converter that comes with this project: beam search with a log-linear combination of four models.

    score = ngram · Σ log P(hanzi | hanzi before) + words · Σ log P(word)
          + emissions · Σ log P(recognised syllable | hanzi) + network · Σ log P(hanzi | all syllables)

The factors are settings of :class:`CombinedConfig`, tuned on held-out text (log-linear combination: Och and
Ney 2002, "Discriminative Training and Maximum Entropy Models for Statistical Machine Translation"). The
n-gram model contributes most. A dictionary of words adds what its training texts lack; the network sees
both sides of a syllable. A hanzi may be written for a syllable that an acoustic model confuses with its
reading (``noisy_channel``). The number of recognition errors in a sentence is unknown: each sentence is
searched with a high error rate and, if that finds errors, with lower ones; the highest score wins. Typed
pinyin is assumed to be correct (:meth:`CombinedConverter.typed`). The network runs in ONNX Runtime, all else
in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from model_language.batching import length_batches, windows
from model_language.converters.base import EMISSIONS, RESCORED, Converter, near_the_best
from model_language.converters.combined_config import CombinedConfig
from model_language.converters.noisy_channel import EmissionTables
from model_language.language_model import SecondPass
from model_language.networks.candidate_scorer import CandidateScorer
from model_language.ngram.packed import PackedNgrams, read_packed
from model_language.ngram.words import WordUnigram, read_words
from model_language.search.beam import beam_search
from model_language.search.grid import Grid, HistoryModel, known_word_ends, most_promising
from model_language.vocabulary.symbols import PAD_ID, Symbols, Tokens
from utils.mandarin.pinyin import has_tone
from utils.processes import one_blas_thread, usable_cores
from utils.run_folder.run import RunFolder

# Candidates and hypotheses whose log-score is lower than the best one's by more than this are dropped: a
# candidate by itself, a candidate beside its neighbours, a hypothesis in the search.
_CANDIDATE_MARGIN, _NEIGHBOUR_MARGIN, _MARGIN = 14.0, 9.0, 8.0
# A candidate is not tried after a hypothesis if both together are this far behind the best. Errors and speed
# with other values of this limit, and of the numbers of candidates below: docs/what_helped.md.
_EFFORT = 10.5
# A longer sentence is searched in overlapping windows of this many syllables. The result of a position is
# taken from a window that has at least this many further syllables on each side of it.
_WINDOW_SYLLABLES, _CONTEXT_SYLLABLES = 192, 32
# Error rate that is assumed for a confusion network: its alternatives contain most of the correct syllables.
_ERRORS_BEYOND_ALTERNATIVES = 0.02
# Factor by which beam and choices grow for sentences with toneless syllables.
_WIDER = 3
# With a second pass, the factors of n-grams and network are multiplied by these.
_NGRAM_FACTOR, _NETWORK_FACTOR = 6 / 7, 2 / 3
# Candidates of a syllable that are compared with the best candidates of the neighbouring syllables, and the
# number of these.
_COMPARED, _NEIGHBOURS = 64, 2


class CombinedConverter(Converter):
    """Converts by beam search. Syllables without a digit may have any tone.

    Args:
        network: scores the first candidates of each syllable.
        ngrams: scores a hanzi given the hanzi before it.
        tables: all candidates of each token.
        symbols: vocabularies of all parts.
        config: weights and widths.
        words: scores the words that hanzi form, its weight included; None: no such part.
        second_pass: rescores the best results of the search; None: no second pass.
    """

    margin, effort = _MARGIN, _EFFORT
    batch_syllables = 3072

    def __init__(
        self,
        network: CandidateScorer,
        ngrams: PackedNgrams,
        tables: EmissionTables,
        symbols: Symbols,
        config: CombinedConfig,
        words: WordUnigram | None = None,
        second_pass: SecondPass | None = None,
    ):
        self._network, self.symbols, self._config, self.beam = network, symbols, config, config.beam
        self.history_model, self.path_model = WeightedHistory(ngrams, config.ngram), words
        self.second_pass = second_pass
        self._tables, self.ngrams = tables, ngrams
        self._rated = rated = tables.searched - config.others  # columns that the network scores
        # By error rate: the score of each candidate without the network.
        self._scores = np.stack([config.emissions * tables.emissions(rate) for rate in config.error_rates])
        if config.network:
            self._scores[:, :, rated:] += config.network * tables.log_priors[:, rated:]
        self._unigrams = config.ngram * ngrams.unigrams
        self._tokens = Tokens(symbols)

    def generative(self) -> CombinedConverter:
        """The same converter without the network, which needs the syllables of the whole sentence."""
        converter = self._with(network=0.0, error_rates=(_ERRORS_BEYOND_ALTERNATIVES,))
        converter.score_kind = EMISSIONS
        return converter

    def typed(self) -> CombinedConverter:
        """The same for typed pinyin: each syllable becomes a hanzi with this reading."""
        tables = self._tables.without_errors(self._tokens, len(self.symbols.hanzi), self._rated)
        return self._with(tables, error_rates=self._config.error_rates[-1:])

    def with_second_pass(self, second_pass: SecondPass) -> CombinedConverter:
        """See the base class; n-grams and network get lower factors: the second pass sees their context."""
        ngram, network = _NGRAM_FACTOR * self._config.ngram, _NETWORK_FACTOR * self._config.network
        return self._with(second_pass=second_pass, ngram=ngram, network=network)

    def by_error_rate(self) -> list[CombinedConverter]:
        """See the base class."""
        return self._single_rates

    @cached_property
    def _single_rates(self) -> list[CombinedConverter]:
        rates = self._config.error_rates
        return [self._with(error_rates=(rate,)) for rate in rates] if len(rates) > 1 else [self]

    def _with(
        self, tables: EmissionTables | None = None, second_pass: SecondPass | None = None, **changes: Any
    ) -> CombinedConverter:
        config, tables = replace(self._config, **changes), tables or self._tables
        parts = (self._network, self.ngrams, tables, self.symbols, config, self.path_model)
        return CombinedConverter(*parts, second_pass or self.second_pass)

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """See the base class; long sentences are divided into windows."""
        cut = [
            (index, window)
            for index, sentence in enumerate(sentences)
            for window in (
                windows(len(sentence), _WINDOW_SYLLABLES, _CONTEXT_SYLLABLES) if len(sentence) else ()
            )
        ]
        found = self._best([sentences[index][window.start : window.end] for index, window in cut])
        converted = [""] * len(sentences)
        for (index, window), (path, _) in zip(cut, found, strict=True):
            converted[index] += self.symbols.decode(path[window.kept])
        return converted

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """All candidates of each syllable and their own part of the score; no sentence may be empty."""
        rates = np.zeros(len(sentences), np.int64)
        if len(self._scores) > 1:
            rates[:] = [rate for _, rate in self._best(sentences)]
        with one_blas_thread():
            grid = self._grid(sentences, rates, self._tables.candidates.shape[1])
        order = np.argsort(grid.candidates == PAD_ID, axis=2, kind="stable")  # used columns come first
        candidates, scores = (
            np.take_along_axis(table, order, axis=2) for table in (grid.candidates, grid.scores)
        )
        return replace(grid, candidates=candidates, scores=scores)

    def narrow(self, grid: Grid) -> Grid:
        """See the base class."""
        width = self._tables.searched
        first = grid.candidates[:, :, :width], grid.scores[:, :, :width]
        return self._promising(replace(grid, candidates=first[0], scores=first[1]), self._config.choices)

    def corrects(self, sentences: Sequence[Sequence[str]], paths: np.ndarray) -> np.ndarray:
        """See the base class."""
        width, syllables = self._tables.searched, self._tokens.encode(sentences)
        chosen = self._tables.candidates[:, :width][syllables] == paths[:, :, None]  # (B, L, width)
        chosen &= self._tables.misrecognised[:, :width][syllables]
        return (chosen.any(axis=2) & (paths > PAD_ID)).any(axis=1)

    def _best(self, sentences: Sequence[Sequence[str]]) -> list[tuple[np.ndarray, int]]:
        """The best path of each sentence, hanzi ids, and the index of the error rate that finds it.

        If the best path at a high rate corrects nothing, it is the best at all lower rates too, and its score
        is highest at the lowest.
        """
        found = [_Path(np.zeros(0, np.int32), -np.inf, False)] * len(sentences)
        last = len(self._scores) - 1
        rates, searched = [last] * len(sentences), range(len(sentences))
        # Threads of products this small would mostly wait, and batches have threads of their own.
        with one_blas_thread():
            for rate in range(last + 1):
                for index, path in self._search(sentences, searched, rate):
                    if path.score >= found[index].score:
                        found[index], rates[index] = path, rate if path.corrected else last
                if rate == 0:
                    searched = [index for index, path in enumerate(found) if path.corrected]
        return [(path.ids, rate) for path, rate in zip(found, rates, strict=True)]

    def _search(
        self, sentences: Sequence[Sequence[str]], indices: Sequence[int], rate: int
    ) -> Iterator[tuple[int, _Path]]:
        """Index and best path of the sentences at ``indices``; in threads, since NumPy releases the GIL."""
        batches = list(self._batches(sentences, indices))

        def search(batch: tuple[list[int], bool]) -> list[_Path]:
            return self._search_batch([sentences[index] for index in batch[0]], rate, wider=batch[1])

        if len(batches) == 1:  # starting a thread costs more than a short sentence
            yield from zip(batches[0][0], search(batches[0]), strict=True)
        elif batches:
            with ThreadPoolExecutor(usable_cores()) as pool:
                for (batch, _), paths in zip(batches, pool.map(search, batches), strict=True):
                    yield from zip(batch, paths, strict=True)

    def _batches(
        self, sentences: Sequence[Sequence[str]], indices: Sequence[int]
    ) -> Iterator[tuple[list[int], bool]]:
        """Sentences of similar length, and whether they contain toneless syllables."""
        toned = set(filter(has_tone, set().union(*(sentences[index] for index in indices))))
        for wider in (False, True):
            chosen = [index for index in indices if toned.issuperset(sentences[index]) is not wider]
            for batch in length_batches([len(sentences[index]) for index in chosen], self.batch_syllables):
                yield [chosen[number] for number in batch], wider

    def _search_batch(self, sentences: Sequence[Sequence[str]], rate: int, wider: bool) -> list[_Path]:
        """The best paths at one error rate; ``wider`` for toneless syllables, which have more candidates."""
        factor = _WIDER if wider else 1
        grid = self._grid(sentences, np.full(len(sentences), rate), self._tables.searched)
        grid = self._promising(grid, factor * self._config.choices)
        count = RESCORED if self.second_pass else 1
        paths, scores = beam_search(
            grid,
            count * factor * self.beam,
            self.margin,
            self.effort,
            self.history_model,
            self.path_model,
            n_best=count,
        )
        best = paths[:, 0]
        if self.second_pass:
            best = self._rescored(paths, scores, grid.lengths, self.second_pass)
        corrected = self.corrects(sentences, best)
        rows = zip(best, grid.lengths, scores[:, 0].tolist(), corrected.tolist(), strict=True)
        return [_Path(path[:length], score, wrong) for path, length, score, wrong in rows]

    def _rescored(
        self, paths: np.ndarray, scores: np.ndarray, lengths: np.ndarray, second_pass: SecondPass
    ) -> np.ndarray:
        """Rescore the paths close to the best one of each sentence, and return the best by the new scores.

        Args:
            paths, scores: (B, n, L) and (B, n), the best first.
            lengths: (B,).

        Returns:
            (B, L).
        """
        chosen = paths[:, 0].copy()
        near = near_the_best(scores)
        uncertain = (near > 1).nonzero()[0].tolist()
        texts = [
            [self.symbols.decode(path[: lengths[row]]) for path in paths[row, : near[row]]]
            for row in uncertain
        ]
        for row, gain in zip(uncertain, second_pass.gains(texts), strict=True):
            chosen[row] = paths[row, (scores[row, : near[row]] + gain).argmax()]
        return chosen

    def _grid(self, sentences: Sequence[Sequence[str]], rates: np.ndarray, width: int) -> Grid:
        """The first candidates of each syllable, at the error rates with these indices (B,)."""
        syllables = self._tokens.encode(sentences)
        scores = self._scores[:, :, :width][rates[:, None], syllables]  # (B, L, width)
        if self._config.network:
            logs = self._network.log_probs(syllables)
            scores[:, :, : self._rated] += self._config.network * logs
        lengths = np.array([len(sentence) for sentence in sentences])
        candidates = self._tables.candidates[:, :width][syllables]
        return Grid(candidates, scores, lengths, word_ends=known_word_ends(sentences))

    def _promising(self, grid: Grid, choices: int) -> Grid:
        """The most promising candidates, by their own scores, then with the likely neighbours."""
        promise = grid.scores + self._unigrams.take(grid.candidates)
        compared = most_promising(grid, _COMPARED, _CANDIDATE_MARGIN, promise)
        promise = compared.scores + self._neighbour_scores(compared)
        return most_promising(compared, choices, _NEIGHBOUR_MARGIN, promise)

    def _neighbour_scores(self, grid: Grid) -> np.ndarray:
        """The bigram scores of candidates with the best few before and after them, or the end: (B, L, K).

        Args:
            grid: candidates, the most promising first.
        """
        ngrams, weight = self.ngrams, self._config.ngram
        length, width = grid.candidates.shape[1:]
        # The best n at each position, and id 0 before and after each sentence: (n, B · (L + 2)).
        first, sides = (slice(None), slice(None), slice(_NEIGHBOURS)), ((0, 0), (1, 1), (0, 0))
        few = np.pad(grid.candidates[first].astype(np.int64), sides)
        own = np.pad(grid.scores[first], sides, constant_values=-np.inf)
        outside = np.arange(length + 2) > grid.lengths[:, None]
        few[outside], own[outside] = 0, -np.inf
        few, own = (np.ascontiguousarray(table.reshape(-1, table.shape[-1]).T) for table in (few, own))
        unigrams = weight * ngrams.unigrams.take(few)
        before = own + unigrams
        before[0, np.isneginf(before[0])] = 0.0
        before -= before[0].copy()  # relative to the best one
        after = before - unigrams
        # E cells with a candidate, and the positions on each side.
        cells = grid.candidates.ravel().nonzero()[0]
        hanzi = grid.candidates.ravel().take(cells).astype(np.int64)
        sentence, inside = np.divmod(cells, length * width)
        left = sentence * (length + 2) + inside // width
        linked = before.take(left, axis=1) + weight * ngrams.after(few.take(left, axis=1), hanzi)
        right = left + 2
        linked_after = after.take(right, axis=1) + weight * ngrams.after(hanzi, few.take(right, axis=1))
        result = np.zeros_like(grid.scores)
        result.ravel()[cells] = linked.max(axis=0) + linked_after.max(axis=0)
        return result


@dataclass(frozen=True)
class _Path:
    """The best path of a sentence at one error rate, and whether it corrects recognition errors."""

    ids: np.ndarray
    score: float
    corrected: bool


class WeightedHistory(HistoryModel):
    """A history model with a factor for its log-probabilities."""

    def __init__(self, model: PackedNgrams, weight: float):
        self._model, self._weight, self.history = model, weight, model.history

    def score(self, histories: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`."""
        return self._weight * self._model.score(histories, rows, tokens)

    def preview(self, last: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`."""
        return self._weight * self._model.preview(last, tokens)


def _array_files(run: RunFolder, config: CombinedConfig) -> list[Path]:
    return [run.packed_network, run.ngrams, run.emissions, *([run.words] if config.words else [])]


def combined_parts(run: RunFolder, config: CombinedConfig) -> list[Path]:
    """The files that :func:`load_combined_converter` reads, vocabularies last."""
    return [*_array_files(run, config), *Symbols.files(run.path)]


def load_combined_converter(run: RunFolder, config: CombinedConfig) -> CombinedConverter:
    """The converter of a finished run; it needs no framework.

    Raises:
        RunError: a part is missing or damaged.
    """
    symbols = Symbols.load(run.path)
    # All files are verified before one is unpacked.
    network_file, ngrams_file, emissions_file, *words_file = map(run.part, _array_files(run, config))
    ngrams = read_packed(ngrams_file)  # first: unpacking takes memory that the other parts can use then
    network = CandidateScorer(network_file)
    tables = EmissionTables.load(emissions_file)
    words = read_words(words_file[0], config.words) if words_file else None
    return CombinedConverter(network, ngrams, tables, symbols, config, words)
