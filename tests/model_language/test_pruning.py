"""Tests of pruned n-gram models: distributions, completeness, perplexity; counts against naive ones."""

from collections import Counter

import numpy as np
import pytest

from model_language.ngram import pruning
from model_language.ngram.kneser_ney import (
    BackoffModel,
    NgramTable,
    bits_needed,
    count_ngrams,
    estimate_counted,
    occurrences,
)
from model_language.ngram.pruning import prune_to
from tests.support.made_up_text import made_up_text

SIZE, ORDER = 40, 4


@pytest.fixture(scope="module")
def text() -> np.ndarray:
    return made_up_text(20_000, SIZE, seed=1)


@pytest.fixture(scope="module")
def model(text) -> tuple[list[NgramTable], list[np.ndarray]]:
    grams = count_ngrams(text, ORDER, SIZE)
    return estimate_counted(grams), occurrences(grams)


def ids_of(key: int, n: int, size: int) -> tuple[int, ...]:
    bits = bits_needed(size)
    return tuple(int(key) >> bits * position & ((1 << bits) - 1) for position in reversed(range(n)))


def ngrams_of(tables: list[NgramTable], size: int) -> list[set[tuple[int, ...]]]:
    return [{ids_of(key, n, size) for key in table.keys} for n, table in enumerate(tables, 1)]


def prune(tables: list[NgramTable], counts: list[np.ndarray], threshold: float) -> list[NgramTable]:
    """Remove n-grams that cost less than a threshold."""
    return pruning._above(tables, pruning._costs(tables, counts), threshold)


def test_occurrences_are_a_naive_count(text, model):
    tables, counts = model
    for n, (table, found) in enumerate(zip(tables, counts, strict=True), 1):
        windows = (tuple(text[i : i + n].tolist()) for i in range(len(text) - n + 1))
        expected = Counter(window for window in windows if 0 not in window[1:-1])
        if n == 1:
            expected[(0,)] -= 1  # the boundary before the first sentence does not end one
        assert {
            ids_of(k, n, SIZE): c for k, c in zip(table.keys, found.tolist(), strict=True) if c
        } == expected


@pytest.mark.parametrize("ngrams", [200, 3000])
def test_a_pruned_model_sums_to_one(model, ngrams):
    tables = prune_to(*model, ngrams)
    pruned = BackoffModel(tables, SIZE)
    rng = np.random.default_rng(0)
    contexts = [
        ids_of(key, 3, SIZE) for key in rng.choice(model[0][2].keys, 200)
    ]  # most of them lost n-grams
    drawn = rng.integers(2, SIZE, (200, 3))
    drawn[:50, 0] = drawn[:25, 1] = 0
    for histories in (np.array([context for context in contexts if context[-1]]), drawn):
        histories = histories[:, 3 - pruned.history :]
        logs = pruned.log_probs(histories, np.tile(np.arange(SIZE), (len(histories), 1)))
        np.testing.assert_allclose(np.exp(logs, dtype=np.float64).sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("threshold", [0.5, 4.0, 40.0])
def test_only_needed_ngrams_are_kept(model, threshold):
    """Against the definition, n-gram by n-gram: kept for its own cost, or needed by a kept n-gram."""
    tables, counts = model
    full = [
        {ids_of(k, n, SIZE): row for k, *row in zip(t.keys, t.log_probs, t.backoffs, c, strict=True)}
        for n, (t, c) in enumerate(zip(tables, counts, strict=True), 1)
    ]
    expected, needed = [], set()
    for n in range(ORDER, 1, -1):
        step = {
            ids: row[0] - full[n - 2][ids[:-1]][1] - full[n - 2][ids[1:]][0]
            for ids, row in full[n - 1].items()
        }
        stay = {ids for ids, size in step.items() if full[n - 1][ids][2] * abs(size) >= threshold} | needed
        needed = {ids[:-1] for ids in stay} | {ids[1:] for ids in stay}
        expected.insert(0, stay)
    pruned = prune(tables, counts, threshold)
    found = ngrams_of(pruned, SIZE)
    assert len(found[0]) == SIZE
    assert [len(ngrams) for ngrams in found[1:]] == [len(stay) for stay in expected if stay]
    assert found[1:] == [stay for stay in expected if stay]
    for n, table in enumerate(pruned):
        assert all(
            full[n][ids_of(k, n + 1, SIZE)][0] == p for k, p in zip(table.keys, table.log_probs, strict=True)
        )


@pytest.mark.parametrize("ngrams", [1, 100, 1000, 5000, 10**9])
def test_the_requested_number_is_kept(model, ngrams):
    tables, counts = model
    there = sum(len(table.keys) for table in tables[1:])
    left = sum(len(table.keys) for table in prune_to(tables, counts, ngrams)[1:])
    assert min(ngrams, there) <= left <= min(1.05 * ngrams + 6, there)  # ties, and the n-grams that one needs
