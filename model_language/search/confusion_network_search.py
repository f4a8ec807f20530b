"""Beam search through confusion networks of syllables and the hanzi that each of them may become.

Several networks are searched in a batch: each NumPy call serves the paths of all of them, which takes a
fraction of the time of one after the other. The paths are in flat arrays, those of a network together.

Of the paths that the models cannot distinguish any more only the best goes on (recombination), but the others
remain in a lattice, from which :mod:`model_language.search.lattice` takes the n best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_language.search.beam import HASH_FACTOR, best_and_ties, best_first, first_of_each, groups
from model_language.search.grid import TokenModel
from model_language.search.lattice import Arc, LatticeSlot, NetworkPaths, best_paths
from model_language.search.word_bonus import NetworkWords, Progress
from utils.hypotheses.recognition import NOTHING, ConfusionNetwork

PREVIEWED = 8
"""Continuations that all models score, as a multiple of twice the beam: the best by a quick preview.

With 8, the results for 30 recordings are those without a preview, in half of the time."""

MARGIN = 9.0
"""Paths whose log-score is lower than the best one's of their network by more than this are dropped.

A multiple of the language models' weight. With 9 and a beam of 128, 179 utterances of unseen speakers have as
many errors as without a margin, in a quarter of the time."""

_FARTHEST = 1e6  # no differences of scores above this matter

Candidates = Callable[[int, int, str], tuple[np.ndarray, np.ndarray]]
"""(network, slot, syllable) → ids that the syllable may become, and their log-scores, both (K,)."""


@dataclass(frozen=True, eq=False)
class _Paths:
    """N paths from the first slot to the current one.

    Attributes:
        network: (N,) int, ascending.
        score: (N,) float64, log-scores, ``paid`` included.
        paid: (N,) float64, bonus for the characters of words that are not complete.
        past: (N, seen) int64, the last tokens, oldest first; 0 before the first.
        state: (N, S), of the path model; S = 0 without one.
        progress: (N,) int, index of the user words that the path has begun.
        origin: (N,) int, the path of the slot before that was extended or kept.
        token: (N,) int, the token that was added; -1 for none.
        option: (N,) int, index of the syllable that it is written for.
    """

    network: np.ndarray
    score: np.ndarray
    paid: np.ndarray
    past: np.ndarray
    state: np.ndarray
    progress: np.ndarray
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


@dataclass(frozen=True, eq=False)
class _Options:
    """The alternatives in a slot of each network, and the C tokens that they may become, as columns.

    Attributes:
        syllables: of all networks.
        skipped: (networks,) float64, log-posterior of no syllable; -inf where there must be one.
        starts: (networks + 1,) int, where the columns of each network begin.
        ids: (C,) int, tokens.
        own: (C,) float64, their scores without the language models.
        option: (C,) int, index of the syllable.
        of_words: (C,) bool, whether the token may be a part of a user word.
    """

    syllables: list[str]
    skipped: np.ndarray
    starts: np.ndarray
    ids: np.ndarray
    own: np.ndarray
    option: np.ndarray
    of_words: np.ndarray


def search_networks(
    networks: Sequence[ConfusionNetwork],
    candidates: Candidates,
    model: TokenModel,
    beam: int,
    n_best: int = 1,
    words: Sequence[NetworkWords] = (),
) -> list[NetworkPaths]:
    """Find the best paths through networks.

    Args:
        networks: the slots; the longer networks first.
        candidates: the tokens of each syllable.
        model: scores the tokens.
        beam: hypotheses of a network that are kept after each slot.
        n_best: number of different paths that are returned at most.
        words: user words in each network; empty: none.

    Returns:
        The best paths of each network; paths differ in their tokens or syllables.
    """
    count = len(networks)
    none = np.zeros(count, np.int64)
    state = model.paths.initial_states(count) if model.paths else np.zeros((count, 0))
    past, zero = np.zeros((count, model.seen), np.int64), np.zeros(count)
    kept = _Paths(np.arange(count), zero, zero, past, state, none, none, none, none)
    slots: list[LatticeSlot] = []
    margin = MARGIN * model.weight
    begun: list[Progress] = [frozenset()]  # user words by the index of a progress
    found: list[NetworkPaths] = []  # of the last networks, the shortest first
    for slot in range(max((len(network.slots) for network in networks), default=-1) + 1):
        going = sum(len(network.slots) > slot for network in networks)
        ended = np.searchsorted(kept.network, going)
        if ended < len(kept.network):
            found += _ended(slots, kept, np.arange(ended, len(kept.network)), model, n_best)[::-1]
            kept = kept.take(np.arange(ended))
        if not going:
            break
        options = _options(networks[:going], slot, candidates, model, words)
        skipped = options.skipped.take(kept.network)
        rows = (skipped > -np.inf).nonzero()[0]
        grown = replace(
            kept.take(rows),
            score=(kept.score + skipped).take(rows),
            origin=rows,
            token=np.full(len(rows), -1),
        )
        if len(options.ids):
            grown = grown.joined(_extended(kept, slot, options, model, words, begun, 2 * beam, margin))
        before = kept.score.tolist()
        kept, starts, arcs = _best(grown, beam, margin)
        slots.append(LatticeSlot(options.syllables, before, starts, arcs))
    return found[::-1]


def _options(
    networks: Sequence[ConfusionNetwork],
    index: int,
    candidates: Candidates,
    model: TokenModel,
    words: Sequence[NetworkWords],
) -> _Options:
    """The options of a slot of all networks."""
    syllables: list[str] = []
    ids, own = [np.zeros(0, np.int64)], [np.zeros(0)]
    skipped, starts = np.full(len(networks), -np.inf), [0]
    word_tokens: list[tuple[int, int]] = []  # indices of options, and tokens of words that they may become
    for number, network in enumerate(networks):
        slot, entries = network.slots[index], words[number].entries(index) if words else ()
        size = 0
        for syllable, log_posterior in zip(slot.syllables, slot.log_posteriors, strict=True):
            if syllable == NOTHING:
                skipped[number] = log_posterior
                continue
            tokens, scores = candidates(number, index, syllable)
            word_tokens += [(len(syllables), token) for of, token in entries if of == syllable]
            syllables.append(syllable)
            ids.append(tokens)
            own.append(log_posterior + model.weight * scores)
            size += len(tokens)
        starts.append(starts[-1] + size)
    option = np.repeat(np.arange(-1, len(syllables)), [len(part) for part in ids])
    tokens, of_words = np.concatenate(ids), np.zeros(len(option), bool)
    for number, token in word_tokens:
        of_words |= (option == number) & (tokens == token)
    return _Options(syllables, skipped, np.array(starts), tokens, np.concatenate(own), option, of_words)


def _extended(
    kept: _Paths,
    slot: int,
    options: _Options,
    model: TokenModel,
    words: Sequence[NetworkWords],
    begun: list[Progress],
    count: int,
    margin: float,
) -> _Paths:
    """The best ``count`` continuations of each network by one token of the slot; new combinations of words
    join ``begun``."""
    before = kept.score - kept.paid  # (N,)
    rows, columns = _promising(kept, before, options, model, PREVIEWED * count, margin)
    token, option = options.ids.take(columns).astype(np.int64), options.option.take(columns)
    score = before.take(rows) + options.own.take(columns) + model.bonus
    score += model.log_probs(kept.past, rows, token)  # (E,)
    if model.paths:
        gained = model.paths.gains(kept.past, kept.state, rows, token)
        score += model.weight * gained
    network = kept.network.take(rows)
    progress, paid = np.zeros(len(rows), np.int64), np.zeros(len(rows))
    for entry in options.of_words.take(columns).nonzero()[0].tolist():
        step = slot, options.syllables[option[entry]], int(token[entry])
        done = begun[kept.progress[rows[entry]]]
        advanced, paid[entry], earned = words[network[entry]].advance(done, *step)
        score[entry] += paid[entry] + earned
        if advanced not in begun:
            begun.append(advanced)
        progress[entry] = begun.index(advanced)
    chosen = _best_of_each(network, score, count)
    rows, token, option = rows.take(chosen), token.take(chosen), option.take(chosen)
    state = kept.state.take(rows, axis=0)
    return _Paths(
        network=network.take(chosen),
        score=score.take(chosen),
        paid=paid.take(chosen),
        past=np.concatenate([kept.past.take(rows, axis=0), token[:, None]], axis=1)[:, 1:],
        state=model.paths.next_states(state, gained.take(chosen)) if model.paths else state,
        progress=progress.take(chosen),
        origin=rows,
        token=token,
        option=option,
    )


def _promising(
    kept: _Paths, before: np.ndarray, options: _Options, model: TokenModel, count: int, margin: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the continuations that all models score, (E,) each.

    Args:
        kept: the paths.
        before: (N,), their scores.
        options: what follows.
        model: the models, whose log-probabilities are at most 0.
        count: continuations of each network that are scored at most; by tokens of user words, as many more.
        margin: continuations that are less promising than the best one by more than this are not scored,
            except those by tokens of user words.
    """
    networks, sizes = len(options.skipped), np.diff(options.starts)
    of_column = np.repeat(np.arange(networks), sizes)
    best = _highest(of_column, options.own, networks)
    behind = np.minimum(best.take(of_column) - options.own, _FARTHEST)
    behind[options.of_words] = 0.0
    order = best_first(of_column, behind)  # of the columns, each network's best first
    # Paths with the same last token have the same preview: it is computed for the best one of each group.
    by_group, starts = _by_last_token(kept)  # indices of paths, and where the groups begin
    network, last = (values.take(by_group.take(starts[:-1])) for values in (kept.network, kept.past[:, -1]))
    highest = np.maximum.reduceat(before.take(by_group), starts[:-1])

    def previewed(of_group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Groups, their best columns, as many as given, and the own score of each with its preview."""
        group, columns = _pairs(network, options.starts, of_group, order)
        gain = model.preview(last.take(group), options.ids.take(columns))
        return None if gain is None else (group, columns, gain + options.own.take(columns))

    tried = np.minimum(-(-count // np.bincount(kept.network, minlength=networks)), sizes)
    first = previewed(tried.take(network))
    if first is None:
        return _pairs(kept.network, options.starts, sizes.take(kept.network), order)
    group, _, gain = first
    least = _highest(network.take(group), highest.take(group) + gain, networks) - margin
    # A preview is at most 0, so a column that is below this score without it is not needed. One ascending
    # array of all columns, those of a network between two multiples of a large number.
    ascending = (behind + of_column * 2 * _FARTHEST).take(order)
    remaining_margin = np.clip((best - least).take(network) + highest, 0.0, _FARTHEST)  # of each group
    reached = np.searchsorted(ascending, remaining_margin + network * 2 * _FARTHEST, side="right")
    second = previewed(reached - options.starts.take(network))
    assert second  # as the first
    group, columns, gain = second
    needed = highest.take(group) + gain >= least.take(network.take(group))
    needed |= options.of_words.take(columns)
    group, columns, gain = (values.compress(needed) for values in (group, columns, gain))
    pair, rows = _pairs(group, starts, np.diff(starts).take(group), by_group)  # all paths of each group
    columns, of_row = columns.take(pair), kept.network.take(rows)  # networks ascending, as the groups are
    of_words = options.of_words.take(columns)
    # With the bonus paid so far: a word that a path has begun goes before one that it may begin.
    promise = np.where(of_words, kept.score.take(rows), before.take(rows)) + gain.take(pair)
    others = ((promise >= least.take(of_row)) & ~of_words).nonzero()[0]
    parts = others, of_words.nonzero()[0]  # counted apart: many words do not displace the other tokens
    chosen = np.sort(np.concatenate([_at_most(count, part, of_row, promise) for part in parts]))
    return rows.take(chosen), columns.take(chosen)


def _at_most(count: int, chosen: np.ndarray, network: np.ndarray, promise: np.ndarray) -> np.ndarray:
    """Of the continuations ``chosen`` (C,), the ``count`` most promising ones of each network."""
    of_network = network.take(chosen)
    if np.bincount(of_network).max(initial=0) <= count:
        return chosen
    return chosen.take(_best_of_each(of_network, promise.take(chosen), count))


def _by_last_token(kept: _Paths) -> tuple[np.ndarray, np.ndarray]:
    """The paths of each network grouped by their last token.

    Returns:
        (N,) indices of paths, group by group; (number of groups + 1,) where the groups begin.
    """
    last = kept.past[:, -1]
    keys = kept.network * (last.max() + 1) + last
    order = np.argsort(keys, kind="stable")
    return order, np.append(groups(keys.take(order))[0], len(order))


def _pairs(
    network: np.ndarray, starts: np.ndarray, sizes: np.ndarray, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows with columns of their network: for each row the first ``sizes`` (N,) of ``order``; (E,) each."""
    entries = np.repeat(starts.take(network) - np.cumsum(sizes) + sizes, sizes)
    entries += np.arange(len(entries))
    return np.repeat(np.arange(len(network)), sizes), order.take(entries)


def _best_of_each(network: np.ndarray, scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest scores (E,) of each network, network by network, the best first."""
    # Fewer are sorted: a partition takes a fraction of the time.
    best = best_and_ties(network, scores, count)
    order = best.take(_by_score(network.take(best), scores.take(best)))
    return order.take(first_of_each(network.take(order), count))


def _by_score(network: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Indices that sort scores (E,) network by network, the best first."""
    highest = _highest(network, scores, network.max(initial=0) + 1)
    return best_first(network, highest.take(network) - scores)


def _highest(network: np.ndarray, scores: np.ndarray, count: int) -> np.ndarray:
    """The highest score of each of ``count`` networks: (E,) each, networks ascending → (count,)."""
    highest = np.full(count, -np.inf)
    if len(network):
        starts = np.flatnonzero(np.diff(network, prepend=-1))
        highest[network.take(starts)] = np.maximum.reduceat(scores, starts)
    return highest


def _best(grown: _Paths, beam: int, margin: float) -> tuple[_Paths, list[int], list[Arc]]:
    """Recombine and prune: the best paths of each network that the models can distinguish, and their arcs.

    Returns:
        the paths, and ``starts`` and ``arcs`` (the arcs that end in them) of a :class:`LatticeSlot`.
    """
    order = np.argsort(grown.network, kind="stable")
    network, score = grown.network.take(order), grown.score.take(order)
    best = _highest(network, score, network.max(initial=0) + 1)
    grown = grown.take(order[score >= best.take(network) - margin])
    grown = grown.take(_by_score(grown.network, grown.score))
    keys = _combined(np.column_stack([grown.network, grown.past, grown.progress]))
    _, first, alike = np.unique(keys, return_index=True, return_inverse=True)
    survivors = np.sort(first)
    survivors = survivors.take(first_of_each(grown.network.take(survivors), beam))
    number = np.full(len(keys), len(survivors))  # that of the path that goes on; the last for none
    number[survivors] = np.arange(len(survivors))
    number = number.take(first).take(alike)
    arcs = np.argsort(number, kind="stable")
    starts = np.searchsorted(number.take(arcs), np.arange(len(survivors) + 1))
    columns = (grown.origin, grown.token, grown.option, grown.score)
    listed = (column.take(arcs[: starts[-1]]).tolist() for column in columns)
    return grown.take(survivors), starts.tolist(), list(zip(*listed, strict=True))


def _combined(columns: np.ndarray) -> np.ndarray:
    """A hash of each row of (N, n ≥ 1) int64: (N,) int64."""
    result = columns[:, 0] + 1
    for column in columns[:, 1:].T:
        result = (result * HASH_FACTOR) ^ (result >> 29)
        result += column
    return result


def _ended(
    slots: Sequence[LatticeSlot], kept: _Paths, rows: np.ndarray, model: TokenModel, n_best: int
) -> list[NetworkPaths]:
    """The best paths of the networks that have no more slots, from the rows of their paths (n,)."""
    ends = model.log_probs(kept.past, rows, np.zeros(len(rows), np.int64))
    scores, ends = kept.score.take(rows), ends - kept.paid.take(rows)
    parts = zip(*(each.tolist() for each in groups(kept.network.take(rows))), strict=True)
    return [
        best_paths(
            slots,
            zip(*(each[start : start + size].tolist() for each in (rows, scores, ends)), strict=True),
            n_best,
        )
        for start, size in parts
    ]
