"""Scores a path with one hanzi exchanged, for many positions and candidates together.

The models score a hanzi given what is before it, so an exchange changes scores from its position on. They are
summed up to where they do not depend on the exchanged hanzi any more. The explanation of a conversion takes
its reasons from the differences between the candidates of a position
(:mod:`model_language.converters.explanation`).

In both functions ``path`` (L,) int64 are the ids of a path, and ``positions`` (E,) int64, ascending, and
``hanzi`` (E,) int64 are the exchanges.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from model_language.search.grid import HistoryModel, PathModel

# Hanzi after the exchanged one that are divided into words again at most.
_DIVISION_CONTEXT = 24


def history_scores(
    model: HistoryModel, path: np.ndarray, positions: np.ndarray, hanzi: np.ndarray
) -> np.ndarray:
    """The log-probabilities that depend on the exchanged hanzi, that of the end included: (E,) float64."""
    total, rows = np.zeros(len(positions)), np.arange(len(positions))
    for step in range(model.history + 1):
        rows = rows[positions[rows] + step <= len(path)]
        past, tokens = _read(path, positions[rows], hanzi[rows], step, model.history)
        total[rows] += model.score(past, np.arange(len(rows)), tokens)
    return total


def word_scores(
    model: PathModel, path: np.ndarray, before: np.ndarray, positions: np.ndarray, hanzi: np.ndarray
) -> np.ndarray:
    """The gains of the words from the exchanged hanzi on, (E,) float64.

    A sum ends where all candidates of its position have the same state: from there on their gains are equal.
    Only differences between the candidates of a position are meaningful.

    Args:
        before: (L, S), the result of :func:`states_before`.
    """
    total, rows = np.zeros(len(positions)), np.arange(len(positions))
    states = before.take(positions, axis=0)
    for step in range(_DIVISION_CONTEXT + 1):
        inside = positions[rows] + step < len(path)
        rows, states = rows[inside], states[inside]
        past, tokens = _read(path, positions[rows], hanzi[rows], step, model.reach)
        gained = model.gains(past, states, np.arange(len(rows)), tokens)
        total[rows] += gained
        states = model.next_states(states, gained)
        if step >= model.reach:  # the next hanzi does not depend on the exchanged one, but for the state
            own = positions[rows]
            differ = (states != states.take(np.searchsorted(own, own), axis=0)).any(axis=1)
            open_ = np.isin(own, own[differ])
            rows, states = rows[open_], states[open_]
        if not len(rows):
            break
    return total


def states_before(model: PathModel, path: np.ndarray) -> np.ndarray:
    """The state of a path before each of its hanzi: (L, S)."""
    states, row = [model.initial_states(1)], np.zeros(1, np.int64)
    past, tokens = _read(path, np.arange(len(path)), path, 0, model.reach)
    for position in range(len(path) - 1):
        gained = model.gains(past[position, None], states[-1], row, tokens[position, None])
        states.append(model.next_states(states[-1], gained))
    return np.concatenate(states)


def _read(
    path: np.ndarray, positions: np.ndarray, hanzi: np.ndarray, step: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is ``step`` hanzi after an exchange: the ``width`` hanzi before (E, width), and the hanzi (E,).

    Before the beginning and at the end of the path is id 0, the boundary.
    """
    read = sliding_window_view(np.pad(path, (width, 1)), width + 1)[positions + step]  # a copy
    if step <= width:
        read[:, width - step] = hanzi
    return np.ascontiguousarray(read[:, :-1]), read[:, -1].copy()
