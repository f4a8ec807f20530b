"""The lattice of a search through a confusion network, and its n best paths.

A search that recombines paths keeps the best of those that its models cannot distinguish any more; the
lattice keeps the arcs of all of them. The n best paths are found backwards from the end, by an A* search
whose estimate is exact: the score of the best path to each node (Soong & Huang 1991, "A Tree-Trellis Based
Fast Search for Finding the N Best Sentence Hypotheses").
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from utils.arrays import softmax

_TRIED = 20  # limit of the partial paths that are expanded for each slot and wanted path, on average
_DIGITS = 6  # of scores that are compared: paths that differ by rounding errors only are equally good

Arc = tuple[int, int, int, float]
"""An arc of the lattice: the path before a slot, the token that is added (-1 for none), the index of its
syllable, and the score of the path after the slot."""


@dataclass(frozen=True)
class HanziPath:
    """A path through a network.

    Attributes:
        tokens: ids.
        syllables: the syllable of each token.
        slots: the slot of each token.
        score: log-score.
    """

    tokens: tuple[int, ...]
    syllables: tuple[str, ...]
    slots: tuple[int, ...]
    score: float


@dataclass(frozen=True, eq=False)
class NetworkPaths:
    """The P best paths that a search has found through a network, the best first.

    Attributes:
        tokens: (slots, P) int64; -1 for none.
        options: (slots, P) int64, index of the token's syllable.
        syllables: in each slot the syllables by this index.
        scores: (P,) float64, log-scores.
    """

    tokens: np.ndarray
    options: np.ndarray
    syllables: list[list[str]]
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[HanziPath]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> HanziPath:
        tokens, options = self.tokens[:, index], self.options[:, index]
        slots = tuple(np.flatnonzero(tokens >= 0).tolist())
        syllables = tuple(self.syllables[slot][options[slot]] for slot in slots)
        return HanziPath(tuple(tokens[list(slots)].tolist()), syllables, slots, float(self.scores[index]))

    def confidence(self, path: HanziPath) -> tuple[float, ...]:
        """For each token of ``path`` the fraction of all paths, by e^score, that have it in its slot."""
        have = self.tokens[list(path.slots)] == np.array(path.tokens, int)[:, None]
        return tuple(np.minimum(have @ softmax(self.scores), 1.0).tolist())

    def rescored(self, scores: np.ndarray) -> "NetworkPaths":
        """The same paths with other scores (P,), in their order."""
        order = np.argsort(-scores, kind="stable")
        return NetworkPaths(self.tokens[:, order], self.options[:, order], self.syllables, scores[order])


@dataclass(frozen=True, eq=False)
class LatticeSlot:
    """The arcs from the paths before a slot of a confusion network to the N paths after it.

    Attributes:
        syllables: of all options of the slot.
        before: scores of the paths before the slot.
        starts: (N + 1) indices, where the arcs to each path after the slot begin, the best first.
        arcs: all arcs.
    """

    syllables: list[str]
    before: list[float]
    starts: list[int]
    arcs: list[Arc]


_Rest = tuple[Any, ...]  # token and syllable index in a slot, then the rest of the path; empty at its end


def best_paths(
    slots: Sequence[LatticeSlot], ended: Iterable[tuple[int, float, float]], n_best: int
) -> NetworkPaths:
    """The best paths with different tokens or syllables.

    Args:
        slots: the lattice, which may go on with other paths than those that end.
        ended: row, score and score of the end of each path after the last slot.
        n_best: number of paths.
    """
    ended = list(ended)
    # Minus the rounded score of the best path with this rest, slots before the rest, row of the path there,
    # score of the rest, the score itself, and the rest. Of equally good paths the longest rest is next:
    # otherwise all their parts would be expanded before the first of them is complete.
    heap: list[tuple[float, int, int, float, float, _Rest]] = [
        (round(-score - end, _DIGITS), len(slots), row, end, score + end, ()) for row, score, end in ended
    ]
    heapq.heapify(heap)
    found: dict[tuple[tuple[int, str], ...], tuple[float, _Rest]] = {}
    for _ in range(n_best * (len(slots) + 1) * _TRIED):
        if not heap or len(found) == n_best:
            break
        _, number, row, after, total, rest = heapq.heappop(heap)
        if not number:
            found.setdefault(_tokens_with_syllables(rest, slots), (total, rest))
            continue
        slot = slots[number - 1]
        for origin, token, option, score in slot.arcs[slot.starts[row] : slot.starts[row + 1]]:
            gain, total = after + score - slot.before[origin], score + after
            rounded = round(-total, _DIGITS)
            heapq.heappush(heap, (rounded, number - 1, origin, gain, total, (token, option, rest)))
    paths = list(found.values()) or [_best_path(slots, ended)]
    return _listed(sorted(paths, key=lambda path: -path[0]), [slot.syllables for slot in slots])


def _best_path(
    slots: Sequence[LatticeSlot], ended: Iterable[tuple[int, float, float]]
) -> tuple[float, _Rest]:
    """The best path alone, by the best arc to each of its nodes."""
    row, score, end = max(ended, key=lambda path: path[1] + path[2])
    rest: _Rest = ()
    for slot in reversed(slots):
        row, token, option, _ = slot.arcs[slot.starts[row]]
        rest = token, option, rest
    return score + end, rest


def _tokens_with_syllables(rest: _Rest, slots: Sequence[LatticeSlot]) -> tuple[tuple[int, str], ...]:
    """The tokens of a path with their syllables."""
    result = []
    for slot in slots:
        token, option, rest = rest
        if token >= 0:
            result.append((token, slot.syllables[option]))
    return tuple(result)


def _listed(paths: Sequence[tuple[float, _Rest]], syllables: list[list[str]]) -> NetworkPaths:
    """Paths as arrays."""
    tokens, options = np.zeros((2, len(syllables), len(paths)), np.int64)
    for number, (_, rest) in enumerate(paths):
        for slot in range(len(syllables)):
            tokens[slot, number], options[slot, number], rest = rest
    return NetworkPaths(tokens, options, syllables, np.array([score for score, _ in paths]))
