"""A confusion network and what each syllable may become in; the best paths through both, out: a beam search.

User words are paid for character by character, as in :mod:`model_language.search.grid_words`; here each
hypothesis has its own syllables, so it carries along which words it is in the middle of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_language.search.grid import HistoryModel, PathModel
from model_language.search.user_words import UserWord
from model_language.vocabulary.symbols import UNKNOWN_ID
from utils.hypotheses.confusion_network import NOTHING, ConfusionNetwork


@dataclass(frozen=True)
class RatedModel:
    """A history model and how it counts.

    Attributes:
        model: rates a token by those before it.
        weight: factor of its log-probabilities, and of the tokens' own scores.
        bonus: for each token.
        size: ids from here on are unknown to it.
        paths: rates what tokens make up together, if there is such a model; it counts as much.
    """

    model: HistoryModel
    weight: float
    bonus: float
    size: int
    paths: PathModel | None = None

    @property
    def seen(self) -> int:
        """How many tokens back matter."""
        return max(self.model.history, self.paths.reach if self.paths else 0)

    def gains(self, past: np.ndarray, states: np.ndarray, words: np.ndarray) -> np.ndarray:
        """What paths gain by a token, not weighted: past (N, seen), states (N, S), words (K,) → (N, K)."""
        rows = np.repeat(np.arange(len(past)), len(words))
        known = self._known(np.tile(words, len(past)))
        return self.paths.gains(self._known(past), states, rows, known).reshape(len(past), -1)

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Weighted: histories (N, history), words (N, K) → (N, K)."""
        return self.weight * self.model.log_probs(self._known(histories), self._known(words)).astype(float)

    def _known(self, ids: np.ndarray) -> np.ndarray:
        return np.where(ids < self.size, ids, UNKNOWN_ID)


# A word whose first so many characters have come: its number and how many.
_Active = frozenset[tuple[int, int]]
# (slot, syllable, token) → the words of which the token may be the next: number, characters before, word.
Steps = dict[tuple[int, str, int], list[tuple[int, int, UserWord]]]


@dataclass(frozen=True)
class Hypothesis:
    """A path so far.

    Attributes:
        tokens: ids.
        syllables: that they were taken for.
        slots: of the network, that they came from.
        score: all that counts, ``paid`` included.
        active: user words under way.
        paid: for the characters of words that aren't complete.
        state: (S,), of the model of paths, if there is one.
    """

    tokens: tuple[int, ...]
    syllables: tuple[str, ...]
    slots: tuple[int, ...]
    score: float
    active: _Active
    paid: float
    state: np.ndarray | None = None


def search_network(
    network: ConfusionNetwork,
    rows: Callable[[int, str], tuple[np.ndarray, np.ndarray]],
    model: RatedModel,
    steps: Steps,
    beam: int,
    recombine: bool,
) -> list[Hypothesis]:
    """Beam search through a network.

    Args:
        network: slots.
        rows: (slot, syllable) → ids that it may become, and their log-scores, both (K,).
        model: rates ids by those before them.
        steps: user words.
        beam: hypotheses kept after each slot.
        recombine: of those that can't be told apart any more keep the best; else of equal ones only.

    Returns:
        the best, best first.
    """
    history = model.model.history
    state = model.paths.begin(1)[0] if model.paths else None
    kept = [Hypothesis((), (), (), 0.0, frozenset(), 0.0, state)]
    for place, slot in enumerate(network.slots):
        options = [
            (syllable, log, *rows(place, syllable))
            for syllable, log in zip(slot.syllables, slot.log_posteriors, strict=True)
            if syllable != NOTHING
        ]
        grown: list[Hypothesis] = []
        if NOTHING in slot.syllables:
            log = slot.log_posteriors[slot.syllables.index(NOTHING)]
            grown += [replace(one, score=one.score + log) for one in kept]
        if options:
            grown += _extended(kept, place, options, model, steps, 2 * beam)
        kept = _best(grown, beam, model.seen if recombine else None)
    ends = model.log_probs(_histories(kept, history), np.zeros((len(kept), 1), int))[:, 0]
    finished = [
        replace(one, score=one.score + float(end) - one.paid) for one, end in zip(kept, ends, strict=True)
    ]
    return sorted(finished, key=lambda one: -one.score)


def _extended(
    kept: Sequence[Hypothesis],
    place: int,
    options: Sequence[tuple[str, float, np.ndarray, np.ndarray]],
    model: RatedModel,
    steps: Steps,
    count: int,
) -> list[Hypothesis]:
    """The best ``count`` continuations by one token of the slot."""
    ids = np.concatenate([found for _, _, found, _ in options])  # (C,)
    own = np.concatenate([log + model.weight * scores for _, log, _, scores in options]) + model.bonus
    source = np.repeat(np.arange(len(options)), [len(found) for _, _, found, _ in options])
    past = _histories(kept, model.seen)
    rated = model.log_probs(
        past[:, model.seen - model.model.history :], np.broadcast_to(ids, (len(kept), len(ids)))
    )  # (W, C)
    if model.paths:
        before = np.stack([one.state for one in kept])  # (W, S)
        gained = model.gains(past, before, ids)
        rated = rated + model.weight * gained
    paid = np.array([one.paid for one in kept])
    spread = np.array([one.score for one in kept])[:, None] - paid[:, None] + own + rated
    states: dict[tuple[int, int], tuple[_Active, float]] = {}
    for column, (number, token) in enumerate(
        zip(source.tolist(), ids.tolist(), strict=True) if steps else ()
    ):
        if found := steps.get((place, options[number][0], token)):
            for row, one in enumerate(kept):
                active, owed, earned = _advance(one.active, found)
                spread[row, column] += owed + earned
                states[row, column] = active, owed
    flat = spread.ravel()
    chosen = (
        np.argsort(-flat, kind="stable")[:count]
        if len(flat) <= count
        else np.argpartition(-flat, count)[:count]
    )
    result = []
    rows, columns = np.unravel_index(chosen, spread.shape)
    after = model.paths.follow(before[rows], gained[rows, columns]) if model.paths else [None] * len(rows)
    for row, column, state in zip(rows, columns, after, strict=True):
        extended, syllable = kept[row], options[source[column]][0]
        active, owed = states.get((int(row), int(column)), (frozenset(), 0.0))
        result.append(
            Hypothesis(
                (*extended.tokens, int(ids[column])),
                (*extended.syllables, syllable),
                (*extended.slots, place),
                float(spread[row, column]),
                active,
                owed,
                state,
            )
        )
    return result


def _advance(active: _Active, steps: Iterable[tuple[int, int, UserWord]]) -> tuple[_Active, float, float]:
    """Words under way after a token, what is paid for them, and what those that end with it earn."""
    going, owed, earned = set(), 0.0, 0.0
    for number, before, word in steps:
        if before and (number, before) not in active:
            continue
        if before + 1 == len(word.hanzi):
            earned += word.weight * len(word.hanzi)
        else:
            going.add((number, before + 1))
            owed = max(owed, word.weight * (before + 1))
    return frozenset(going), owed, earned


def _best(grown: list[Hypothesis], beam: int, history: int | None) -> list[Hypothesis]:
    """The best different hypotheses, best first."""
    kept: dict[object, Hypothesis] = {}
    for one in sorted(grown, key=lambda one: -one.score):
        if history is None:
            key: object = (one.tokens, one.syllables)
        else:
            key = (one.tokens[len(one.tokens) - min(history, len(one.tokens)) :], one.active)
        if key not in kept:
            kept[key] = one
            if len(kept) == beam:
                break
    return list(kept.values())


def _histories(kept: Sequence[Hypothesis], history: int) -> np.ndarray:
    """Last tokens, (W, history), 0 before the first."""
    result = np.zeros((len(kept), history), np.int64)
    for row, one in zip(result, kept, strict=True):
        last = one.tokens[len(one.tokens) - min(history, len(one.tokens)) :]
        row[history - len(last) :] = last
    return result
