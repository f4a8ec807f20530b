"""A converter with user words, which get a bonus in the search, and with reasons for its results.

It has the calls of a plain converter; `explain` also gives confidences, alternatives and reasons. Each
character has two estimates of its probability. Both tend to be too high, so the lower one is its confidence:
the share of the n best paths' probability that falls on paths with it, and its probability if all other
characters are taken for granted. The second estimate also gives the runner-up, and the parts of the winner's
lead over it: how much the network (or the readings), the n-gram model, the words of a dictionary, the user
words, and the language model of a second pass would lose by the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_language.batching import length_batches
from model_language.converters.base import Converter
from model_language.search.beam import beam_search
from model_language.search.grid import Conversion, Grid, HistoryModel, MaskedHistory, MaskedPaths
from model_language.search.second_pass import SecondPass
from model_language.search.user_words import Span, UserWords, written_spans
from model_language.search.word_bonus import GridWords
from model_language.vocabulary.symbols import PAD_ID
from utils.softmax import softmax

NGRAM_PART, DICTIONARY_PART, WORDS_PART = "n-gram", "words", "user words"
SECOND_PASS_PART = "language model"
# Hanzi on each side that are divided into words again when one is exchanged.
_DIVISION_CONTEXT = 24
_PATHS = 16  # least number of paths from which confidences are estimated


@dataclass(frozen=True)
class Character:
    """A character of a conversion and the reasons for it.

    Attributes:
        hanzi: the character.
        syllable: the syllable that it is written for.
        confidence: estimated probability that it is right, 0 to 1.
        runner_up: the next best character for the syllable; empty if there is no other.
        lead: for each part of the score, the difference to the runner-up's (natural logarithm); the sum of
            the differences decides.
    """

    hanzi: str
    syllable: str
    confidence: float
    runner_up: str
    lead: dict[str, float]


@dataclass(frozen=True)
class Explanation:
    """A converted sentence with reasons.

    Attributes:
        n_best: ways to write it, the best first; the scores include the bonus of user words.
        characters: the characters of the best way.
        user_words: the user words in it.
    """

    n_best: tuple[Conversion, ...]
    characters: tuple[Character, ...]
    user_words: tuple[Span, ...]


class UserWordConverter:
    """A converter that prefers user words and explains its results.

    A sentence without the syllables of a user word is converted as by the converter alone.

    Args:
        converter: any converter.
        words: may be empty.
    """

    def __init__(self, converter: Converter, words: UserWords):
        self.converter, self.words = converter, words

    def convert(self, sentences: Sequence[Sequence[str]]) -> list[str]:
        """The best hanzi of each sentence, exactly one character for each syllable."""
        spans = [self.words.spans(sentence) for sentence in sentences]
        plain = [index for index, found in enumerate(spans) if not found]
        converted = [""] * len(sentences)
        texts = self.converter.convert([sentences[index] for index in plain])
        for index, hanzi in zip(plain, texts, strict=True):
            converted[index] = hanzi
        with_words = [index for index, found in enumerate(spans) if found]
        for index, paths, row in self._search(sentences, spans, with_words, scored=False):
            converted[index] = paths.text(row, 0)
        return converted

    def best(self, sentences: Sequence[Sequence[str]]) -> list[Conversion]:
        """The best hanzi of each sentence with their score, which includes the bonus of user words."""
        best = [Conversion("", 0.0)] * len(sentences)
        spans = [self.words.spans(sentence) for sentence in sentences]
        for index, paths, row in self._search(sentences, spans, range(len(sentences))):
            best[index] = paths.conversions(row, 1)[0]
        return best

    def n_best(self, sentence: Sequence[str], n: int) -> list[Conversion]:
        """Up to ``n`` ways to write a sentence, the most probable first."""
        spans = self.words.spans(sentence)
        if not spans and not self.converter.second_pass:
            return self.converter.n_best(sentence, n)
        ((_, paths, row),) = self._search([sentence], [spans], [0], count=n)
        return paths.conversions(row, n)

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :meth:`Converter.scores`; without the bonus of user words."""
        return self.converter.scores(sentences, hanzi)

    def explain(self, sentences: Sequence[Sequence[str]], n: int = 1) -> list[Explanation]:
        """Convert sentences, with ``n`` ways to write each, confidences and reasons."""
        spans = [self.words.spans(sentence) for sentence in sentences]
        result = [Explanation((Conversion("", 0.0),), (), ())] * len(sentences)
        indices = range(len(sentences))
        for index, paths, row in self._search(sentences, spans, indices, count=max(n, _PATHS)):
            result[index] = _explain(paths, row, sentences[index], spans[index], n)
        return result

    def _search(
        self,
        sentences: Sequence[Sequence[str]],
        spans: Sequence[Sequence[Span]],
        indices: Sequence[int],
        count: int = 1,
        scored: bool = True,
    ) -> Iterator[tuple[int, _Paths, int]]:
        """The best ``count`` paths of the sentences at ``indices``, batch by batch, as index, paths, row.

        A second pass chooses the best one among several.
        """
        second_pass = self.converter.second_pass
        count = max(count, _PATHS) if second_pass else count
        # Several paths of a sentence need more memory than the best one.
        budget = self.converter.batch_syllables // (4 if count > 1 else 1)
        for batch in length_batches([len(sentences[index]) for index in indices], max(1, budget)):
            chosen = [indices[number] for number in batch]
            own_spans = [spans[index] for index in chosen]
            found = _search_rates(
                [sentences[index] for index in chosen], own_spans, self.converter, count, scored
            )
            if second_pass:
                found = _rated_again(found, own_spans, second_pass)
            yield from ((index, paths, row) for index, (paths, row) in zip(chosen, found, strict=True))


@dataclass(frozen=True)
class _Paths:
    """The result of a search: sequences (B, n, L) of ids, scores (B, n), and the parts of the search."""

    converter: Converter
    words: GridWords
    history: MaskedHistory | None
    paths: MaskedPaths | None
    sequences: np.ndarray
    scores: np.ndarray

    def with_best_of(self, other: _Paths) -> _Paths:
        """With the best path of another search, which a search for many different paths may have lost."""
        sequences = np.concatenate([other.sequences[:, :1], self.sequences], axis=1)
        scores = np.concatenate([other.scores[:, :1], self.scores], axis=1)
        scores[:, 1:][(sequences[:, 1:] == sequences[:, :1]).all(axis=2)] = -np.inf
        return replace(self, sequences=sequences, scores=scores).in_order()

    def in_order(self) -> _Paths:
        """With the best path of each sentence first."""
        order = np.argsort(-self.scores, axis=1, kind="stable")
        sequences = np.take_along_axis(self.sequences, order[:, :, None], axis=1)
        return replace(self, sequences=sequences, scores=np.take_along_axis(self.scores, order, axis=1))

    def text(self, row: int, path: int) -> str:
        """The hanzi of a path."""
        return self.words.decode(self.sequences[row, path, : self.length(row)])

    def conversions(self, row: int, n: int) -> list[Conversion]:
        """Up to ``n`` paths of a sentence."""
        found = np.flatnonzero(self.scores[row] > -np.inf)[:n]
        return [Conversion(self.text(row, path), float(self.scores[row, path])) for path in found]

    def length(self, row: int) -> int:
        """Syllables of a sentence."""
        return int(self.words.grid.lengths[row])


def _search_rates(
    sentences: Sequence[Sequence[str]],
    spans: Sequence[Sequence[Span]],
    converter: Converter,
    count: int,
    scored: bool,
) -> list[tuple[_Paths, int]]:
    """The paths of each sentence at the error rate with the highest score, and the sentence's row there.

    If the best path at a high rate corrects nothing, it is also that of all lower rates, except for its
    score; so without ``scored`` such a sentence is searched only once.
    """
    first, *lower = converter.by_error_rate()
    paths = _search_once(sentences, spans, first, count)
    best = [(paths, row) for row in range(len(sentences))]
    again = list(range(len(sentences)))
    if lower and not scored:
        again = first.corrects(sentences, paths.sequences[:, 0]).nonzero()[0].tolist()
    for single in lower if again else ():
        paths = _search_once(
            [sentences[index] for index in again], [spans[index] for index in again], single, count
        )
        for row, index in enumerate(again):
            other, other_row = best[index]
            if paths.scores[row, 0] >= other.scores[other_row, 0]:
                best[index] = paths, row
    return best


def _rated_again(
    found: Sequence[tuple[_Paths, int]], spans: Sequence[Sequence[Span]], second_pass: SecondPass
) -> list[tuple[_Paths, int]]:
    """The paths of each sentence with the gains of the second pass, in their new order."""
    texts = [
        [conversion.hanzi for conversion in paths.conversions(row, paths.scores.shape[1])]
        for paths, row in found
    ]
    gains = second_pass.gains(texts, [[own] * len(ways) for own, ways in zip(spans, texts, strict=True)])
    searches = {id(paths): paths for paths, _ in found}  # each has the paths of several sentences
    scores = {key: paths.scores.copy() for key, paths in searches.items()}
    for (paths, row), gain in zip(found, gains, strict=True):
        scores[id(paths)][row, : len(gain)] += gain
    rated = {key: replace(paths, scores=scores[key]).in_order() for key, paths in searches.items()}
    return [(rated[id(paths)], row) for paths, row in found]


def _search_once(
    sentences: Sequence[Sequence[str]], spans: Sequence[Sequence[Span]], converter: Converter, count: int = 1
) -> _Paths:
    """The best ``count`` paths of each sentence with user words."""
    grid = converter.grid(sentences)
    found = _search_grid(grid, spans, converter, count)
    if count == 1 or np.isinf(converter.margin):
        return found
    return found.with_best_of(_search_grid(grid, spans, converter, 1))


def _search_grid(grid: Grid, spans: Sequence[Sequence[Span]], converter: Converter, count: int) -> _Paths:
    """The best ``count`` paths: several from all candidates, a single one from the promising candidates."""
    words = GridWords(grid if count > 1 else converter.narrow(grid), spans, converter.symbols, grid)
    size = len(converter.symbols.hanzi)
    history = MaskedHistory(converter.history_model, size) if converter.history_model else None
    paths = MaskedPaths(converter.path_model, size) if converter.path_model else None
    beam = max(converter.beam, 4 * count if history else count) if count > 1 else converter.beam
    margin = converter.margin if count == 1 else np.inf  # improbable alternatives are results too
    sequences, scores = beam_search(
        words.grid, beam, margin, np.inf, history, paths, bonus=words, n_best=count
    )
    return _Paths(converter, words, history, paths, sequences, scores)


def _explain(paths: _Paths, row: int, sentence: Sequence[str], spans: Sequence[Span], n: int) -> Explanation:
    conversions = paths.conversions(row, max(n, _PATHS))
    best = conversions[0].hanzi
    leads = _leads(paths, row)
    if paths.converter.second_pass:
        leads = _with_second_pass(leads, best, spans, paths.converter.second_pass)
    columns = zip(best, sentence, _path_fractions(conversions), leads, strict=True)
    characters = [
        Character(hanzi, syllable, min(fraction, probability), runner_up, lead)
        for hanzi, syllable, fraction, (probability, runner_up, lead) in columns
    ]
    return Explanation(tuple(conversions[:n]), tuple(characters), written_spans(spans, best))


def _path_fractions(conversions: Sequence[Conversion]) -> list[float]:
    """Of each character of the best conversion, the fraction of all that have it, by probability."""
    logs = np.array([conversion.score for conversion in conversions])
    characters = np.array([list(conversion.hanzi) for conversion in conversions])  # (n, L)
    return (softmax(logs) @ (characters == characters[0])).tolist()


def _leads(found: _Paths, row: int) -> list[tuple[float, str, dict[str, float]]]:
    """At each position of the best path: probability given the others, runner-up, lead by part."""
    grid, length = found.words.grid, found.length(row)
    best = found.sequences[row, 0, :length].astype(np.int64)
    leads = []
    for position in range(length):
        used = grid.candidates[row, position] > PAD_ID
        hanzi, own = grid.candidates[row, position, used].astype(np.int64), grid.scores[row, position, used]
        parts = {found.converter.score_kind: own.astype(np.float64)}
        if found.history:
            parts[NGRAM_PART] = _history_around(found.history, best, position, hanzi)
        if found.paths:
            changed, _ = _exchanged(best, position, hanzi, _DIVISION_CONTEXT)
            parts[DICTIONARY_PART] = found.paths.scores(changed)
        parts[WORDS_PART] = found.words.earned(row, best, position, hanzi)
        leads.append(_lead(parts, hanzi, int(best[position]), found.words))
    return leads


def _lead(
    parts: dict[str, np.ndarray], hanzi: np.ndarray, winner: int, words: GridWords
) -> tuple[float, str, dict[str, float]]:
    totals = np.sum(list(parts.values()), axis=0)
    chosen = int(np.flatnonzero(hanzi == winner)[0])
    probability = float(1 / np.exp(totals - totals[chosen]).sum())
    others = np.where(hanzi == winner, -np.inf, totals)
    if others.max() == -np.inf:
        return probability, "", {}
    second = int(others.argmax())
    lead = {part: float(values[chosen] - values[second]) for part, values in parts.items()}
    return probability, words.decode([int(hanzi[second])]), lead


def _with_second_pass(
    leads: Sequence[tuple[float, str, dict[str, float]]],
    best: str,
    spans: Sequence[Span],
    second_pass: SecondPass,
) -> list[tuple[float, str, dict[str, float]]]:
    """The same with the lead over each runner-up by the language model."""
    texts = [best] + [
        best[:position] + (runner_up or best[position]) + best[position + 1 :]
        for position, (_, runner_up, _) in enumerate(leads)
    ]
    (gains,) = second_pass.gains([texts], [[spans] * len(texts)])
    rows = zip(leads, (gains[0] - gains[1:]).tolist(), strict=True)
    return [
        (probability, runner_up, {**lead, SECOND_PASS_PART: by} if runner_up else lead)
        for (probability, runner_up, lead), by in rows
    ]


def _exchanged(path: np.ndarray, position: int, hanzi: np.ndarray, context: int) -> tuple[np.ndarray, int]:
    """A path (L,) around a position with each of some hanzi (K,) there: (K, at most 2 · context + 1).

    The second result is the column of ``position``.
    """
    start = max(0, position - context)
    exchanged = np.repeat(path[None, start : position + context + 1], len(hanzi), axis=0)
    exchanged[:, position - start] = hanzi
    return exchanged, position - start


def _history_around(model: HistoryModel, path: np.ndarray, position: int, hanzi: np.ndarray) -> np.ndarray:
    """The scores of a path (L,) that depend on a position, with each of some hanzi (K,) there: (K,)."""
    exchanged, column = _exchanged(path, position, hanzi, model.history)
    begun = np.pad(exchanged, ((0, 0), (model.history, 1)))  # the beginning and the end of the sentence
    total = np.zeros(len(hanzi))
    for at in range(column, column + min(model.history, len(path) - position) + 1):
        total += model.log_probs(begun[:, at : at + model.history], begun[:, at + model.history, None])[:, 0]
    return total
