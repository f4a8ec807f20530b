"""Explains a conversion: the confidence of each character, its runner-up, and each model's part of the lead.

Each character has two estimates of its probability. Both tend to be too high, so the lower one is its
confidence: the fraction of the n best paths' probability that belongs to paths with it, and its probability
given all other characters. The second estimate also gives the runner-up, and the parts of the winner's lead
over it: how much the scores of the network (or of the readings), the n-gram model, the dictionary words, the
user words, and the language model of a second pass would fall if the runner-up replaced the winner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from model_language.batching import CONTEXT, windows
from model_language.converters.base import Converter
from model_language.language_model import SecondPass
from model_language.ngram.words import WordUnigram
from model_language.search.grid import Conversion, HistoryModel, MaskedHistory, MaskedPaths
from model_language.search.user_words import Span, written_spans
from model_language.search.word_bonus import GridWords
from model_language.vocabulary.symbols import PAD_ID
from utils.arrays import softmax

NGRAM_PART, DICTIONARY_PART, WORDS_PART = "n-gram", "words", "user words"
SECOND_PASS_PART = "language model"
LEAST_PATHS = 16
"""Least number of paths from which confidences are estimated."""
# Characters of a window for the language model of a second pass. It uses the 32 hanzi before each, fewer than
# the context of a window, so the windows change nothing.
_LONGEST_RESCORED = 3 * CONTEXT
# Positions whose candidates are rated together: more take more memory, and are hardly faster.
_TOGETHER = 64
# Hanzi before and after the exchanged ones that are divided into words again.
_DIVISION_CONTEXT = 24


@dataclass(frozen=True)
class FoundPaths:
    """The result of a search: sequences (B, n, L) of ids, scores (B, n), and the models of the search."""

    converter: Converter
    words: GridWords
    history: MaskedHistory | None
    paths: MaskedPaths | None
    sequences: np.ndarray
    scores: np.ndarray

    def with_best_of(self, other: FoundPaths) -> FoundPaths:
        """These paths and the best one of another search; a search for many paths may have lost that one."""
        sequences = np.concatenate([other.sequences[:, :1], self.sequences], axis=1)
        scores = np.concatenate([other.scores[:, :1], self.scores], axis=1)
        scores[:, 1:][(sequences[:, 1:] == sequences[:, :1]).all(axis=2)] = -np.inf
        return replace(self, sequences=sequences, scores=scores).in_order()

    def in_order(self) -> FoundPaths:
        """The same paths, those of each sentence sorted by score, the best first."""
        order = np.argsort(-self.scores, axis=1, kind="stable")
        sequences = np.take_along_axis(self.sequences, order[:, :, None], axis=1)
        return replace(self, sequences=sequences, scores=np.take_along_axis(self.scores, order, axis=1))

    def text(self, row: int, path: int) -> str:
        """The hanzi of a path."""
        return self.words.decode(self.sequences[row, path, : self.length(row)].tolist())

    def conversions(self, row: int, n: int) -> list[Conversion]:
        """Up to ``n`` paths of a sentence."""
        found = np.flatnonzero(self.scores[row] > -np.inf)[:n]
        return [Conversion(self.text(row, path), float(self.scores[row, path])) for path in found]

    def length(self, row: int) -> int:
        """Syllables of a sentence."""
        return int(self.words.grid.lengths[row])


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
        n_best: its conversions, the best first; the scores include the bonus of user words.
        characters: the characters of the best conversion.
        user_words: the user words in it.
    """

    n_best: tuple[Conversion, ...]
    characters: tuple[Character, ...]
    user_words: tuple[Span, ...]


def explanation(
    paths: FoundPaths, row: int, sentence: Sequence[str], spans: Sequence[Span], n: int
) -> Explanation:
    """A sentence with reasons, from the paths that a search has found.

    Args:
        paths, row: the result of the search and the sentence's row in it.
        sentence: its syllables.
        spans: user words whose syllables occur in it.
        n: number of conversions that are kept, of all from which the confidences are estimated.
    """
    conversions = paths.conversions(row, max(n, LEAST_PATHS))
    best = conversions[0].hanzi
    leads = leads_of_characters(paths, row)
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


def leads_of_characters(found: FoundPaths, row: int) -> list[tuple[float, str, dict[str, float]]]:
    """At each position of the best path: probability given the others, runner-up, lead by part."""
    best = found.sequences[row, 0, : found.length(row)].astype(np.int64)
    blocks = range(0, len(best), _TOGETHER)
    return [lead for start in blocks for lead in _leads_from(found, row, best, start)]


def _leads_from(
    found: FoundPaths, row: int, best: np.ndarray, start: int
) -> Iterator[tuple[float, str, dict[str, float]]]:
    """The same for a block of positions."""
    block = slice(start, min(start + _TOGETHER, len(best)))
    candidates, scores = found.words.grid.candidates[row, block], found.words.grid.scores[row, block]
    used = candidates > PAD_ID
    positions, hanzi = start + used.nonzero()[0], candidates[used].astype(np.int64)  # (E,)
    parts = {found.converter.score_kind: scores[used].astype(np.float64)}
    if found.history:
        parts[NGRAM_PART] = history_scores(found.history, best, positions, hanzi)
    if found.paths:
        ends = found.words.grid.word_ends
        ends = None if ends is None else ends[row, : len(best)]
        parts[DICTIONARY_PART] = word_scores(found.paths, best, positions, hanzi, ends)
    last = np.cumsum(used.sum(axis=1))
    for position, end in enumerate(last.tolist(), start):
        own = slice(end - used[position - start].sum(), end)
        at = {part: values[own] for part, values in parts.items()}
        at[WORDS_PART] = found.words.earned(row, best, position, hanzi[own])
        yield _lead(at, hanzi[own], int(best[position]), found.words)


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
    """The same with the lead over each runner-up by the language model.

    A long text is scored in windows: whole texts, one for each position, would take quadratic time and
    memory.
    """
    gained: list[float] = []
    for window in windows(len(best), _LONGEST_RESCORED):
        text = best[window.start : window.end]
        texts = [text] + [
            text[:position] + (runner_up or text[position]) + text[position + 1 :]
            for position, (_, runner_up, _) in enumerate(leads[window.first : window.last], window.kept.start)
        ]
        own = [
            Span(span.start - window.start, span.word)
            for span in spans
            if window.start <= span.start and span.end <= window.end
        ]
        (gains,) = second_pass.gains([texts], [[own] * len(texts)])
        gained += (gains[0] - gains[1:]).tolist()
    rows = zip(leads, gained, strict=True)
    return [
        (probability, runner_up, {**lead, SECOND_PASS_PART: by} if runner_up else lead)
        for (probability, runner_up, lead), by in rows
    ]


def history_scores(
    model: HistoryModel, path: np.ndarray, positions: np.ndarray, hanzi: np.ndarray
) -> np.ndarray:
    """The log-probabilities that depend on the exchanged hanzi, that of the end included: (E,) float64."""
    total, rows = np.zeros(len(positions)), np.arange(len(positions))
    for step in range(model.history + 1):
        rows = rows[positions[rows] + step <= len(path)]
        past, tokens = _read(path, positions[rows], hanzi[rows], step, model.history)
        total[rows] += model.score(past, np.arange(len(rows)), tokens)
    return total


def word_scores(
    model: WordUnigram | MaskedPaths,
    path: np.ndarray,
    positions: np.ndarray,
    hanzi: np.ndarray,
    ends: np.ndarray | None = None,
) -> np.ndarray:
    """The scores of the words around the exchanged hanzi, (E,) float64.

    Only differences between the candidates of a position are meaningful. ``ends``, (L,) bool: the known word
    ends; None: none is known.
    """
    first = max(0, positions[0] - _DIVISION_CONTEXT)
    around = slice(first, positions[-1] + 1 + _DIVISION_CONTEXT)
    texts = np.tile(path[around], (len(hanzi), 1))
    texts[np.arange(len(hanzi)), positions - first] = hanzi
    return model.scores(texts, None if ends is None else np.tile(ends[around], (len(hanzi), 1)))


def _read(
    path: np.ndarray, positions: np.ndarray, hanzi: np.ndarray, step: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is ``step`` hanzi after an exchange: the ``width`` hanzi before (E, width), and the hanzi (E,).

    Before the beginning and at the end of the path is id 0, the boundary.
    """
    read = sliding_window_view(np.pad(path, (width, 1)), width + 1)[positions + step]  # a copy
    if step <= width:
        read[:, width - step] = hanzi
    return np.ascontiguousarray(read[:, :-1]), read[:, -1].copy()
