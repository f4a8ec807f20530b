"""Beam search through a confusion network of syllables and the hanzi that each of them may become."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_language.search.grid import HistoryModel, MaskedHistory, MaskedPaths, PathModel
from model_language.search.word_bonus import NetworkWords, Progress
from utils.hypotheses.confusion_network import NOTHING, ConfusionNetwork

PREVIEWED = 8
"""Continuations that all models rate, as a multiple of those that are kept: the best by a quick preview.

With 8, the results for 30 recordings are those without a preview, in half of the time."""

Option = tuple[str, float, np.ndarray, np.ndarray]
"""A syllable of a slot, its log-posterior, the ids that it may become, and their log-scores, both (K,)."""
Candidates = Callable[[int, str], tuple[np.ndarray, np.ndarray]]
"""(slot, syllable) → ids that the syllable may become, and their log-scores, both (K,)."""


class TokenModel:
    """The language models of a search through a network, and their weights.

    Args:
        history: scores a token given the tokens before it.
        weight: factor of all log-probabilities of tokens.
        bonus: added for each token.
        size: ids from here on are unknown to the models.
        paths: scores the words that tokens form; None: no such model.
    """

    def __init__(
        self, history: HistoryModel, weight: float, bonus: float, size: int, paths: PathModel | None = None
    ):
        self._history, self.weight, self.bonus = MaskedHistory(history, size), weight, bonus
        self.paths = MaskedPaths(paths, size) if paths else None
        self.seen = max(history.history, paths.reach if paths else 0)
        """Number of preceding tokens that matter."""

    def log_probs(self, past: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Weighted log-probabilities: past (N, seen), rows (E,) of it, next words (E,) → (E,) float64."""
        histories = past[:, past.shape[1] - self._history.history :]
        return self.weight * self._history.score(histories, rows, words).astype(float)

    def preview(self, past: np.ndarray, words: np.ndarray) -> np.ndarray | None:
        """A quick approximation of :meth:`log_probs` for past (N, seen ≥ 1), words (K,) → (N, K)."""
        previewed = self._history.preview(past[:, -1], words)
        return None if previewed is None else self.weight * previewed


@dataclass(frozen=True)
class Hypothesis:
    """A path from the first slot.

    Attributes:
        tokens: ids.
        syllables: the syllable of each token.
        slots: the slot of each token.
        score: log-score, ``paid`` included.
        progress: user words that the path has begun.
        paid: bonus for the characters of words that are not complete.
        state: (S,), state of the path model, if there is one.
    """

    tokens: tuple[int, ...] = ()
    syllables: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    score: float = 0.0
    progress: Progress = frozenset()
    paid: float = 0.0
    state: np.ndarray | None = None


def search_network(
    network: ConfusionNetwork,
    candidates: Candidates,
    model: TokenModel,
    beam: int,
    recombine: bool,
    words: NetworkWords | None = None,
) -> list[Hypothesis]:
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
    kept = [Hypothesis(state=model.paths.initial_states(1)[0] if model.paths else None)]
    for index, slot in enumerate(network.slots):
        options = [
            (syllable, log_posterior, *candidates(index, syllable))
            for syllable, log_posterior in zip(slot.syllables, slot.log_posteriors, strict=True)
            if syllable != NOTHING
        ]
        grown: list[Hypothesis] = []
        if NOTHING in slot.syllables:
            empty = slot.log_posteriors[slot.syllables.index(NOTHING)]
            grown += [replace(path, score=path.score + empty) for path in kept]
        if options:
            grown += _extend(kept, index, options, model, words, 2 * beam)
        kept = _best(grown, beam, model.seen if recombine else None)
    rows = np.arange(len(kept))
    ends = model.log_probs(_last_tokens(kept, model.seen), rows, np.zeros(len(kept), int))
    finished = [
        replace(path, score=path.score + float(end) - path.paid) for path, end in zip(kept, ends, strict=True)
    ]
    return sorted(finished, key=lambda path: -path.score)


def _extend(
    kept: Sequence[Hypothesis],
    slot: int,
    options: Sequence[Option],
    model: TokenModel,
    words: NetworkWords | None,
    count: int,
) -> list[Hypothesis]:
    """The best ``count`` continuations by one token of the slot."""
    ids = np.concatenate([ids for _, _, ids, _ in options])  # (C,)
    own = np.concatenate([log_posterior + model.weight * scores for _, log_posterior, _, scores in options])
    sources = np.repeat(np.arange(len(options)), [len(ids) for _, _, ids, _ in options])  # (C,), the option
    past = _last_tokens(kept, model.seen)
    before = np.array([path.score - path.paid for path in kept])[:, None] + own + model.bonus  # (N, C)
    begun = _columns_of_words(slot, options, ids, sources, words)
    rows, columns = _promising(before, model.preview(past, ids), PREVIEWED * count, begun)
    score = before[rows, columns] + model.log_probs(past, rows, ids[columns])  # (E,)
    if model.paths:
        states = np.stack([path.state for path in kept])  # (N, S)
        gained = model.paths.gains(past, states, rows, ids[columns])
        score += model.weight * gained
    advanced: dict[int, tuple[Progress, float]] = {}
    for entry in np.flatnonzero(np.isin(columns, begun)).tolist():
        column = columns[entry]
        step = slot, options[sources[column]][0], int(ids[column])
        progress, paid, earned = words.advance(kept[rows[entry]].progress, *step)
        score[entry] += paid + earned
        advanced[entry] = progress, paid
    chosen = _highest(score, count)
    rows, columns = rows[chosen], columns[chosen]
    following = model.paths.next_states(states[rows], gained[chosen]) if model.paths else [None] * len(rows)
    extended = []
    for entry, row, column, state in zip(
        chosen.tolist(), rows.tolist(), columns.tolist(), following, strict=True
    ):
        path = kept[row]
        progress, paid = advanced.get(entry, (frozenset(), 0.0))
        extended.append(
            Hypothesis(
                tokens=(*path.tokens, int(ids[column])),
                syllables=(*path.syllables, options[sources[column]][0]),
                slots=(*path.slots, slot),
                score=float(score[entry]),
                progress=progress,
                paid=paid,
                state=state,
            )
        )
    return extended


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
    before: np.ndarray, previewed: np.ndarray | None, count: int, always: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the continuations that the models rate, (E,) each.

    Args:
        before: (N, C), scores without the language models.
        previewed: (N, C), their approximation by the language models; None: all are rated.
        count: number of continuations that are rated.
        always: columns that are rated in each row.
    """
    if previewed is None or before.size <= count:
        rows, columns = np.divmod(np.arange(before.size), before.shape[1])
        return rows, columns
    promise = before + previewed
    promise[:, always] = np.inf
    count = max(count, promise.shape[0] * len(always))
    return np.divmod(_highest(promise.ravel(), count), before.shape[1])


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest scores, in no order."""
    if len(scores) <= count:
        return np.arange(len(scores))
    return np.argpartition(-scores, count)[:count]


def _best(grown: list[Hypothesis], beam: int, seen: int | None) -> list[Hypothesis]:
    """The best different hypotheses, the best first; ``seen`` tokens tell them apart, None: all of them."""
    kept: dict[object, Hypothesis] = {}
    for path in sorted(grown, key=lambda path: -path.score):
        if seen is None:
            key: object = (path.tokens, path.syllables)
        else:
            key = (path.tokens[max(0, len(path.tokens) - seen) :], path.progress)
        if key not in kept:
            kept[key] = path
            if len(kept) == beam:
                break
    return list(kept.values())


def _last_tokens(kept: Sequence[Hypothesis], count: int) -> np.ndarray:
    """The last tokens of each hypothesis, (N, count), 0 before the first."""
    result = np.zeros((len(kept), count), np.int64)
    for row, path in zip(result, kept, strict=True):
        last = path.tokens[max(0, len(path.tokens) - count) :]
        row[count - len(last) :] = last
    return result
