"""A converter and user words in; hanzi out, with how sure each character is and why it won.

Of each character two estimates are made, of which both err to the high side; the lower one is its confidence:
the share of the n best paths (by probability) that have it, and its probability if all other characters are
taken for granted. The second also tells the runner-up, and how the winner's lead over it is made up: what the
network (or the readings), the n-gram model, the words of a dictionary and the user words would lose by the
exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from model_language.converters.combined import FusedConverter
from model_language.search.beam import best_paths
from model_language.search.grid import (
    Conversion,
    Grid,
    HistoryModel,
    PathModel,
    beam_search,
    length_batches,
)
from model_language.search.grid_words import KnownHistory, KnownPaths, WordSearch
from model_language.search.user_words import Span, UserWords, fired
from model_language.vocabulary.symbols import PAD_ID, Symbols
from utils.softmax import softmax

NGRAM_PART, DICTIONARY_PART, WORDS_PART = "n-gram", "words", "user words"
# Hanzi to each side that are divided into words anew when one is exchanged; those further off stay in theirs.
_DIVISION_CONTEXT = 24
_PATHS = 16  # that confidences are estimated from, at least


class GridConverter(Protocol):
    """A :class:`model_language.converters.base.Converter` whose search can be guided."""

    symbols: Symbols
    history_model: HistoryModel | None  # rates a hanzi by those before it
    path_model: PathModel | None  # rates what hanzi make up together
    margin: float | None  # how far behind the best one a hypothesis may be; None: the beam alone counts
    grid_part: str  # what the scores of its grids are
    beam: int
    batch_syllables: int  # padded syllables in a batch

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character a syllable."""

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """Up to ``n`` ways to write one sentence, the most probable first."""

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """How probable the model holds given hanzi to be."""

    def grid(self, sentences: Sequence[Sequence[str]]) -> Grid:
        """What the model says of sentences, none empty, before the search."""

    def narrow(self, grid: Grid) -> Grid:
        """The candidates of a grid that a search for the best way has to look at."""


@dataclass(frozen=True)
class Character:
    """Why a character stands where it does.

    Attributes:
        hanzi: the character.
        syllable: what it was written for.
        confidence: 0 to 1.
        runner_up: the next best character there; empty if there is no other.
        lead: by part, how far ahead of the runner-up it is (natural logarithm); their sum decides.
    """

    hanzi: str
    syllable: str
    confidence: float
    runner_up: str
    lead: dict[str, float]


@dataclass(frozen=True)
class Explained:
    """A sentence with its reasons.

    Attributes:
        n_best: ways to write it, the best first; scores include what user words earn.
        characters: of the best way.
        fired: the user words in it.
    """

    n_best: tuple[Conversion, ...]
    characters: tuple[Character, ...]
    fired: tuple[Span, ...]


class GuidedConverter:
    """Prefers user words; where none of their syllables come it writes what the converter alone writes.

    Args:
        converter: a neural or an n-gram one.
        words: may be empty.
    """

    def __init__(self, converter: GridConverter, words: UserWords):
        self.converter, self.words = converter, words

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """See :class:`model_language.converters.base.Converter`."""
        spans = [self.words.spans(sentence) for sentence in sentences]
        plain = [index for index, found in enumerate(spans) if not found]
        result = [""] * len(sentences)
        for index, hanzi in zip(
            plain, self.converter.convert([sentences[index] for index in plain]), strict=True
        ):
            result[index] = hanzi
        guided = [index for index, found in enumerate(spans) if found]
        for batch in self._batches(sentences, guided, self.converter.batch_syllables):
            chosen = [sentences[i] for i in batch]
            found = _suited(chosen, [spans[i] for i in batch], self.converter, scored=False)
            for index, (paths, row) in zip(batch, found, strict=True):
                result[index] = paths.text(row, 0)
        return result

    def best(self, sentences: Sequence[Sequence[str]]) -> list[Conversion]:
        """The best hanzi of each sentence with their score; what user words earn is in it."""
        result = [Conversion("", 0.0)] * len(sentences)
        there = [index for index, sentence in enumerate(sentences) if len(sentence)]
        for batch in self._batches(sentences, there, self.converter.batch_syllables):
            chosen = [sentences[index] for index in batch]
            found = _suited(chosen, [self.words.spans(one) for one in chosen], self.converter)
            for index, (paths, row) in zip(batch, found, strict=True):
                result[index] = paths.conversions(row, 1)[0]
        return result

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """See :class:`model_language.converters.base.Converter`."""
        spans = self.words.spans(sentence)
        if not spans:
            return self.converter.n_best(sentence, n)
        ((found, row),) = _suited([sentence], [spans], self.converter, paths=n)
        return found.conversions(row, n)

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :class:`model_language.converters.base.Converter`; without what user words earn."""
        return self.converter.scores(sentences, hanzi)

    def explain(self, sentences: Sequence[Sequence[str]], n: int = 1) -> list[Explained]:
        """Convert, and tell why; ``n`` ways to write each sentence."""
        spans = [self.words.spans(sentence) for sentence in sentences]
        result = [Explained((Conversion("", 0.0),), (), ())] * len(sentences)
        there = [index for index, sentence in enumerate(sentences) if len(sentence)]
        # Many ways of each sentence are more to keep at hand than the best one.
        for batch in self._batches(sentences, there, self.converter.batch_syllables // 4):
            chosen = [sentences[i] for i in batch]
            found = _suited(chosen, [spans[i] for i in batch], self.converter, paths=max(n, _PATHS))
            for index, (paths, row) in zip(batch, found, strict=True):
                result[index] = _explained(paths, row, sentences[index], spans[index], n)
        return result

    def _batches(
        self, sentences: Sequence[Sequence[str]], indices: Sequence[int], syllables: int
    ) -> Iterator[list[int]]:
        for batch in length_batches([len(sentences[index]) for index in indices], max(1, syllables)):
            yield [indices[place] for place in batch]


@dataclass(frozen=True)
class _Paths:
    """What a search has found: sequences (B, W, L) of ids, scores (B, W), and all that it was made of."""

    converter: GridConverter
    search: WordSearch
    history: KnownHistory | None
    paths: KnownPaths | None
    sequences: np.ndarray
    scores: np.ndarray

    def with_best_of(self, other: _Paths) -> _Paths:
        """With the best path of another search too, which one for many different paths may have lost."""
        sequences = np.concatenate([other.sequences[:, :1], self.sequences], axis=1)
        scores = np.concatenate([other.scores[:, :1], self.scores], axis=1)
        scores[:, 1:][(sequences[:, 1:] == sequences[:, :1]).all(axis=2)] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")
        sequences = np.take_along_axis(sequences, order[:, :, None], axis=1)
        return replace(self, sequences=sequences, scores=np.take_along_axis(scores, order, axis=1))

    def text(self, row: int, path: int) -> str:
        length = int(self.search.grid.lengths[row])
        return self.search.decode(self.sequences[row, path, :length], self.converter.symbols)

    def conversions(self, row: int, n: int) -> list[Conversion]:
        found = np.flatnonzero(self.scores[row] > -np.inf)[:n]
        return [Conversion(self.text(row, path), float(self.scores[row, path])) for path in found]


def _suited(
    sentences: Sequence[Sequence[str]],
    spans: Sequence[Sequence[Span]],
    converter: GridConverter,
    paths: int = 0,
    scored: bool = True,
) -> list[tuple[_Paths, int]]:
    """What is found for each sentence at the error rate that suits it, and the sentence's row there.

    Without a mistake in it, the best path of a high rate is that of all lower ones, but for its score.
    """
    first, *lower = converter.by_error_rate if isinstance(converter, FusedConverter) else [converter]
    found = _find(sentences, spans, first, paths)
    best = [(found, row) for row in range(len(sentences))]
    again = list(range(len(sentences)))
    if lower and not scored:
        again = first.mistaken(sentences, found.sequences[:, 0]).nonzero()[0].tolist()
    for one in lower if again else ():
        found = _find([sentences[place] for place in again], [spans[place] for place in again], one, paths)
        for row, place in enumerate(again):
            other, other_row = best[place]
            if found.scores[row, 0] >= other.scores[other_row, 0]:
                best[place] = found, row
    return best


def _find(
    sentences: Sequence[Sequence[str]],
    spans: Sequence[Sequence[Span]],
    converter: GridConverter,
    paths: int = 0,
) -> _Paths:
    """Search for the best path of each sentence; with ``paths`` for the best so many different ones."""
    whole = converter.grid(sentences)
    grid = whole if paths else converter.narrow(whole)
    search = WordSearch(grid, spans, converter.symbols, whole)
    model, rating = converter.history_model, converter.path_model
    history = KnownHistory(model, search) if model else None
    known = KnownPaths(rating, search) if rating else None
    grid, bonus = search.grid, search if search.reach or any(spans) else None
    if converter.margin is not None and not paths:
        sequences, scores = best_paths(grid, converter.beam, converter.margin, history, known, bonus)
        return _Paths(converter, search, history, known, sequences[:, None], scores[:, None])
    beam = max(converter.beam, 4 * paths if model else paths)
    sequences, scores = beam_search(
        grid.candidates, grid.scores, grid.lengths, beam, history, not paths, bonus, known
    )
    found = _Paths(converter, search, history, known, sequences, scores)
    if converter.margin is None:
        return found
    return found.with_best_of(_find(sentences, spans, converter))


def _explained(found: _Paths, row: int, sentence: Sequence[str], spans: Sequence[Span], n: int) -> Explained:
    conversions = found.conversions(row, max(n, _PATHS))
    best = conversions[0].hanzi
    shares = _shares(conversions)
    leads = _leads(found, row)
    characters = []
    for place, (hanzi, syllable) in enumerate(zip(best, sentence, strict=True)):
        probability, runner_up, lead = leads[place]
        confidence = min(shares[place], probability)
        characters.append(Character(hanzi, syllable, confidence, runner_up, lead))
    return Explained(tuple(conversions[:n]), tuple(characters), fired(spans, best))


def _shares(conversions: Sequence[Conversion]) -> list[float]:
    """Of each character of the best conversion: the share of all that have it, by probability."""
    logs = np.array([one.score for one in conversions])
    characters = np.array([list(one.hanzi) for one in conversions])  # (n, L)
    same = characters == characters[0]
    return (softmax(logs) @ same).tolist()


def _leads(found: _Paths, row: int) -> list[tuple[float, str, dict[str, float]]]:
    """At each place of the best path: probability given all others, the runner-up, the lead by part."""
    grid, length = found.search.grid, int(found.search.grid.lengths[row])
    best = found.sequences[row, 0, :length].astype(np.int64)
    result = []
    for place in range(length):
        used = grid.candidates[row, place] > PAD_ID
        words, own = grid.candidates[row, place, used].astype(np.int64), grid.scores[row, place, used]
        parts = {found.converter.grid_part: own.astype(np.float64)}
        if found.history:
            parts[NGRAM_PART] = _history_around(found.history, best, place, words)
        if found.paths:
            changed, _ = _changed(best, place, words, _DIVISION_CONTEXT)
            parts[DICTIONARY_PART] = found.paths.worth(changed)
        parts[WORDS_PART] = found.search.earned(row, best, place, words)
        result.append(_lead(parts, words, int(best[place]), found))
    return result


def _lead(
    parts: dict[str, np.ndarray], words: np.ndarray, winner: int, found: _Paths
) -> tuple[float, str, dict[str, float]]:
    totals = np.sum(list(parts.values()), axis=0)
    chosen = int(np.flatnonzero(words == winner)[0])
    probability = float(1 / np.exp(totals - totals[chosen]).sum())
    others = np.where(words == winner, -np.inf, totals)
    if others.max() == -np.inf:
        return probability, "", {}
    second = int(others.argmax())
    lead = {part: float(values[chosen] - values[second]) for part, values in parts.items()}
    return probability, found.search.decode([int(words[second])], found.converter.symbols), lead


def _changed(path: np.ndarray, place: int, words: np.ndarray, context: int) -> tuple[np.ndarray, int]:
    """The path (L,) around a place with each of some words (K,) there, (K, at most 2 · context + 1).

    Second, the number of the column of ``place``.
    """
    start = max(0, place - context)
    changed = np.repeat(path[None, start : place + context + 1], len(words), axis=0)
    changed[:, place - start] = words
    return changed, place - start


def _history_around(model: KnownHistory, path: np.ndarray, place: int, words: np.ndarray) -> np.ndarray:
    """What the model adds at a place of a path (L,) and where it still remembers the place, with each of some
    words (K,) there, (K,)."""
    changed, column = _changed(path, place, words, model.history)
    begun = np.pad(changed, ((0, 0), (model.history, 1)))  # the beginning, and the end
    total = np.zeros(len(words))
    for at in range(column, column + min(model.history, len(path) - place) + 1):
        total += model.log_probs(begun[:, at : at + model.history], begun[:, at + model.history, None])[:, 0]
    return total
