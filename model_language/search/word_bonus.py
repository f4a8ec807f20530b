"""Adds the hanzi of user words to the candidates of a search, and computes their bonus on each path.

A user word earns its weight for each character if a path writes it for its syllables. A search adds the
bonus of the characters written so far, so that the word survives until it is complete, and takes it back if
the path continues differently (the context graphs of Zhao et al., "Shallow-Fusion End-to-End Contextual
Biasing", Interspeech 2019, section 3.1). A whole path gains exactly the weights of the words in it.

The language models take a word with Latin letters for unknown hanzi, one for each syllable, which are much
less probable than an ordinary word: :data:`ORDINARY` makes up for a part of that. A part of such a word is no
text: each of its syllables costs :data:`INCOMPLETE`, which the whole word gives back.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from model_language.search.grid import Grid
from model_language.search.user_words import Reading, Span, UserWord, UserWords, distance_of
from model_language.vocabulary.symbols import PAD_ID, Symbols
from utils.hypotheses.recognition import NOTHING, ConfusionNetwork
from utils.mandarin.syllable_distance import NEAR

ORDINARY = 4.0
"""What the models' scores of a syllable of a word with Latin letters are below those of an ordinary word."""
INCOMPLETE = 100.0
"""What each syllable of a word with Latin letters costs on a path that does not have the whole word."""
NEAR_COST = 0.1
"""What a unit of phonetic distance from the reading of a user word costs in a confusion network."""
HEARD = 0.05
"""Alternatives of a slot that are as probable as this may stand for similar syllables of user words."""
UNKNOWN_PENALTY = 3.0
"""How far below the best hanzi of its syllable a hanzi outside the vocabulary is; see :func:`scores_of`."""


class HanziIds:
    """Ids of hanzi: those of a vocabulary, and above them ids for other hanzi of user words.

    Args:
        symbols: the vocabularies.
    """

    def __init__(self, symbols: Symbols):
        self._symbols, self._size = symbols, len(symbols.hanzi)
        self._added: dict[str, int] = {}
        self._characters: dict[int, str] = {}

    def index(self, character: str) -> int:
        """The id of a character; a new one for a character that is not in the vocabulary."""
        if character in self._symbols.hanzi:
            return self._symbols.hanzi.index(character)
        number = self._added.setdefault(character, self._size + len(self._added))
        self._characters[number] = character
        return number

    def decode(self, ids: Sequence[int]) -> str:
        """Ids as text."""
        numbers = list(map(int, ids))
        for number in set(numbers) - self._characters.keys():
            self._characters[number] = self._symbols.decode([number])
        return "".join(map(self._characters.__getitem__, numbers))


class GridWords:
    """User words in a batch of sentences.

    Args:
        grid: the candidates that the search reads.
        spans: the user words found in each sentence.
        symbols: the vocabularies of the model.
        all_candidates: all candidates of the model; None: ``grid`` has them all.

    Attributes:
        grid: the candidates, with the hanzi of user words added, see :func:`scores_of`.
        decode: ids → text.
        reach: number of preceding hanzi that the bonus depends on.
    """

    def __init__(
        self,
        grid: Grid,
        spans: Sequence[Sequence[Span]],
        symbols: Symbols,
        all_candidates: Grid | None = None,
    ):
        ids = HanziIds(symbols)
        self.decode = ids.decode
        # By position, then sentence: characters of the word before this one, ids of the word, weight, and
        # what each of its characters costs.
        self._at: dict[int, dict[int, list[tuple[int, np.ndarray, float, float]]]] = {}
        needed: dict[tuple[int, int], list[int]] = {}
        for sentence, found in enumerate(spans):
            for span in found:
                word = np.array([ids.index(character) for character in span.word.hanzi], np.int32)
                for before, position in enumerate(range(span.start, span.end)):
                    covering = self._at.setdefault(position, {}).setdefault(sentence, [])
                    covering.append((before, word, span.word.weight, _cost(span.word)))
                    needed.setdefault((sentence, position), []).append(int(word[before]))
        self.reach = max((len(span.word.hanzi) - 1 for found in spans for span in found), default=0)
        self.grid = _with_candidates(grid, needed, all_candidates or grid, len(symbols.hanzi))

    def gains(
        self, position: int, sentences: np.ndarray, past: np.ndarray, rows: np.ndarray, tokens: np.ndarray
    ) -> np.ndarray | None:
        """What hypotheses gain by a hanzi at ``position``.

        Args:
            position: index of the syllable.
            sentences: (N,) int, ascending: the sentence of each hypothesis.
            past: (N, n) int, the hanzi before ``position``, n ≥ reach.
            rows: (E,) int, ascending: the hypothesis that each hanzi extends.
            tokens: (E,) int, hanzi ids.

        Returns:
            (E,) log-scores, or None if nothing can be gained at this position.
        """
        if position not in self._at:
            return None
        gained = np.zeros(len(tokens))
        for sentence, covering in self._at[position].items():
            first, last = np.searchsorted(sentences, [sentence, sentence + 1])  # its hypotheses
            begin, end = np.searchsorted(rows, [first, last])  # their continuations
            gained[begin:end] = _gains(covering, past[first:last], rows[begin:end] - first, tokens[begin:end])
        return gained

    def earned(self, sentence: int, path: np.ndarray, position: int, hanzi: np.ndarray) -> np.ndarray:
        """The weights of the complete words that cover a position.

        Args:
            sentence: index of the sentence.
            path: (L,) int, ids of its hanzi.
            position: index of the syllable.
            hanzi: (K,) int; each of them replaces the hanzi at ``position``.

        Returns:
            (K,) float64.
        """
        total = np.zeros(len(hanzi))
        for before, word, weight, _ in self._at.get(position, {}).get(sentence, ()):
            same = path[position - before : position - before + len(word)] == word
            same[before] = True
            total += weight * len(word) * (same.all() & (hanzi == word[before]))
        return total


def _gains(
    covering: Sequence[tuple[int, np.ndarray, float, float]],
    past: np.ndarray,
    rows: np.ndarray,
    tokens: np.ndarray,
) -> np.ndarray:
    """Gains at one position of a sentence: past (N, n), rows (E,) of it, tokens (E,) → (E,)."""
    paid = np.zeros(len(past))  # for the characters of words that are not complete yet
    advance, earned = np.zeros(len(tokens)), np.zeros(len(tokens))
    for code, cost in {int(word[before]): cost for before, word, _, cost in covering if cost}.items():
        earned[tokens == code] -= cost
    for before, word, weight, cost in covering:
        weight += cost and cost + ORDINARY
        begun = (past[:, past.shape[1] - before :] == word[:before]).all(axis=1)  # (N,)
        paid = np.maximum(paid, np.where(begun, weight * before, 0.0))
        continued = begun.take(rows) & (tokens == word[before])
        if before + 1 < len(word):
            advance = np.maximum(advance, np.where(continued, weight * (before + 1), 0.0))
        else:
            earned += np.where(continued, weight * len(word), 0.0)
    return earned + advance - paid.take(rows)


def _with_candidates(
    grid: Grid, needed: Mapping[tuple[int, int], Sequence[int]], whole: Grid, size: int
) -> Grid:
    """Add hanzi that are not candidates yet, with their scores in the whole grid."""
    missing = {
        cell: added
        for cell, ids in needed.items()
        if (added := [number for number in dict.fromkeys(ids) if number not in grid.candidates[cell]])
    }
    if not missing:
        return grid
    used = {cell: int((grid.candidates[cell] > PAD_ID).sum()) for cell in missing}
    widest = max(used[cell] + len(added) for cell, added in missing.items())
    more = ((0, 0), (0, 0), (0, max(0, widest - grid.candidates.shape[2])))
    candidates = np.pad(grid.candidates, more, constant_values=PAD_ID)
    scores = np.pad(grid.scores, more, constant_values=-np.inf)
    for cell, added in missing.items():
        columns = slice(used[cell], used[cell] + len(added))
        candidates[(*cell, columns)] = added
        scores[(*cell, columns)] = scores_of(added, whole.candidates[cell], whole.scores[cell], size)
    return replace(grid, candidates=candidates, scores=scores, unlikely=None)


def scores_of(ids: Sequence[int], candidates: np.ndarray, scores: np.ndarray, size: int) -> list[float]:
    """Scores of hanzi of user words at a syllable.

    Args:
        ids: the hanzi.
        candidates: (K,) int, the model's hanzi for the syllable.
        scores: (K,) float.
        size: hanzi in the vocabulary; ids from there on stand for other hanzi.

    Returns:
        A candidate's own score; the lowest one for a hanzi that the model reads otherwise. For a hanzi
        outside the vocabulary, the user word is all that is known, so it scores almost as the best one.
    """
    known = dict(zip(candidates.tolist(), scores.tolist(), strict=True))
    used = scores[candidates > PAD_ID]
    lowest, unknown = float(used.min()), float(used.max()) - UNKNOWN_PENALTY
    return [known.get(number, unknown if number >= size else lowest) for number in ids]


def _cost(word: UserWord) -> float:
    return INCOMPLETE if word.spelling else 0.0


Progress = frozenset[tuple[int, int, int]]
"""User words that a path has begun: the number of each word and of its characters written so far, and the
distance of their syllables from the readings."""


class NetworkWords:
    """User words in a confusion network, in which each hypothesis has its own syllables.

    Args:
        network: the slots.
        words: the user words.
        ids: ids of their hanzi.
        factor: of the weights of the words, as that of the language models.
    """

    def __init__(self, network: ConfusionNetwork, words: UserWords, ids: HanziIds, factor: float):
        # Slot → (syllable, hanzi id) → words that it may continue: number, characters before it, word.
        self._steps: dict[int, dict[tuple[str, int], list[tuple[int, int, UserWord]]]] = {}
        self._network, self._ids, self._factor = network, ids, factor
        if not len(words):
            return
        self._after = self._following(words)
        numbers = {id(word): number for number, word in enumerate(words.words)}
        for start in range(len(network.slots)):
            for syllable, farthest in self._syllables(start):
                for reading, distance in words.readings_near(syllable, farthest).items():
                    for word in words.beginning_with(reading):
                        if distance <= word.tolerance:
                            self._add(word, numbers[id(word)], [(start, syllable)], distance)

    def entries(self, slot: int) -> list[tuple[str, int]]:
        """Syllables of a slot with the ids of hanzi of words that they may become."""
        return list(self._steps.get(slot, ()))

    def advance(
        self, progress: Progress, slot: int, syllable: str, hanzi: int
    ) -> tuple[Progress, float, float]:
        """What a path gains if it writes a hanzi for a syllable of a slot.

        Args:
            progress: the words that the path has begun.
            slot, syllable, hanzi: what comes next.

        Returns:
            The words begun after it, the bonus paid for them in advance, and the weights of the words that
            are complete now, less the cost of a hanzi that stands for a part of a word.
        """
        begun, advance, cost = set(), 0.0, 0.0
        complete: dict[str, tuple[int, float]] = {}  # of equal words that match, the last one counts
        for number, before, word in self._steps.get(slot, {}).get((syllable, hanzi), ()):
            cost = _cost(word)
            step = distance_of(word.readings[before], syllable)
            for distance in _distances(progress, number, before):
                distance += step
                if distance > word.tolerance:
                    continue
                weight = word.weight + (ORDINARY if cost else 0.0)
                bonus = (self._factor * weight + cost) * (before + 1) - NEAR_COST * distance
                if before + 1 == len(word.hanzi):
                    earned = number, bonus
                    complete[word.hanzi] = max(earned, complete.get(word.hanzi, earned))
                else:
                    begun.add((number, before + 1, distance))
                    advance = max(advance, bonus)
        return frozenset(begun), advance, sum(earned for _, earned in complete.values()) - cost

    def _syllables(self, slot: int) -> list[tuple[str, int]]:
        """The syllables of a slot, and how far the reading of a user word may be from each."""
        alternatives = self._network.slots[slot]
        return [
            (syllable, NEAR if log_posterior >= math.log(HEARD) else 0)
            for syllable, log_posterior in zip(
                alternatives.syllables, alternatives.log_posteriors, strict=True
            )
            if syllable != NOTHING
        ]

    def _following(self, words: UserWords) -> list[dict[Reading, list[tuple[int, str, int]]]]:
        """For each slot and reading, what may come next: slot, syllable, its distance from the reading.

        A slot that may be empty can be skipped.
        """
        found: list[dict[Reading, list[tuple[int, str, int]]]] = []
        following: dict[Reading, list[tuple[int, str, int]]] = {}
        for slot in reversed(range(len(self._network.slots))):
            found.append(following)
            following = dict(following) if NOTHING in self._network.slots[slot].syllables else {}
            for syllable, farthest in self._syllables(slot):
                for reading, distance in words.readings_near(syllable, farthest).items():
                    following[reading] = [(slot, syllable, distance), *following.get(reading, ())]
        return found[::-1]

    def _add(self, word: UserWord, number: int, entries: list[tuple[int, str]], distance: int) -> None:
        """Add all paths through the network that complete a word which begins with these syllables."""
        if len(entries) == len(word.hanzi):
            for before, (slot, syllable) in enumerate(entries):
                hanzi = self._ids.index(word.hanzi[before])
                steps = self._steps.setdefault(slot, {}).setdefault((syllable, hanzi), [])
                if (number, before, word) not in steps:
                    steps.append((number, before, word))
            return
        following = self._after[entries[-1][0]].get(word.readings[len(entries)], ())
        for slot, syllable, step in following:
            if distance + step <= word.tolerance:
                self._add(word, number, [*entries, (slot, syllable)], distance + step)


def _distances(progress: Progress, number: int, before: int) -> list[int]:
    """The distances of the first syllables of a word that a path has begun; [] if it has not."""
    if not before:
        return [0]
    return [distance for begun, done, distance in progress if (begun, done) == (number, before)]
