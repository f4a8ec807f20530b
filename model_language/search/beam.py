"""Beam search through a grid (the candidate hanzi of each syllable) for the best hanzi of each sentence.

Hypotheses are pruned by their number (histogram pruning) and by their distance from the best one (threshold
pruning), so sentences have different numbers of hypotheses. They are stored one after the other in flat
arrays: N hypotheses of all sentences, E continuations of them.
"""

import numpy as np

from model_language.ngram.words import WordUnigram
from model_language.search.grid import Grid, HistoryModel, MaskedPaths
from model_language.search.word_bonus import GridWords
from model_language.vocabulary.symbols import PAD_ID

# Odd, with well mixed bits: rows of ids get different hashes, except for one pair in 2^64.
HASH_FACTOR = 0x1E3779B97F4A7C15
_FARTHEST = 1e4  # no differences of scores above this matter
_Step = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def beam_search(
    grid: Grid,
    beam: int,
    margin: float = np.inf,
    effort: float = np.inf,
    history: HistoryModel | None = None,
    paths: WordUnigram | MaskedPaths | None = None,
    bonus: GridWords | None = None,
    n_best: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the best sequences of candidates.

    Args:
        grid: the candidates.
        beam: largest number of hypotheses that a sentence keeps after each syllable (histogram pruning).
        margin: hypotheses whose log-score is lower than the best one's of their sentence by more than this
            are dropped (threshold pruning).
        effort: candidates are not tried after a hypothesis if it is so far behind the best one, and they are
            so much less promising than the best one, that both together exceed this.
        history: adds log P(hanzi | hanzi before), and that of the end of the sentence.
        paths: adds the gains of whole paths.
        bonus: adds the bonus for user words.
        n_best: number of sequences for each sentence. Of hypotheses that the models cannot distinguish any
            more, the ``n_best`` best remain, because all of them have the same continuations. With a wide
            beam the search is exact. With a margin, or for a single sequence, this also leaves room in the
            beam for others.

    Returns:
        sequences (B, n_best, L) int32, 0 after the end of a sentence, and their scores (B, n_best) float64,
        the best first; a score of -inf marks a sequence that does not exist.
    """
    counts, words_at, scores_at, unlikely = _options(grid)
    batch, positions = counts.shape
    width = words_at.shape[2]
    reach = max(model.reach for model in (paths, bonus) if model) if paths or bonus else 0
    used = history.history if history else 0
    seen = max(used, reach)  # hanzi back that still matter
    # Of each hypothesis: its sentence (ascending), last hanzi, score and state.
    row, past, total = np.arange(batch), np.full((batch, seen), PAD_ID, np.int64), np.zeros(batch)
    state = paths.initial_states(batch) if paths else None
    steps: list[_Step] = []
    for position in range(positions):
        starts, sizes = groups(row)
        grown = counts[:, position].take(row)
        if unlikely is not None:
            best = np.repeat(total.take(starts), sizes)  # each sentence's best is first
            remaining_margin = effort - (best - total)
            tried = unlikely[:, position].take(row, axis=0) <= remaining_margin.astype(np.float32)[:, None]
            grown = np.minimum(grown, tried.sum(axis=1))
        ends = np.cumsum(grown)
        source = np.repeat(np.arange(len(row)), grown)  # (E,) the hypothesis that each continuation extends
        cell = np.arange(len(source)) + np.repeat(row * width - (ends - grown), grown)
        words = words_at[position].take(cell)
        score = np.repeat(total, grown) + scores_at[position].take(cell)
        if history:
            score += history.score(past[:, seen - used :], source, words)
        if paths and state is not None:
            gained = paths.gains(past, state, source, words)
            score += gained
        if bonus and (earned := bonus.gains(position, row, past, source, words)) is not None:
            score += earned
        behind = _behind(score, (ends - grown).take(starts), np.add.reduceat(grown, starts))
        if n_best > 1 and np.isinf(margin):  # sorting all would take long
            kept = best_and_ties(row.take(source), score, beam)
        else:
            kept = (behind <= margin).nonzero()[0]
        kept = kept.take(best_first(row.take(source.take(kept)), behind.take(kept)))
        origin = source.take(kept)
        column = cell.take(kept) - row.take(origin) * width
        kept = kept.take(_first_of_similar(row, past, origin, column, n_best))
        kept = kept.take(first_of_each(row.take(source.take(kept)), beam))
        origin = source.take(kept)
        past = np.concatenate([past.take(origin, axis=0), words.take(kept)[:, None]], axis=1)[:, 1:]
        row, total = row.take(origin), score.take(kept)
        if paths and state is not None:
            ended = None
            if grid.word_ends is not None and position < grid.word_ends.shape[1]:
                ended = grid.word_ends[row, position]
            state = paths.next_states(state.take(origin, axis=0), gained.take(kept), ended)
        steps.append((row, words.take(kept), origin, total))
    return _trace(steps, np.asarray(grid.lengths), n_best)


def _options(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Number of candidates (B, longest + 1); their ids and their scores, (longest + 1, B, K) each; how much
    less promising they are, (B, longest + 1, K).

    After its last syllable a sentence has one candidate, the boundary, then none.
    """
    batch, _, width = grid.candidates.shape
    lengths, sentences = np.asarray(grid.lengths), np.arange(batch)
    length = lengths.max()
    counts = np.zeros((batch, length + 1), np.int64)
    counts[:, :length] = (grid.candidates[:, :length] > PAD_ID).sum(axis=2)
    counts[np.arange(length + 1) >= lengths[:, None]] = 0
    counts[sentences, lengths] = 1
    words = np.zeros((length + 1, batch, width), np.int64)
    scores = np.zeros((length + 1, batch, width), np.float64)
    words[:length] = grid.candidates[:, :length].swapaxes(0, 1)
    scores[:length] = grid.scores[:, :length].swapaxes(0, 1)
    words[lengths, sentences, 0] = PAD_ID
    scores[lengths, sentences, 0] = 0.0
    if grid.unlikely is None:
        return counts, words, scores, None
    unlikely = np.zeros((batch, length + 1, width), np.float32)
    unlikely[:, :length] = grid.unlikely[:, :length]
    unlikely[sentences, lengths] = 0.0
    return counts, words, scores, unlikely


def _behind(score: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How much lower the scores (E,) are than the best of their sentence, (E,).

    Args:
        score: sentence after sentence.
        starts, sizes: where the scores of each sentence begin, and their number, which may be 0.
    """
    some = sizes.nonzero()[0]
    return np.repeat(np.maximum.reduceat(score, starts.take(some)), sizes.take(some)) - score


def best_first(rows: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """Indices (n,) that sort by row, (n,) int, then by ``behind``, (n,) float.

    Sorting by two keys takes several times as long.
    """
    behind = np.minimum(behind, _FARTHEST)
    return np.argsort(rows * (behind.max() + 1.0) + behind, kind="stable")


def best_and_ties(rows: np.ndarray, score: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest scores (E,) of each row (ascending), ties with the last included."""
    sizes = groups(rows)[1]
    return (score >= np.repeat(lowest_of_best(sizes, score, count), sizes)).nonzero()[0]


def lowest_of_best(sizes: np.ndarray, score: np.ndarray, count: int) -> np.ndarray:
    """The lowest of the ``count`` highest scores of each group, -inf if it has fewer: (groups,).

    Args:
        sizes: (groups,) number of scores of each group; 0 is possible.
        score: (E,) scores, group after group.
    """
    lowest, ends = np.full(len(sizes), -np.inf), np.cumsum(sizes)
    for group in (sizes >= count).nonzero()[0].tolist():
        own = score[ends[group] - sizes[group] : ends[group]]
        lowest[group] = np.partition(own, len(own) - count)[len(own) - count]
    return lowest


def first_of_each(rows: np.ndarray, count: int) -> np.ndarray:
    """Indices of the first ``count`` entries of each row (ascending)."""
    starts, sizes = groups(rows)
    return (np.arange(len(rows)) - np.repeat(starts, sizes) < count).nonzero()[0]


def _first_of_similar(
    row: np.ndarray, past: np.ndarray, source: np.ndarray, column: np.ndarray, count: int
) -> np.ndarray:
    """Indices of the first ``count`` of those continuations (n,) that the models cannot distinguish.

    Two continuations differ by their candidate, or by what is still seen of their hypotheses after it.

    Args:
        row, past: the sentences of the hypotheses (N,) and their last hanzi (N, seen).
        source, column: the hypothesis and the candidate of each continuation.
        count: number of similar continuations to keep.
    """
    keys = row.astype(np.int64)
    for seen in past[:, 1:].T:
        keys = keys * HASH_FACTOR + seen
    similar = np.unique(keys, return_inverse=True)[1]  # of the hypotheses, (N,)
    key, index = similar.take(source), np.arange(len(source))
    if past.shape[1]:
        key = key * (column.max() + 1) + column
    if count == 1:  # sorting takes longer
        first = np.full(key.max() + 1, len(key))
        np.minimum.at(first, key, index)
        return (first.take(key) == index).nonzero()[0]
    order = np.argsort(key, kind="stable")
    starts, sizes = groups(key.take(order))
    return np.sort(order.compress(index - np.repeat(starts, sizes) < count))


def groups(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of the runs of equal values (n ≥ 1,)."""
    begins = np.empty(len(values), bool)
    begins[0] = True
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    starts = begins.nonzero()[0]
    sizes = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=sizes[:-1])
    sizes[-1] = len(values) - starts[-1]
    return starts, sizes


def _trace(steps: list[_Step], lengths: np.ndarray, n_best: int) -> tuple[np.ndarray, np.ndarray]:
    """The words (B, n_best, L) and the scores (B, n_best) of each sentence's best hypotheses at its end."""
    batch = len(lengths)
    sequences = np.zeros((batch, n_best, len(steps)), np.int32)
    scores = np.full((batch, n_best), -np.inf)
    index = np.zeros((batch, n_best), np.int64)  # of each sentence's hypotheses in the step
    for position in reversed(range(len(steps))):
        row, words, origins, totals = steps[position]
        ended = np.flatnonzero(lengths == position)
        if len(ended):
            begin, end = np.searchsorted(row, ended), np.searchsorted(row, ended, side="right")
            index[ended] = begin[:, None] + np.arange(n_best)
            exists = index[ended] < end[:, None]
            index[ended] = np.where(exists, index[ended], begin[:, None])
            scores[ended] = np.where(exists, totals.take(index[ended]), -np.inf)
        present = np.flatnonzero(lengths >= position)
        chosen = index[present]
        sequences[present, :, position] = words.take(chosen)
        index[present] = origins.take(chosen)
    return sequences[:, :, :-1], scores
