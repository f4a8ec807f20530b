"""Candidates of a batch of sentences in; the best hanzi of each out, by a beam as wide as there is doubt.

A hypothesis far behind the best one of its sentence is dropped, however few there are; so sentences have
different numbers of them, and these lie one behind the other in flat arrays. It finds what
:func:`model_language.search.grid.beam_search` finds with a beam that wide, in a fraction of the time.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from model_language.search.grid import Grid, PathBonus, PathModel, hashed_rows
from model_language.vocabulary.symbols import PAD_ID


class RaggedHistory(Protocol):
    """Scores a hanzi by those before it."""

    history: int  # how many hanzi back it looks

    def rated(self, histories: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """histories (N, history), oldest first, rows (E,) of these, words (E,) → (E,); id 0: boundary."""


def best_paths(
    grid: Grid,
    beam: int,
    margin: float,
    model: RaggedHistory,
    paths: PathModel | None = None,
    bonus: PathBonus | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best sequence of each sentence.

    Args:
        grid: candidates.
        beam: hypotheses kept after each syllable, at most. Of those that ``model`` and ``bonus``, and
            ``paths`` within its reach, can't tell apart any more only the best is kept.
        margin: how far behind the best one they may be.
        model: adds log P(hanzi | hanzi before) and the end of the sentence.
        paths: adds what it makes of whole paths.
        bonus: adds what user words are worth.

    Returns:
        sequences (B, longest) int32, 0 beyond a sentence's length, and their scores (B,) float64.
    """
    counts, words_at, scores_at = _ended(grid)
    batch, places = counts.shape
    seen = max(model.history, *(one.reach for one in (paths, bonus) if one), 0)
    # Of each hypothesis: its sentence (rising), last hanzi, score, state.
    row, past, total = np.arange(batch), np.zeros((batch, seen), np.int64), np.zeros(batch)
    state = paths.begin(batch) if paths else None
    steps = []
    for place in range(places):
        grown = counts[:, place].take(row)
        source = np.repeat(
            np.arange(len(row)), grown
        )  # (E,) of each continuation, which hypothesis it extends
        which = np.arange(len(source)) - np.repeat(np.cumsum(grown) - grown, grown)
        rows = row.take(source)
        at = rows * words_at.shape[2] + which
        words = words_at[place].take(at)
        score = total.take(source) + scores_at[place].take(at)
        score += model.rated(past[:, seen - model.history :], source, words)
        if paths:
            gained = paths.gains(past, state, source, words)
            score += gained
        if bonus and (earned := bonus.gains(place, row, past, source, words)) is not None:
            score += earned
        kept = _promising(rows, score, margin)
        kept = kept.take(np.lexsort((-score.take(kept), rows.take(kept))))  # the best first, row by row
        origin = source.take(kept)
        extended = np.concatenate([past.take(origin, axis=0)[:, 1:], words.take(kept)[:, None]], axis=1)
        first = _first_of_twins(rows.take(kept), extended, beam)
        kept, origin, past = kept.take(first), origin.take(first), extended.take(first, axis=0)
        row, total = rows.take(kept), score.take(kept)
        if paths:
            state = paths.follow(state.take(origin, axis=0), gained.take(kept))
        steps.append((row, words.take(kept), origin, total))
    return _traced(steps, np.asarray(grid.lengths), batch)


def _ended(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many candidates there are, (B, longest + 1), and these with their scores, (longest + 1, B, K).

    Behind its last syllable a sentence has one, the boundary; then none.
    """
    batch, _, width = grid.candidates.shape
    lengths = np.asarray(grid.lengths)
    length = lengths.max()
    counts = np.zeros((batch, length + 1), np.int64)
    counts[:, :length] = (grid.candidates[:, :length] > PAD_ID).sum(axis=2)
    counts[np.arange(length + 1) >= lengths[:, None]] = 0
    counts[np.arange(batch), lengths] = 1
    words = np.zeros((length + 1, batch, width), np.int64)
    scores = np.zeros((length + 1, batch, width), np.float64)
    words[:length] = grid.candidates[:, :length].swapaxes(0, 1)
    scores[:length] = grid.scores[:, :length].swapaxes(0, 1)
    words[lengths, np.arange(batch), 0] = PAD_ID
    scores[lengths, np.arange(batch), 0] = 0.0
    return counts, words, scores


def _promising(rows: np.ndarray, score: np.ndarray, margin: float) -> np.ndarray:
    """Places of scores (E,) not further than the margin behind the best of their row (rising)."""
    starts, sizes = _groups(rows)
    best = np.maximum.reduceat(score, starts)
    return (score >= np.repeat(best - margin, sizes)).nonzero()[0]


def _first_of_twins(rows: np.ndarray, states: np.ndarray, beam: int) -> np.ndarray:
    """Places of the first ``beam`` different states (N, n) of each row (rising)."""
    keys = hashed_rows(states, rows)
    order = keys.argsort(kind="stable")
    first = np.sort(order.take(_groups(keys.take(order))[0]))
    left = rows.take(first)
    starts, sizes = _groups(left)
    if sizes.max() <= beam:
        return first
    rank = np.arange(len(left)) - np.repeat(starts, sizes)
    return first[rank < beam]


def _groups(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where runs of equal values (n ≥ 1,) begin, and how long each is."""
    begins = np.empty(len(values), bool)
    begins[0] = True
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    starts = begins.nonzero()[0]
    sizes = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=sizes[:-1])
    sizes[-1] = len(values) - starts[-1]
    return starts, sizes


def _traced(
    steps: list[tuple[np.ndarray, ...]], lengths: np.ndarray, batch: int
) -> tuple[np.ndarray, np.ndarray]:
    """The words (B, L) and the score (B,) of the first hypothesis with which each sentence ends."""
    result, scores = np.zeros((batch, len(steps)), np.int32), np.zeros(batch)
    at = np.zeros(batch, np.int64)  # of each sentence, which hypothesis it is
    for place in reversed(range(len(steps))):
        row, words, origins, totals = steps[place]
        ends = np.flatnonzero(lengths == place)
        at[ends] = np.searchsorted(row, ends)
        scores[ends] = totals.take(at.take(ends))
        here = np.flatnonzero(lengths >= place)
        chosen = at.take(here)
        result[here, place] = words.take(chosen)
        at[here] = origins.take(chosen)
    return result[:, :-1], scores
