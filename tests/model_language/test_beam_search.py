"""Tests of the beam search against all paths, of batches against single sentences, of narrow beams."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from model_language.ngram.kneser_ney import estimate
from model_language.ngram.packed import PackedNgrams, pack
from model_language.ngram.words import WordUnigram, pack_words
from model_language.search.beam import beam_search
from model_language.search.grid import Grid
from model_language.search.user_words import Span, UserWord
from model_language.search.word_bonus import GridWords
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
        for position in range(end):
            count = rng.integers(1, width + 1)
            candidates[row, position, :count] = rng.choice(
                np.arange(2, len(symbols.hanzi)), count, replace=False
            )
            scores[row, position, :count] = -np.sort(rng.exponential(2.0, count))
    return Grid(candidates, scores, lengths)


def all_paths(grid: Grid, row: int) -> np.ndarray:
    """Every sequence of candidates of a sentence, (paths, syllables)."""
    choices = [ids[ids > PAD_ID] for ids in grid.candidates[row, : grid.lengths[row]]]
    return np.array(list(itertools.product(*choices)))


def path_scores(grid: Grid, row: int, sequences: np.ndarray, ngrams: PackedNgrams) -> np.ndarray:
    """The candidates' own scores and the n-gram model's, of all paths (paths, syllables) of a sentence."""
    length = sequences.shape[1]
    own = np.zeros(len(sequences))
    for position in range(length):
        columns = (sequences[:, position, None] == grid.candidates[row, position]).argmax(axis=1)
        own += grid.scores[row, position, columns]
    whole = np.pad(sequences, ((0, 0), (ngrams.history, 1)))
    for position in range(length + 1):
        end = position + ngrams.history
        own += ngrams.log_probs(whole[:, position:end], whole[:, end, None])[:, 0]
    return own


@pytest.mark.parametrize("with_words", [False, True])
@pytest.mark.parametrize("with_user_words", [False, True])
@pytest.mark.parametrize("n_best", [1, 7])
def test_without_a_margin_it_finds_the_best_of_all_paths(
    symbols, ngrams, words, with_words, with_user_words, n_best
):
    """Scores of all paths by brute force: candidates, n-grams, words of a dictionary and of a user."""
    grid, bonus = random_grid(symbols, length=6), None
    spans = [[] for _ in grid.lengths]
    if with_user_words:
        for row, end in enumerate(grid.lengths):
            if end >= 3:
                ids = grid.candidates[row, 1:3, 0]
                spans[row].append(Span(1, UserWord(symbols.decode(ids), (), 1.5)))
        bonus = GridWords(grid, spans, symbols)
    found, scores = beam_search(
        grid, 20_000, history=ngrams, paths=words if with_words else None, bonus=bonus, n_best=n_best
    )
    assert found.shape == (len(grid.lengths), n_best, grid.lengths.max())
    for row, end in enumerate(grid.lengths):
        sequences = all_paths(grid, row)
        expected = path_scores(grid, row, sequences, ngrams)
        if with_words:
            expected += words.scores(sequences)
        for span in spans[row]:
            ids = symbols.encode_hanzi(span.word.hanzi)
            expected += 2 * 1.5 * (sequences[:, span.start : span.end] == ids).all(axis=1)
        best = np.argsort(-expected, kind="stable")[:n_best]
        assert np.array_equal(found[row, 0, :end], sequences[best[0]])
        assert not found[row, : len(best), end:].any()
        assert scores[row, : len(best)] == pytest.approx(expected[best], abs=1e-4)
        assert (scores[row, len(best) :] == -np.inf).all()


def test_a_batch_is_searched_as_each_sentence_alone(symbols, ngrams, words):
    grid = random_grid(symbols, seed=5, batch=30)
    found, _ = beam_search(grid, 4, 3.0, history=ngrams, paths=words)
    for row, end in enumerate(grid.lengths):
        alone = Grid(grid.candidates[row : row + 1, :end], grid.scores[row : row + 1, :end], np.array([end]))
        assert np.array_equal(
            beam_search(alone, 4, 3.0, history=ngrams, paths=words)[0][0], found[row, :, :end]
        )


@pytest.mark.parametrize("n_best", [2, 5])
def test_several_results_include_the_best_of_a_search_with_less_room(symbols, ngrams, words, n_best):
    """With ``n_best`` times the beam, similar hypotheses do not displace others; no path is found twice."""
    grid = random_grid(symbols, seed=8, batch=40)
    for beam in (1, 2, 4):
        _, best = beam_search(grid, beam, 4.0, history=ngrams, paths=words)
        found, scores = beam_search(grid, n_best * beam, 4.0, history=ngrams, paths=words, n_best=n_best)
        assert (scores[:, 0] >= best[:, 0] - 1e-9).all()
        assert (scores[:, 1:] <= scores[:, :-1]).all()
        for paths, own in zip(found, scores, strict=True):
            existing = [tuple(path) for path in paths[own > -np.inf]]
            assert len(set(existing)) == len(existing)


def test_effort_leaves_out_unlikely_candidates_after_bad_hypotheses(symbols, ngrams, words):
    """Without a limit nothing is left out; with 0 the likeliest candidates follow each other."""
    grid = random_grid(symbols, seed=7, batch=40)
    unlikely = np.cumsum(np.where(grid.candidates > PAD_ID, 1.0, np.inf), axis=2) - 1.0
    rated = replace(grid, unlikely=unlikely)
    models = {"history": ngrams, "paths": words}
    paths, best = beam_search(grid, 50, **models)
    every, scores = beam_search(rated, 50, effort=1e3, **models)
    assert np.array_equal(every, paths) and np.array_equal(scores, best)
    few, scores = beam_search(rated, 50, effort=0.0, **models)
    for row, end in enumerate(grid.lengths):
        assert np.array_equal(few[row, 0, :end], grid.candidates[row, :end, 0])
    some = beam_search(rated, 50, effort=2.5, **models)[1]
    assert (scores <= some + 1e-9).all() and (some <= best + 1e-9).all()
    assert (some > scores).any()
