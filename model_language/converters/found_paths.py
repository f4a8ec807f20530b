"""Searches for the best conversions of sentences with user words; keeps the models for explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_language.converters.base import Converter
from model_language.language_model import SecondPass, near_the_best
from model_language.search.beam import beam_search
from model_language.search.grid import Conversion, Grid, MaskedHistory, MaskedPaths
from model_language.search.user_words import Span
from model_language.search.word_bonus import GridWords


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
        return self.words.decode(self.sequences[row, path, : self.length(row)])

    def conversions(self, row: int, n: int) -> list[Conversion]:
        """Up to ``n`` paths of a sentence."""
        found = np.flatnonzero(self.scores[row] > -np.inf)[:n]
        return [Conversion(self.text(row, path), float(self.scores[row, path])) for path in found]

    def length(self, row: int) -> int:
        """Syllables of a sentence."""
        return int(self.words.grid.lengths[row])


def search_rates(
    sentences: Sequence[Sequence[str]],
    spans: Sequence[Sequence[Span]],
    converter: Converter,
    count: int,
    scored: bool,
) -> list[tuple[FoundPaths, int]]:
    """The paths of each sentence at the error rate with the highest score, and the sentence's row there.

    If the best path at a high rate corrects nothing, it is also that of all lower rates, except for its
    score; so without ``scored`` such a sentence is searched only once.
    """
    first, *lower = converter.by_error_rate()
    paths = search_once(sentences, spans, first, count)
    best = [(paths, row) for row in range(len(sentences))]
    remaining = list(range(len(sentences)))
    if lower and not scored:
        remaining = first.corrects(sentences, paths.sequences[:, 0]).nonzero()[0].tolist()
    for single in lower if remaining else ():
        paths = search_once(
            [sentences[index] for index in remaining], [spans[index] for index in remaining], single, count
        )
        for row, index in enumerate(remaining):
            other, other_row = best[index]
            if paths.scores[row, 0] >= other.scores[other_row, 0]:
                best[index] = paths, row
    return best


def rescored(
    found: Sequence[tuple[FoundPaths, int]], spans: Sequence[Sequence[Span]], second_pass: SecondPass
) -> list[tuple[FoundPaths, int]]:
    """The paths of each sentence, rescored by the second pass and sorted by the new scores.

    The best one is chosen among the same paths as by :meth:`CombinedConverter.convert`: the score of another
    path is at most that of the best one.
    """
    texts = [
        [conversion.hanzi for conversion in paths.conversions(row, paths.scores.shape[1])]
        for paths, row in found
    ]
    gains = second_pass.gains(texts, [[own] * len(hanzi) for own, hanzi in zip(spans, texts, strict=True)])
    searches = {id(paths): paths for paths, _ in found}  # each has the paths of several sentences
    scores = {key: paths.scores.copy() for key, paths in searches.items()}
    for (paths, row), gain in zip(found, gains, strict=True):
        own = scores[id(paths)][row, : len(gain)]
        near = near_the_best(own)
        own += gain
        own[near:].clip(max=own[:near].max(), out=own[near:])
    ordered = {key: replace(paths, scores=scores[key]).in_order() for key, paths in searches.items()}
    return [(ordered[id(paths)], row) for paths, row in found]


def search_once(
    sentences: Sequence[Sequence[str]], spans: Sequence[Sequence[Span]], converter: Converter, count: int = 1
) -> FoundPaths:
    """The best ``count`` paths of each sentence with user words."""
    grid = converter.grid(sentences)
    found = _search_grid(grid, spans, converter, count)
    if count == 1 or np.isinf(converter.margin):
        return found
    return found.with_best_of(_search_grid(grid, spans, converter, 1))


def _search_grid(grid: Grid, spans: Sequence[Sequence[Span]], converter: Converter, count: int) -> FoundPaths:
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
    return FoundPaths(converter, words, history, paths, sequences, scores)
