"""User words in a batch of sentences → their hanzi among the candidates, and what paths with them gain.

A word whose syllables are in a sentence earns its weight for each character if it is written there. A search
pays for the characters that have come so far, so that the word survives until it is complete, and takes the
pay back when the word goes on otherwise (as in the context graphs of Zhao et al., "Shallow-Fusion End-to-End
Contextual Biasing", Interspeech 2019, section 3.1). What a whole sentence gains is exactly the weights of the
words in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from model_language.search.grid import Grid, HistoryModel, PathModel
from model_language.search.user_words import Span
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols


class WordSearch:
    """Words in a batch of sentences: their hanzi among the candidates, and their say in the search.

    Args:
        grid: what is to be searched of what the model says of the batch.
        spans: of each sentence the words in it.
        symbols: the model's vocabularies.
        all_candidates: all that the model says, if that is more.

    Attributes:
        grid: what is to be searched, with hanzi added that the model or its lexicon doesn't have at these
            syllables; as improbable as the least candidate there. Ids beyond the vocabulary stand for
            unknown hanzi.
        reach: hanzi back that a word's next one depends on.
    """

    def __init__(
        self,
        grid: Grid,
        spans: Sequence[Sequence[Span]],
        symbols: Symbols,
        all_candidates: Grid | None = None,
    ):
        self._hanzi, self._size = symbols.hanzi, len(symbols.hanzi)
        self._added: dict[str, int] = {}
        # By place: of each sentence the words on it, how many of their hanzi come before, ids, weight.
        self._at: dict[int, dict[int, list[tuple[int, np.ndarray, float]]]] = {}
        wanted: dict[tuple[int, int], list[int]] = {}
        for row, found in enumerate(spans):
            for span in found:
                ids = np.array([self._id(character) for character in span.word.hanzi], np.int32)
                for before, place in enumerate(range(span.start, span.end)):
                    at = self._at.setdefault(place, {}).setdefault(row, [])
                    at.append((before, ids, span.word.weight))
                    wanted.setdefault((row, place), []).append(int(ids[before]))
        self.reach = max((len(span.word.hanzi) - 1 for found in spans for span in found), default=0)
        self.grid = _with_candidates(grid, wanted, all_candidates or grid)

    def gains(
        self, place: int, row: np.ndarray, past: np.ndarray, rows: np.ndarray, words: np.ndarray
    ) -> np.ndarray | None:
        """See :class:`model_language.search.grid.PathBonus`."""
        if place not in self._at:
            return None
        result = np.zeros(len(words))
        for sentence, covering in self._at[place].items():
            first, last = np.searchsorted(row, [sentence, sentence + 1])  # its hypotheses
            begin, end = np.searchsorted(rows, [first, last])  # and what they may go on with
            found = _gains(covering, past[first:last], rows[begin:end] - first, words[begin:end])
            result[begin:end] = found
        return result

    def earned(self, row: int, path: np.ndarray, place: int, hanzi: np.ndarray) -> np.ndarray:
        """What the words on a place of a sentence earn.

        Args:
            row: number of the sentence.
            path: (L,) ids of its hanzi.
            place: number of the syllable.
            hanzi: (K,) ids; each is tried at ``place``.

        Returns:
            (K,) float64.
        """
        total = np.zeros(len(hanzi))
        for before, ids, weight in self._at.get(place, {}).get(row, ()):
            same = path[place - before : place - before + len(ids)] == ids
            same[before] = True
            total += weight * len(ids) * (same.all() & (hanzi == ids[before]))
        return total

    def known(self, ids: np.ndarray) -> np.ndarray:
        """Ids that a model of hanzi can score: its own unknown one for added hanzi."""
        return np.where(ids < self._size, ids, UNKNOWN_ID)

    def decode(self, ids: Sequence[int], symbols: Symbols) -> str:
        """Ids as text, added hanzi included."""
        added = {number: character for character, number in self._added.items()}
        return "".join(added.get(int(number)) or symbols.decode([int(number)]) for number in ids)

    def _id(self, character: str) -> int:
        if character in self._hanzi:
            return self._hanzi.index(character)
        return self._added.setdefault(character, self._size + len(self._added))


def _gains(
    covering: Sequence[tuple[int, np.ndarray, float]], past: np.ndarray, rows: np.ndarray, words: np.ndarray
) -> np.ndarray:
    """What the words on a place of one sentence pay: past (N, n), rows (E,) of these, words (E,) → (E,)."""
    paid = np.zeros(len(past))  # for characters of words that aren't complete yet
    owed, earned = np.zeros(len(words)), np.zeros(len(words))
    for before, ids, weight in covering:
        begun = (past[:, past.shape[1] - before :] == ids[:before]).all(axis=1)  # (N,)
        paid = np.maximum(paid, np.where(begun, weight * before, 0.0))
        goes_on = begun.take(rows) & (words == ids[before])
        if before + 1 < len(ids):
            owed = np.maximum(owed, np.where(goes_on, weight * (before + 1), 0.0))
        else:
            earned += np.where(goes_on, weight * len(ids), 0.0)
    return earned + owed - paid.take(rows)


class KnownHistory:
    """A model of hanzi that bears ids it doesn't know (see
    :class:`model_language.search.grid.HistoryModel`)."""

    def __init__(self, model: HistoryModel, words: WordSearch):
        self.history, self._model, self._words = model.history, model, words

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See the protocol."""
        return self._model.log_probs(self._words.known(histories), self._words.known(words))

    def rated(self, histories: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See :class:`model_language.search.beam.RaggedHistory`."""
        return self._model.rated(self._words.known(histories), rows, self._words.known(words))


class KnownPaths:
    """The same of a model of paths (see :class:`model_language.search.grid.PathModel`)."""

    def __init__(self, model: PathModel, words: WordSearch):
        self.reach, self.begin, self.follow = model.reach, model.begin, model.follow
        self._model, self._words = model, words

    def gains(self, past: np.ndarray, state: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See the protocol."""
        return self._model.gains(self._words.known(past), state, rows, self._words.known(words))

    def worth(self, sequences: np.ndarray) -> np.ndarray:
        """See the protocol."""
        return self._model.worth(self._words.known(sequences))


def _with_candidates(grid: Grid, wanted: Mapping[tuple[int, int], Sequence[int]], whole: Grid) -> Grid:
    """The grid with hanzi added where they aren't candidates yet, at their score in the whole one."""
    missing = {
        at: added
        for at, ids in wanted.items()
        if (added := [one for one in dict.fromkeys(ids) if one not in grid.candidates[at]])
    }
    if not missing:
        return grid
    used = {at: int((grid.candidates[at] > PAD_ID).sum()) for at in missing}
    widest = max(used[at] + len(added) for at, added in missing.items())
    more = ((0, 0), (0, 0), (0, max(0, widest - grid.candidates.shape[2])))
    candidates = np.pad(grid.candidates, more, constant_values=PAD_ID)
    scores = np.pad(grid.scores, more, constant_values=-np.inf)
    for at, added in missing.items():
        places = slice(used[at], used[at] + len(added))
        candidates[(*at, places)] = added
        scores[(*at, places)] = _scores_of(added, whole.candidates[at], whole.scores[at])
    return Grid(candidates, scores, grid.lengths)


def _scores_of(ids: Sequence[int], candidates: np.ndarray, scores: np.ndarray) -> list[float]:
    """Scores of some hanzi at a syllable (K,): of one that isn't among its candidates, the least."""
    least = float(scores[candidates > PAD_ID].min())
    known = dict(zip(candidates.tolist(), scores.tolist(), strict=True))
    return [known.get(one, least) for one in ids]
