"""Beam search through a confusion network of syllables and the hanzi that each of them may become."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_language.search.beam import HASH_FACTOR
from model_language.search.grid import HistoryModel, MaskedHistory, MaskedPaths, PathModel
from model_language.search.word_bonus import NetworkWords, Progress
from utils.hypotheses.confusion_network import NOTHING, ConfusionNetwork

PREVIEWED = 8
"""Continuations that all models rate, as a multiple of those that are kept: the best by a quick preview.

With 8, the results for 30 recordings are those without a preview, in half of the time."""

_TRIED = 4  # continuations that are previewed first, as a multiple of those that are rated

Option = tuple[str, float, np.ndarray, np.ndarray]
"""A syllable of a slot, its log-posterior, the ids that it may become, and their log-scores, both (K,)."""
Candidates = Callable[[int, str], tuple[np.ndarray, np.ndarray]]
"""(slot, syllable) → ids that the syllable may become, and their log-scores, both (K,)."""
Preview = Callable[[np.ndarray], np.ndarray | None]
"""Next words (K,) → log-probabilities after each of N paths, (N, K); None: there is no preview."""


class TokenModel:
    """The language models of a search through a network, and their weights.

    Args:
        history: scores a token given the tokens before it.
        weight: factor of all log-probabilities of tokens.
        bonus: added for each token.
        size: ids from here on are unknown to the models; None: there are none.
        paths: scores the words that tokens form; None: no such model.
    """

    def __init__(
        self,
        history: HistoryModel,
        weight: float,
        bonus: float,
        size: int | None = None,
        paths: PathModel | None = None,
    ):
        self._history, self.weight, self.bonus = (
            MaskedHistory(history, size) if size else history,
            weight,
            bonus,
        )
        self.paths = MaskedPaths(paths, size) if paths and size else paths
        self.seen = max(history.history, paths.reach if paths else 0)
        """Number of preceding tokens that matter."""

    def log_probs(self, past: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Weighted log-probabilities: past (N, seen), rows (E,) of it, next words (E,) → (E,) float64."""
        histories = past[:, past.shape[1] - self._history.history :]
        return self.weight * self._history.score(histories, rows, words).astype(float)

    def preview(self, past: np.ndarray) -> Preview:
        """A quick approximation of :meth:`log_probs` for past (N, seen ≥ 1)."""
        last, rows = np.unique(past[:, -1], return_inverse=True)  # most paths share their last token

        def previewed(words: np.ndarray) -> np.ndarray | None:
            found = self._history.preview(last, words)
            return None if found is None else (self.weight * found).take(rows, axis=0)

        return previewed


@dataclass(frozen=True)
class HanziPath:
    """A path through the network.

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
class _Paths:
    """N paths from the first slot to the current one.

    Attributes:
        score: (N,) float64, log-scores, ``paid`` included.
        paid: (N,) float64, bonus for the characters of words that are not complete.
        past: (N, seen) int64, the last tokens, oldest first; 0 before the first.
        state: (N, S), of the path model; S = 0 without one.
        progress: (N,) int, index of the user words that the path has begun.
        sequence: (N,) int64, hash of all tokens and syllables.
        origin: (N,) int, the path of the slot before that was extended or kept.
        token: (N,) int, the token that was added; -1 for none.
        option: (N,) int, the option that it comes from.
    """

    score: np.ndarray
    paid: np.ndarray
    past: np.ndarray
    state: np.ndarray
    progress: np.ndarray
    sequence: np.ndarray
    origin: np.ndarray
    token: np.ndarray
    option: np.ndarray

    def take(self, indices: np.ndarray) -> "_Paths":
        """The paths with these indices."""
        return _Paths(*(value.take(indices, axis=0) for value in vars(self).values()))

    def joined(self, others: "_Paths") -> "_Paths":
        """These paths, then the others."""
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return _Paths(*(np.concatenate(pair) for pair in pairs))


def search_network(
    network: ConfusionNetwork,
    candidates: Candidates,
    model: TokenModel,
    beam: int,
    recombine: bool,
    words: NetworkWords | None = None,
) -> list[HanziPath]:
    """Find the best paths through a network.

    Args:
        network: the slots.
        candidates: the tokens of each syllable.
        model: rates the tokens.
        beam: hypotheses kept after each slot.
        recombine: keep the best of the hypotheses that the models cannot distinguish any more; otherwise
            only equal hypotheses are merged.
        words: user words in the network; None: none.

    Returns:
        The remaining hypotheses, the best first.
    """
    none = np.zeros(1, np.int64)
    state = model.paths.initial_states(1) if model.paths else np.zeros((1, 0))
    past = np.zeros((1, model.seen), np.int64)
    kept = _Paths(np.zeros(1), np.zeros(1), past, state, none, none, none, none, none)
    steps, begun = [], [frozenset()]  # the paths after each slot; user words by the index of a progress
    for index, slot in enumerate(network.slots):
        options = [
            (syllable, log_posterior, *candidates(index, syllable))
            for syllable, log_posterior in zip(slot.syllables, slot.log_posteriors, strict=True)
            if syllable != NOTHING
        ]
        grown = []
        if NOTHING in slot.syllables:
            score = kept.score + slot.log_posteriors[slot.syllables.index(NOTHING)]
            origin = np.arange(len(score))
            grown.append(replace(kept, score=score, origin=origin, token=np.full(len(score), -1)))
        if options:
            grown.append(_extended(kept, index, options, model, words, begun, 2 * beam))
        kept = _best(grown[0].joined(grown[1]) if len(grown) > 1 else grown[0], beam, recombine)
        steps.append(([syllable for syllable, *_ in options], kept))
    ends = model.log_probs(kept.past, np.arange(len(kept.score)), np.zeros(len(kept.score), int))
    scores = kept.score + ends - kept.paid
    return _hypotheses(steps, scores, np.argsort(-scores, kind="stable"))


def _extended(
    kept: _Paths,
    slot: int,
    options: Sequence[Option],
    model: TokenModel,
    words: NetworkWords | None,
    begun: list[Progress],
    count: int,
) -> _Paths:
    """The best ``count`` continuations by one token of the slot; new combinations of words join ``begun``."""
    ids = np.concatenate([ids for _, _, ids, _ in options])  # (C,)
    own = np.concatenate([log_posterior + model.weight * scores for _, log_posterior, _, scores in options])
    sources = np.repeat(np.arange(len(options)), [len(ids) for _, _, ids, _ in options])  # (C,), the option
    before = kept.score - kept.paid  # (N,)
    of_words = _columns_of_words(slot, options, ids, sources, words)
    rows, columns = _promising(before, ids, own, model.preview(kept.past), PREVIEWED * count, of_words)
    score = before[rows] + own[columns] + model.bonus
    score += model.log_probs(kept.past, rows, ids[columns])  # (E,)
    if model.paths:
        gained = model.paths.gains(kept.past, kept.state, rows, ids[columns])
        score += model.weight * gained
    progress, paid = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    for entry in np.flatnonzero(np.isin(columns, of_words)).tolist() if len(of_words) else ():
        column = columns[entry]
        step = slot, options[sources[column]][0], int(ids[column])
        advanced, paid[entry], earned = words.advance(begun[kept.progress[rows[entry]]], *step)
        score[entry] += paid[entry] + earned
        if advanced not in begun:
            begun.append(advanced)
        progress[entry] = begun.index(advanced)
    chosen = _highest(score, count)
    rows, columns = rows[chosen], columns[chosen]
    token, state = ids[columns].astype(np.int64), kept.state.take(rows, axis=0)
    # A syllable has the same hash in every slot.
    syllables = np.array([hash(syllable) for syllable, *_ in options])[sources[columns]]
    return _Paths(
        score=score[chosen],
        paid=paid[chosen],
        past=np.concatenate([kept.past.take(rows, axis=0), token[:, None]], axis=1)[:, 1:],
        state=model.paths.next_states(state, gained[chosen]) if model.paths else state,
        progress=progress[chosen],
        sequence=_combined(np.stack([kept.sequence.take(rows), token, syllables], axis=1)),
        origin=rows,
        token=token,
        option=sources[columns],
    )


def _columns_of_words(
    slot: int, options: Sequence[Option], ids: np.ndarray, sources: np.ndarray, words: NetworkWords | None
) -> np.ndarray:
    """The columns whose token may be a part of a user word, (W,) int."""
    columns = [np.zeros(0, int)]
    syllables = [syllable for syllable, *_ in options]
    for syllable, hanzi in words.entries(slot) if words else ():
        columns.append(np.flatnonzero((sources == syllables.index(syllable)) & (ids == hanzi)))
    return np.concatenate(columns)


def _promising(
    before: np.ndarray, ids: np.ndarray, own: np.ndarray, preview: Preview, count: int, always: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the continuations that the models rate, (E,) each.

    Args:
        before: (N,), scores of the paths.
        ids, own: (C,), the tokens and their scores without the language models.
        preview: approximates the language models' log-probabilities, which are at most 0.
        count: number of continuations that are rated.
        always: columns that are rated in each row.
    """
    size = len(before) * len(own)
    tried = _highest(own, -(-_TRIED * count // len(before)))
    previewed = preview(ids.take(tried)) if size > count else None
    if previewed is None:
        return np.divmod(np.arange(size), len(own))
    count = max(count, len(before) * len(always))
    # As many reach this score, so a column below it without a preview cannot be among the best.
    least = _lowest(before[:, None] + own.take(tried) + previewed, count)
    columns = (before.max() + own >= least).nonzero()[0]
    if len(always):
        columns = np.union1d(columns, always)
    promise = before[:, None] + own.take(columns) + preview(ids.take(columns))
    if len(always):
        promise[:, np.isin(columns, always)] = np.inf
    rows, chosen = np.divmod(_highest(promise.ravel(), count), len(columns))
    return rows, columns.take(chosen)


def _lowest(scores: np.ndarray, count: int) -> float:
    """The lowest of the ``count`` highest scores; of all if there are no more."""
    beyond = max(scores.size - count, 0)
    return float(np.partition(scores, beyond, axis=None)[beyond])


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest scores, in no order."""
    if len(scores) <= count:
        return np.arange(len(scores))
    return np.argpartition(-scores, count)[:count]


def _best(grown: _Paths, beam: int, recombine: bool) -> _Paths:
    """The best different paths, the best first; ``recombine``: paths differ in their last tokens or words."""
    order = np.argsort(-grown.score, kind="stable")
    if recombine:
        keys = _combined(np.concatenate([grown.past, grown.progress[:, None]], axis=1))
    else:
        keys = grown.sequence
    _, first = np.unique(keys.take(order), return_index=True)
    return grown.take(order.take(np.sort(first)[:beam]))


def _combined(columns: np.ndarray) -> np.ndarray:
    """A hash of each row of (N, n ≥ 1) int64: (N,) int64."""
    result = columns[:, 0] + 1
    for column in columns[:, 1:].T:
        result = (result * HASH_FACTOR) ^ (result >> 29)
        result += column
    return result


def _hypotheses(
    steps: Sequence[tuple[Sequence[str], _Paths]], scores: np.ndarray, order: np.ndarray
) -> list[HanziPath]:
    """The paths after the last slot, in this order, with everything on their way."""
    tokens, options = np.zeros((2, len(steps), len(order)), np.int64)
    index = order
    for slot in reversed(range(len(steps))):
        _, paths = steps[slot]
        tokens[slot], options[slot] = paths.token.take(index), paths.option.take(index)
        index = paths.origin.take(index)
    found = []
    for path, score in enumerate(scores[order].tolist()):
        slots = np.flatnonzero(tokens[:, path] >= 0).tolist()
        syllables = tuple(steps[slot][0][options[slot, path]] for slot in slots)
        found.append(HanziPath(tuple(tokens[slots, path].tolist()), syllables, tuple(slots), score))
    return found
