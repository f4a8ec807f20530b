"""Scores of each syllable's candidates (+ a history model) → the best hanzi sequences.

One search for both language models: the transformer scores each position by itself, the n-gram adds what
the hanzi before make likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from model_language.vocabulary.symbols import PAD_ID, Symbols

# Odd, its bits well mixed: keeps sequences of ids apart, but for one pair in 2^64.
_SPREAD = 0x1E3779B97F4A7C15


@dataclass(frozen=True)
class Conversion:
    """One way to write a sentence.

    Attributes:
        hanzi: one character a syllable.
        score: log-probability, natural logarithm.
    """

    hanzi: str
    score: float


class HistoryModel(Protocol):
    """Scores a hanzi by those before it."""

    history: int  # how many hanzi back it looks

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """histories (N, history) int, oldest first, words (N, K) int → (N, K); id 0 is the boundary."""


class PathModel(Protocol):
    """Scores what the hanzi of a path make up, with a state that each path carries along."""

    reach: int  # how many hanzi back it looks

    def begin(self, paths: int) -> np.ndarray:
        """The state of so many paths without a hanzi, (paths, S)."""

    def gains(self, past: np.ndarray, state: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """past (N, n ≥ reach), state (N, S), rows (E,) of these, words (E,) → log-scores (E,), 0 for id 0."""

    def follow(self, state: np.ndarray, gained: np.ndarray) -> np.ndarray:
        """States (N, S) → those after one hanzi more, for which (N,) was gained."""

    def worth(self, sequences: np.ndarray) -> np.ndarray:
        """What whole paths gain: (N, L) ids, 0 beyond a path's end → (N,)."""


class PathBonus(Protocol):
    """Rates user words on a path: what is added when a hypothesis takes a hanzi."""

    reach: int  # how many hanzi back it looks

    def gains(
        self, place: int, row: np.ndarray, past: np.ndarray, rows: np.ndarray, words: np.ndarray
    ) -> np.ndarray | None:
        """What hypotheses gain by a hanzi at ``place``.

        Args:
            row: (N,) int, rising: of each hypothesis its sentence.
            past: (N, n) hanzi before ``place``, n ≥ reach.
            rows: (E,) int, rising: which hypothesis goes on.
            words: (E,) with which hanzi.

        Returns:
            (E,); None: there is nothing to gain.
        """


@dataclass(frozen=True)
class Grid:
    """What a model says of a batch of sentences before any search.

    Attributes:
        candidates: (B, L, K) int32, hanzi ids; the places in use come first, the rest is 0.
        scores: (B, L, K) float, log-scores of the candidates by themselves; -inf at empty places.
        lengths: (B,) int, syllables of each sentence, ≥ 1.
    """

    candidates: np.ndarray
    scores: np.ndarray
    lengths: np.ndarray


class Searched(Protocol):
    """A converter as its search sees it."""

    symbols: Symbols
    history_model: HistoryModel | None
    path_model: PathModel | None
    batch_syllables: int
    beam: int

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """The candidates of each syllable and their log-scores; no sentence may be empty."""


def narrowed(grid: Grid, choices: int, hopeless: float = np.inf, expected: np.ndarray | None = None) -> Grid:
    """The most promising candidates of each syllable only, the best first.

    Args:
        grid: all of them.
        choices: how many to keep, at most.
        hopeless: those so much less promising than the best one are left out too.
        expected: (B, L, K), how promising each is; None: its score.
    """
    promise = grid.scores if expected is None else expected
    kept = min(choices, promise.shape[-1])
    best = np.argpartition(-promise, kept - 1, axis=-1)[..., :kept]
    order = np.argsort(-np.take_along_axis(promise, best, axis=-1), axis=-1)
    best = np.take_along_axis(best, order, axis=-1)
    promise = np.take_along_axis(promise, best, axis=-1)
    out = ~(promise >= promise[..., :1] - hopeless) | np.isneginf(promise)
    candidates = np.where(out, PAD_ID, np.take_along_axis(grid.candidates, best, axis=-1))
    return Grid(
        candidates, np.where(out, -np.inf, np.take_along_axis(grid.scores, best, axis=-1)), grid.lengths
    )


def length_batches(lengths: Sequence[int], budget: int) -> list[np.ndarray]:
    """Indices of sentences of similar length, longest × count ≤ ``budget`` (one sentence may exceed it)."""
    order = np.argsort(np.asarray(lengths), kind="stable")
    batches, start = [], 0
    for stop in range(1, len(order) + 1):
        # Ascending order: the next sentence would be the longest of the batch.
        if stop == len(order) or (stop - start + 1) * lengths[order[stop]] > budget:
            batches.append(order[start:stop])
            start = stop
    return batches


def pad_rows(rows: Sequence[np.ndarray], multiple: int = 1) -> np.ndarray:
    """Arrays (L,) of different length → (B, longest, rounded up to ``multiple``) int32, filled with 0."""
    longest = max(map(len, rows))
    padded = np.full((len(rows), -(-longest // multiple) * multiple), PAD_ID, np.int32)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded


def beam_search(
    candidates: np.ndarray,
    scores: np.ndarray,
    lengths: np.ndarray,
    beam: int,
    model: HistoryModel | None = None,
    recombine: bool = True,
    bonus: PathBonus | None = None,
    paths: PathModel | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best sequences of candidates.

    Args:
        candidates: (B, L, K) int32, hanzi ids, filled with 0.
        scores: (B, L, K) float, log-scores of the candidates by themselves; -inf at empty places.
        lengths: (B,) int, syllables of each sentence, ≥ 1.
        beam: hypotheses kept after each syllable.
        model: adds log P(hanzi | hanzi before) and the end of the sentence.
        recombine: of hypotheses that ``model`` and ``bonus`` can't tell apart any more keep the best. It
            makes room in the beam (with a wide enough one the search is Viterbi's, exact) but hides
            alternatives. What ``paths`` knows of hanzi beyond its reach is neglected.
        bonus: adds what user words are worth.
        paths: adds what it makes of whole paths.

    Returns:
        sequences (B, W, L) int32, 0 beyond a sentence's length, and their scores (B, W) float64, best
        first, W ≤ beam; -inf marks places for which there was no hypothesis.
    """
    lengths = np.asarray(lengths)
    batch, length, _ = candidates.shape
    history = model.history if model else 0
    # Hanzi back that can still matter.
    seen = max(history, bonus.reach if bonus else 0, paths.reach if paths else 0)
    end = 1 if model else 0  # one place more: the model scores the end of the sentence there
    past = np.full((batch, 1, seen), PAD_ID, np.int32)  # 0s: the beginning
    totals = np.zeros((batch, 1))
    state = paths.begin(batch)[:, None] if paths else None
    steps: list[tuple[np.ndarray, np.ndarray]] = []  # hanzi and origin of each hypothesis, (B, W)
    for place in range(length + end):
        words, gains = _options(candidates, scores, lengths, place)  # (B, K)
        spread = totals[:, :, None] + gains[:, None, :]  # (B, W, K)
        if model:
            spread += _history_scores(model, past[:, :, seen - history :], words, scored=place <= lengths)
        flat = _flat(past, words) if bonus or paths else ()
        if bonus and (earned := bonus.gains(place, *flat)) is not None:
            spread += earned.reshape(spread.shape)
        if paths:
            gained = paths.gains(flat[1], state.reshape(len(flat[1]), -1), *flat[2:]).reshape(spread.shape)
            spread += gained
        past, totals, added, origins, chosen = _keep_best(past, spread, words, beam, bool(seen * recombine))
        if paths:
            gained = np.take_along_axis(gained.reshape(batch, -1), chosen, axis=1)
            state = np.take_along_axis(state, origins[:, :, None], axis=1)
            state = paths.follow(state.reshape(-1, state.shape[2]), gained.ravel()).reshape(state.shape)
        steps.append((added, origins))
    return _traced(steps)[:, :, :length], totals


def n_best(model: Searched, sentence: Sequence[str], n: int) -> list[Conversion]:
    """Up to ``n`` ways to write one sentence, the most probable first."""
    if not len(sentence):
        return [Conversion("", 0.0)]
    grid, history = model.grid([sentence]), model.history_model
    beam = max(model.beam, 4 * n) if history else n
    sequences, scores = beam_search(
        grid.candidates, grid.scores, grid.lengths, beam, history, recombine=False, paths=model.path_model
    )
    found = zip(sequences[0, :n, : len(sentence)], scores[0, :n], strict=True)
    return [Conversion(model.symbols.decode(ids), float(score)) for ids, score in found if score > -np.inf]


def _traced(steps: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Sequences (B, W, L) of the last hypotheses from what each step chose, (B, W), and which it extended."""
    place = np.broadcast_to(np.arange(steps[-1][0].shape[1]), steps[-1][0].shape)
    sequences = np.empty((*place.shape, len(steps)), np.int32)
    for at in reversed(range(len(steps))):
        words, origins = steps[at]
        sequences[:, :, at] = np.take_along_axis(words, place, axis=1)
        place = np.take_along_axis(origins, place, axis=1)
    return sequences


def _options(
    candidates: np.ndarray, scores: np.ndarray, lengths: np.ndarray, place: int
) -> tuple[np.ndarray, np.ndarray]:
    """Hanzi and scores, both (B, K), to choose from at ``place``; after a sentence's end 0, at no cost."""
    active = place < lengths
    if not active.any():
        return np.full((len(lengths), 1), PAD_ID), np.zeros((len(lengths), 1))
    widest = int((candidates[active, place] > PAD_ID).sum(axis=1).max())
    words = np.where(active[:, None], candidates[:, place, :widest], PAD_ID)
    gains = np.where(active[:, None], scores[:, place, :widest], -np.inf)
    gains[~active, 0] = 0.0
    return words, gains


def _history_scores(
    model: HistoryModel, past: np.ndarray, words: np.ndarray, scored: np.ndarray
) -> np.ndarray:
    """log P(word | past): past (B, W, history), words (B, K) → (B, W, K); 0 where not ``scored`` (B,)."""
    batch, width, history = past.shape
    result = np.zeros((batch, width, words.shape[1]))
    followers = np.repeat(words[scored], width, axis=0)  # (B' · W, K)
    found = model.log_probs(past[scored].reshape(-1, history), followers)
    result[scored] = found.reshape(-1, width, words.shape[1])
    return result


def _flat(past: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, ...]:
    """past (B, W, n), words (B, K) → row, past, rows, words of :class:`PathBonus`, N = B · W, E = N · K."""
    batch, width, seen = past.shape
    rows = np.repeat(np.arange(batch * width), words.shape[1])
    followers = np.repeat(words, width, axis=0).ravel()
    return np.repeat(np.arange(batch), width), past.reshape(batch * width, seen), rows, followers


def _keep_best(
    past: np.ndarray, spread: np.ndarray, words: np.ndarray, beam: int, recombine: bool
) -> tuple[np.ndarray, ...]:
    """Extend by the best of (B, W, K); with ``recombine``, of those with the same past only the best.

    Returns:
        the last hanzi of each hypothesis kept, as many as in ``past`` (B, W, n), and, all (B, W'), its score,
        its new hanzi, which one it extends, and its place in (B, W · K).
    """
    batch, width, count = spread.shape
    flat = spread.reshape(batch, width * count)
    # Twice the beam, so that enough are left after recombination.
    keep = min(flat.shape[1], 2 * beam if recombine else beam)
    chosen = _highest(spread, keep)
    values = np.take_along_axis(flat, chosen, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    chosen, values = np.take_along_axis(chosen, order, axis=1), np.take_along_axis(values, order, axis=1)
    origins, added = chosen // count, np.take_along_axis(words, chosen % count, axis=1)
    extended = np.take_along_axis(past, origins[:, :, None], axis=1)  # (B, keep, n)
    extended = np.concatenate([extended, added[:, :, None]], axis=2)[:, :, 1:]
    if recombine:
        values = _drop_twins(extended, values)
        order = np.argsort(-values, axis=1, kind="stable")[:, :beam]
        values, origins, added, chosen = (
            np.take_along_axis(one, order, axis=1) for one in (values, origins, added, chosen)
        )
        extended = np.take_along_axis(extended, order[:, :, None], axis=1)
    return extended, values, added, origins, chosen


def _highest(spread: np.ndarray, keep: int) -> np.ndarray:
    """Flat indices (B, keep) of the highest of (B, W, K), ascending.

    Hanzi that the training text never had tie exactly, and argpartition takes any of them, depending on the
    rest of the batch. A step far below the scores' precision prefers the earlier one.
    """
    batch, width, count = spread.shape
    if keep == width * count:
        return np.broadcast_to(np.arange(keep), (batch, keep))
    step = 2e-8 * np.arange(width)[:, None] + 1e-10 * np.arange(count)
    chosen = np.argpartition((step - spread).reshape(batch, -1), keep - 1, axis=1)[:, :keep]
    return np.sort(chosen, axis=1)


def _drop_twins(states: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Set to -inf the values (B, W), best first, of states (B, W, n) that a better one has already."""
    keys = hashed_rows(states)
    same = keys[:, :, None] == keys[:, None, :]  # (B, W, W)
    same &= np.tri(keys.shape[1], k=-1, dtype=bool)
    return np.where(same.any(axis=2), -np.inf, values)


def hashed_rows(states: np.ndarray, first: np.ndarray | int = 0) -> np.ndarray:
    """One number for each row of states (…, n ≥ 1) int, with ``first`` (…,) before it: a hash, (…,) int64."""
    keys = np.zeros(states.shape[:-1], np.int64) + first
    for column in range(states.shape[-1]):
        keys = keys * _SPREAD + states[..., column]
    return keys
