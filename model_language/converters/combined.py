"""The converter that comes with this project: a network of the whole sentence and an n-gram model, together.

    score = ngram · Σ log P(hanzi | hanzi before) + words · Σ log P(word)
          + heard · Σ log P(syllable heard | hanzi) + network · Σ log P(hanzi | all syllables)

The n-gram model knows most; a dictionary's words say what belongs together, also where the texts never had
it; the network sees both sides of a syllable. Hanzi may be written whose syllables an acoustic model mistakes
for those given. How many of a sentence's syllables are mistaken nobody knows: each sentence is searched as if
they were many, and, if that finds any, as if they were few; the higher score wins. Typed pinyin is taken for
right (:meth:`FusedConverter.typed`). The weights (log-linear, Och and Ney 2002, "Discriminative Training and
Maximum Entropy Models for Statistical Machine Translation")
were tuned on held-out text. All of it is NumPy: it starts in seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from model_language.converters.ngram import READINGS
from model_language.converters.noisy_channel import HEARD_FILE, HeardTables
from model_language.converters.scoring import given_scores
from model_language.networks.gated_cnn_file import load_weights_file
from model_language.networks.gated_cnn_numpy import ContextNetwork
from model_language.networks.windows import windows
from model_language.ngram.packed import PackedNgrams, read_packed
from model_language.ngram.words import WORDS_FILE, WordUnigram, read_words
from model_language.search.beam import best_paths
from model_language.search.grid import Conversion, Grid, length_batches, n_best, narrowed
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from model_language.vocabulary.tokens import TokenIds
from utils.errors import ConfigError, RunError
from utils.mandarin.pinyin import has_tone
from utils.run_folder.run import RunFolder

NAME = "fused"
NETWORK_PART = "network"
NETWORK_FILE, NGRAMS_FILE = "network.npz", "ngrams.npz"
# Padded syllables in one call of the search.
_BATCH_SYLLABLES = 3072
# What is so much less promising than the best candidate (natural logarithm) isn't looked at; less promising
# by so much when its neighbours are known, isn't searched; a hypothesis so far behind the best is dropped.
_HOPELESS, _UNLIKELY, _MARGIN = 14.0, 9.0, 8.0
# Syllables of a window that is searched by itself, and how many of them are seen twice on each side.
_LONGEST, _CONTEXT = 192, 32
# Share of the syllables of a network of alternatives that none of them stands for.
_ERRORS_BEYOND_ALTERNATIVES = 0.02
# Factor of beam and choices for sentences with syllables that have no tone.
_WIDER = 3
# Candidates of a syllable that are held against their neighbours', and how many of these.
_LOOKED_AT, _NEIGHBOURS = 64, 3


@dataclass(frozen=True)
class FusedConfig:
    """How it is made, how much each part counts, and how wide the search is.

    Attributes:
        network_run: run of a context network to take, with its vocabularies and texts.
        order: length of the longest n-grams.
        ngrams: how many n-grams of two hanzi and more are kept.
        dictionary: words drawn from a dictionary and added to the text; 0: none.
        error_rates: shares of a sentence's syllables that may have been heard wrongly, falling.
        others: candidates of each syllable beyond the network's that are searched too.
        network, ngram, words, heard: factors of the log-probabilities; words 0: none are made or loaded.
        beam: hypotheses kept after each syllable.
        choices: candidates of each syllable that are searched, the most promising ones.
    """

    name: str = NAME
    network_run: str = ""
    order: int = 4
    ngrams: int = 7_500_000
    dictionary: int = 2_000_000
    error_rates: tuple[float, ...] = (0.1, 0.005)
    others: int = 64
    network: float = 0.2
    ngram: float = 1.0
    words: float = 0.0
    heard: float = 1.0
    beam: int = 16
    choices: int = 8

    def __post_init__(self):
        rates = self.error_rates
        if not rates or list(rates) != sorted(set(rates), reverse=True) or not 0 < rates[-1] <= rates[0] < 1:
            what = f"model.error_rates={list(rates)} don't fall between 1 and 0"
            raise ConfigError(what, hint="such as [0.1,0.005], or a single one")


class FusedConverter:
    """Converts by beam search (see :class:`model_language.converters.explain.GridConverter`).

    Syllables without a digit may have any tone.

    Args:
        network: rates the first candidates of each syllable.
        ngrams: rates a hanzi by those before it.
        tables: all candidates.
        symbols: their vocabularies; ids beyond the syllables are syllables in any tone, sorted.
        config: weights and widths.
        words: rates hanzi as words, its weight included.

    Raises:
        RunError: the parts don't belong together.
    """

    grid_part = NETWORK_PART
    margin = _MARGIN
    batch_syllables = _BATCH_SYLLABLES

    def __init__(
        self,
        network: ContextNetwork,
        ngrams: PackedNgrams,
        tables: HeardTables,
        symbols: Symbols,
        config: FusedConfig,
        words: WordUnigram | None = None,
    ):
        tokens, rated = network.rated_candidates.shape
        sizes = {ngrams.size, len(symbols.hanzi), words.size if words else ngrams.size}
        shared = tables.candidates[:tokens, :rated]
        if len(sizes) > 1 or not ((shared == network.rated_candidates) | (shared <= UNKNOWN_ID)).all():
            hint = "copy the whole run folder again, or train it again"
            raise RunError("network, n-grams, words and candidates are of different trainings", hint=hint)
        self._network, self.symbols, self._config, self.beam = network, symbols, config, config.beam
        self.history_model, self.path_model = WeightedHistory(ngrams, config.ngram), words
        self._tables, self._ngrams, self._rated = tables, ngrams, rated
        # By error rate: what is known of a candidate without its neighbours and without the network.
        self._alone = np.stack([config.heard * tables.log_probs(rate) for rate in config.error_rates])
        if config.network:
            self._alone[:, :, rated:] += config.network * tables.shares[:, rated:]
        self._expected = config.ngram * ngrams.unigrams
        self._tokens, self._blas = TokenIds(symbols), ThreadpoolController()

    def counted(self) -> FusedConverter:
        """The same without the network: one that rates hanzi and readings one after the other.

        So a search can go through a network of alternative syllables with it, which a network of the whole
        sentence doesn't allow.
        """
        found = self._with(network=0.0, error_rates=(_ERRORS_BEYOND_ALTERNATIVES,))
        found.grid_part = READINGS
        return found

    def typed(self) -> FusedConverter:
        """The same for pinyin that somebody has typed: each syllable becomes a hanzi that is read so."""
        tables = self._tables.without_mistakes(self.symbols, self._rated)
        return self._with(tables, error_rates=self._config.error_rates[-1:])

    @cached_property
    def by_error_rate(self) -> list[FusedConverter]:
        """The same for each error rate by itself; itself, if there is only one."""
        rates = self._config.error_rates
        return [self._with(error_rates=(rate,)) for rate in rates] if len(rates) > 1 else [self]

    def _with(self, tables: HeardTables | None = None, **changes: Any) -> FusedConverter:
        config, tables = replace(self._config, **changes), tables or self._tables
        return FusedConverter(self._network, self._ngrams, tables, self.symbols, config, self.path_model)

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character a syllable; long ones window by window."""
        cut = [
            (index, window)
            for index, sentence in enumerate(sentences)
            for window in (windows(len(sentence), _LONGEST, _CONTEXT) if len(sentence) else ())
        ]
        found = self._best([sentences[index][window.start : window.end] for index, window in cut])
        result = [""] * len(sentences)
        for (index, window), (path, _) in zip(cut, found, strict=True):
            result[index] += self.symbols.decode(
                path[window.first - window.start : window.last - window.start]
            )
        return result

    def _best(self, sentences: Sequence[Sequence[str]]) -> list[tuple[np.ndarray, int]]:
        """The best path of each sentence, hanzi ids, and the place of the error rate at which it is found.

        Without a mistake in it, the best path of a high rate is that of all lower ones, the better the lower.
        """
        found = [_Found(np.zeros(0, np.int32), -np.inf, False)] * len(sentences)
        last = len(self._alone) - 1
        levels, doubtful = [last] * len(sentences), range(len(sentences))
        with self._alone_in_blas():
            for level in range(last + 1):
                for place, one in self._found(sentences, doubtful, level):
                    if one.score >= found[place].score:
                        found[place], levels[place] = one, level if one.mistaken else last
                if level == 0:
                    doubtful = [place for place, one in enumerate(found) if one.mistaken]
        return [(one.path, level) for one, level in zip(found, levels, strict=True)]

    def _found(
        self, sentences: Sequence[Sequence[str]], chosen: Sequence[int], level: int
    ) -> Iterator[tuple[int, _Found]]:
        """Which sentence, and what is found for it, in threads: NumPy lets others run while it computes."""
        jobs = list(self._jobs(sentences, chosen))

        def search(job: tuple[list[int], bool]) -> list[_Found]:
            return self._searched([sentences[place] for place in job[0]], level, wider=job[1])

        if len(jobs) == 1:  # starting a thread costs more than a short sentence
            yield from zip(jobs[0][0], search(jobs[0]), strict=True)
        elif jobs:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for (places, _), results in zip(jobs, pool.map(search, jobs), strict=True):
                    yield from zip(places, results, strict=True)

    def _jobs(
        self, sentences: Sequence[Sequence[str]], chosen: Sequence[int]
    ) -> Iterator[tuple[list[int], bool]]:
        """Batches of sentences of similar length; the second tells those with syllables that have no tone."""
        bare = {place: not all(map(has_tone, sentences[place])) for place in chosen}
        for wider in (False, True):
            alike = [place for place in chosen if bare[place] is wider]
            for batch in length_batches([len(sentences[place]) for place in alike], self.batch_syllables):
                if len(batch):
                    yield [alike[place] for place in batch], wider

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """Up to ``n`` ways to write one sentence, the most probable first; what :meth:`convert` finds isn't
        missed."""
        found, (best,) = n_best(self, sentence, n), self.convert([sentence])
        if best not in (one.hanzi for one in found):
            found.append(Conversion(best, self.scores([sentence], [best])[0]))
        return sorted(found, key=lambda one: -one.score)[:n]

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :class:`model_language.converters.base.Converter`."""
        return given_scores(self, sentences, hanzi)

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """All candidates of each syllable and their own part of the score; no sentence may be empty."""
        levels = np.zeros(len(sentences), np.int64)
        if len(self._alone) > 1:
            levels[:] = [level for _, level in self._best(sentences)]
        with self._alone_in_blas():
            grid = self._grid(sentences, levels, self._tables.candidates.shape[1])
        order = np.argsort(grid.candidates == PAD_ID, axis=2, kind="stable")  # places in use come first
        candidates, scores = (
            np.take_along_axis(table, order, axis=2) for table in (grid.candidates, grid.scores)
        )
        return Grid(candidates, scores, grid.lengths)

    def _alone_in_blas(self) -> AbstractContextManager:
        """One thread for each matrix product: more, for products as small as these, mostly wait for each
        other, and batches have threads of their own."""
        return self._blas.limit(limits=1, user_api="blas")

    def narrow(self, grid: Grid) -> Grid:
        """The candidates of a grid that a search has to look at."""
        width = self._tables.searched
        first = Grid(grid.candidates[:, :, :width], grid.scores[:, :, :width], grid.lengths)
        return self._promising(first, self._config.choices)

    def _searched(self, sentences: Sequence[Sequence[str]], level: int, wider: bool) -> list[_Found]:
        """The best paths at one error rate; what has no tone may be so much that the search is wider."""
        factor = _WIDER if wider else 1
        grid = self._grid(sentences, np.full(len(sentences), level), self._tables.searched)
        grid = self._promising(grid, factor * self._config.choices)
        paths, scores = best_paths(grid, factor * self.beam, self.margin, self.history_model, self.path_model)
        mistaken = self.mistaken(sentences, paths)
        rows = zip(paths, grid.lengths, scores.tolist(), mistaken.tolist(), strict=True)
        return [_Found(path[:length], score, wrong) for path, length, score, wrong in rows]

    def mistaken(self, sentences: Sequence[Sequence[str]], paths: np.ndarray) -> np.ndarray:
        """Whether paths (B, L) of hanzi ids take any syllable of their sentence for misheard, (B,) bool."""
        width, syllables = self._tables.searched, self._tokens.encode(sentences)
        chosen = self._tables.candidates[:, :width][syllables] == paths[:, :, None]  # (B, L, width)
        chosen &= self._tables.misheard[:, :width][syllables]
        return (chosen.any(axis=2) & (paths > PAD_ID)).any(axis=1)

    def _promising(self, grid: Grid, choices: int) -> Grid:
        """The most promising candidates, as far as can be told from the likely ones beside them."""
        near = narrowed(grid, _LOOKED_AT, _HOPELESS, grid.scores + self._expected.take(grid.candidates))
        return narrowed(near, choices, _UNLIKELY, near.scores + self._beside(near))

    def _beside(self, grid: Grid) -> np.ndarray:
        """What the best few candidates before and after leave a candidate to expect, (B, L, K).

        Args:
            grid: candidates, the most promising first.
        """
        ngrams, weight = self._ngrams, self._config.ngram
        candidates = grid.candidates.astype(np.int64)
        few = candidates[:, :, :_NEIGHBOURS]  # (B, L, n)
        alone = grid.scores[:, :, :_NEIGHBOURS] + weight * ngrams.unigrams[few]
        alone[np.isneginf(alone[:, :, 0]), 0] = 0.0  # beyond its end a sentence has nothing but the boundary
        alone -= alone[:, :, :1].copy()  # how much less likely than the best one
        found = np.zeros_like(grid.scores)
        linked = alone[:, :-1, None, :] + weight * ngrams.after(
            few[:, :-1, None, :], candidates[:, 1:, :, None]
        )
        found[:, 1:] = linked.max(axis=-1)
        found[:, 0] = weight * ngrams.after(np.int64(PAD_ID), candidates[:, 0])
        linked = weight * ngrams.after(candidates[:, :-1, :, None], few[:, 1:, None, :])
        linked += (alone[:, 1:] - weight * ngrams.unigrams[few[:, 1:]])[:, :, None, :]
        found[:, :-1] += linked.max(axis=-1)
        return found

    def _grid(self, sentences: Sequence[Sequence[str]], levels: np.ndarray, width: int) -> Grid:
        """The first candidates of each syllable, at the error rates of the given places (B,)."""
        syllables = self._tokens.encode(sentences)
        scores = self._alone[:, :, :width][levels[:, None], syllables]  # (B, L, width)
        if self._config.network:
            logs = self._network.log_probs(syllables, rare=False)
            scores[:, :, : self._rated] += self._config.network * logs
        lengths = np.array([len(sentence) for sentence in sentences])
        return Grid(self._tables.candidates[:, :width][syllables], scores, lengths)


@dataclass(frozen=True)
class _Found:
    """The best path of a sentence at one error rate; mistaken: some of its syllables are put right."""

    path: np.ndarray
    score: float
    mistaken: bool


class WeightedHistory:
    """A history model whose log-probabilities count this much."""

    def __init__(self, model: PackedNgrams, weight: float):
        self._model, self._weight, self.history = model, weight, model.history

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See :class:`model_language.search.grid.HistoryModel`."""
        return self._weight * self._model.log_probs(histories, words)

    def rated(self, histories: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See :class:`model_language.search.beam.RaggedHistory`."""
        return self._weight * self._model.rated(histories, rows, words)


def fused_parts(run: RunFolder, config: FusedConfig) -> list[Path]:
    """The files that :func:`load_fused_converter` reads, vocabularies last."""
    arrays = [NETWORK_FILE, NGRAMS_FILE, HEARD_FILE, *([WORDS_FILE] if config.words else [])]
    return [*(run.path / name for name in arrays), *Symbols.files(run.path)]


def load_fused_converter(run: RunFolder, config: FusedConfig) -> FusedConverter:
    """The converter of a finished run: it takes no framework.

    Raises:
        RunError: a part is missing or damaged.
    """
    symbols = Symbols.load(run.path)
    names = (NETWORK_FILE, NGRAMS_FILE, HEARD_FILE, *((WORDS_FILE,) if config.words else ()))
    parts = {name: run.part(run.path / name) for name in names}  # all are verified before one is unpacked
    network = ContextNetwork(load_weights_file(parts[NETWORK_FILE]))
    tables = HeardTables.load(parts[HEARD_FILE])
    words = read_words(parts[WORDS_FILE], config.words) if config.words else None
    return FusedConverter(network, read_packed(parts[NGRAMS_FILE]), tables, symbols, config, words)
