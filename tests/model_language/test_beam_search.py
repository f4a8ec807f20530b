"""The search as wide as there is doubt, against the one with a fixed beam; batches against sentences."""

from __future__ import annotations

import numpy as np
import pytest

from model_language.ngram.kneser_ney import estimate
from model_language.ngram.packed import PackedNgrams, pack
from model_language.ngram.words import WordUnigram, pack_words
from model_language.search.beam import best_paths
from model_language.search.grid import Grid, beam_search
from model_language.search.grid_words import WordSearch
from model_language.search.user_words import Span, UserWord
from model_language.vocabulary.lexicon import Lexicon
from model_language.vocabulary.symbols import PAD_ID, Symbols, language_vocabulary

HANZI = [chr(0x4E00 + number) for number in range(40)]


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    lexicon = Lexicon({"a1": HANZI})
    return Symbols(language_vocabulary(lexicon.syllables), language_vocabulary(HANZI), lexicon)


@pytest.fixture(scope="module")
def ngrams(symbols) -> PackedNgrams:
    rng = np.random.default_rng(1)
    size = len(symbols.hanzi)
    text = np.concatenate(
        [np.append(rng.integers(2, size, rng.integers(1, 9)) ** 2 % size, 0) for _ in range(900)]
    )
    return PackedNgrams(pack(estimate(np.append(0, text), 3, size)))


@pytest.fixture(scope="module")
def words(symbols) -> WordUnigram:
    rng = np.random.default_rng(2)
    uses = {"".join(rng.choice(HANZI, rng.integers(1, 5))): int(rng.integers(1, 500)) for _ in range(600)}
    return WordUnigram(pack_words(uses, symbols), weight=0.7)


def random_grid(symbols: Symbols, seed: int = 3, batch: int = 12, length: int = 8, width: int = 5) -> Grid:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length + 1, batch)
    candidates = np.zeros((batch, length, width), np.int32)
    scores = np.full((batch, length, width), -np.inf)
    for row, end in enumerate(lengths):
        for place in range(end):
            count = rng.integers(1, width + 1)
            candidates[row, place, :count] = rng.choice(
                np.arange(2, len(symbols.hanzi)), count, replace=False
            )
            scores[row, place, :count] = -np.sort(rng.exponential(2.0, count))
    return Grid(candidates, scores, lengths)


@pytest.mark.parametrize("with_words", [False, True])
@pytest.mark.parametrize("with_user_words", [False, True])
def test_without_a_margin_it_finds_what_a_wide_beam_finds(
    symbols, ngrams, words, with_words, with_user_words
):
    grid, paths, bonus = random_grid(symbols), words if with_words else None, None
    if with_user_words:
        spans = [[] for _ in grid.lengths]
        for row, end in enumerate(grid.lengths):
            if end >= 3:
                ids = grid.candidates[row, 1:3, 0]
                spans[row].append(Span(1, UserWord(symbols.decode(ids), (), 1.5)))
        bonus = WordSearch(grid, spans, symbols)
    expected, totals = beam_search(
        grid.candidates, grid.scores, grid.lengths, 500, ngrams, bonus=bonus, paths=paths
    )
    found, scores = best_paths(grid, 500, np.inf, ngrams, paths, bonus)
    assert np.array_equal(found, expected[:, 0, : grid.lengths.max()])
    assert scores == pytest.approx(totals[:, 0], abs=1e-4)


def test_scores_are_those_of_the_parts(symbols, ngrams, words):
    grid = random_grid(symbols, seed=4)
    found, scores = best_paths(grid, 50, np.inf, ngrams, words)
    for row, end in enumerate(grid.lengths):
        path = np.concatenate([np.zeros(ngrams.history, int), found[row, :end], [PAD_ID]])
        own = sum(grid.scores[row, i][grid.candidates[row, i] == found[row, i]][0] for i in range(end))
        by_history = sum(
            float(ngrams.log_probs(path[None, i : i + 2], path[None, i + 2 : i + 3])[0, 0])
            for i in range(end + 1)
        )
        assert scores[row] == pytest.approx(own + by_history + words.worth(found[row : row + 1])[0], abs=1e-3)
        assert not found[row, end:].any()


def test_a_batch_is_searched_as_each_sentence_alone(symbols, ngrams, words):
    grid = random_grid(symbols, seed=5, batch=30)
    found, _ = best_paths(grid, 4, 3.0, ngrams, words)
    for row, end in enumerate(grid.lengths):
        alone = Grid(grid.candidates[row : row + 1, :end], grid.scores[row : row + 1, :end], np.array([end]))
        assert np.array_equal(best_paths(alone, 4, 3.0, ngrams, words)[0][0], found[row, :end])


def test_a_narrower_search_finds_nothing_better(symbols, ngrams, words):
    grid = random_grid(symbols, seed=6, batch=40)
    _, best = best_paths(grid, 500, np.inf, ngrams, words)
    worse = []
    for beam, margin in ((500, 1.0), (2, np.inf), (1, 0.0)):
        _, scores = best_paths(grid, beam, margin, ngrams, words)
        assert (scores <= best + 1e-6).all()
        worse.append(np.count_nonzero(scores < best - 1e-6))
    assert worse[2] > 0  # greedily, it misses some
