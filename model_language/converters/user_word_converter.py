"""A converter with user words, which get a bonus in the search, and with reasons for its results.

It has the methods of a plain converter; `explain` also gives confidences, alternatives and reasons.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from model_language.batching import length_batches
from model_language.converters.base import Converter, near_the_best
from model_language.converters.explanation import LEAST_PATHS, Explanation, FoundPaths, explanation
from model_language.language_model import SecondPass
from model_language.search.beam import beam_search
from model_language.search.grid import Conversion, Grid, MaskedHistory, MaskedPaths
from model_language.search.user_words import Span, UserWords
from model_language.search.word_bonus import GridWords


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
        """The best hanzi of each sentence, exactly one character for each syllable.

        :meth:`UserWords.text` shows words with Latin letters in them, here and in all other results.
        """
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

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :meth:`Converter.scores`; without the bonus of user words."""
        return self.converter.scores(sentences, hanzi)

    def word_starts(self, hanzi: str) -> list[int]:
        """See :meth:`Converter.word_starts`; no word begins inside a user word."""
        inside = {index for span in self.words.spans_in(hanzi) for index in range(span.start + 1, span.end)}
        return [start for start in self.converter.word_starts(hanzi) if start not in inside]

    def explain(
        self, sentences: Sequence[Sequence[str]], n: int = 1, reasons: bool = True
    ) -> list[Explanation]:
        """Up to ``n`` conversions of each sentence, with confidences and reasons, which are most of the work.

        Without ``reasons`` the conversions are the same, without characters and used words.
        """
        spans = [self.words.spans(sentence) for sentence in sentences]
        result = [Explanation((Conversion("", 0.0),), (), ())] * len(sentences)
        indices = range(len(sentences))
        for index, paths, row in self._search(sentences, spans, indices, count=max(n, LEAST_PATHS)):
            if reasons:
                result[index] = explanation(paths, row, sentences[index], spans[index], n)
            else:
                result[index] = Explanation(tuple(paths.conversions(row, n)), (), ())
        return result

    def _search(
        self,
        sentences: Sequence[Sequence[str]],
        spans: Sequence[Sequence[Span]],
        indices: Sequence[int],
        count: int = 1,
        scored: bool = True,
    ) -> Iterator[tuple[int, FoundPaths, int]]:
        """The best ``count`` paths of the sentences at ``indices``, batch by batch, as index, paths, row.

        A second pass chooses the best one among several.
        """
        second_pass = self.converter.second_pass
        count = max(count, LEAST_PATHS) if second_pass else count
        # Several paths of a sentence need more memory than the best one.
        budget = self.converter.batch_syllables // (4 if count > 1 else 1)
        for batch in length_batches([len(sentences[index]) for index in indices], max(1, budget)):
            chosen = [indices[number] for number in batch]
            own_spans = [spans[index] for index in chosen]
            found = search_rates(
                [sentences[index] for index in chosen], own_spans, self.converter, count, scored
            )
            if second_pass:
                found = rescored(found, own_spans, second_pass)
            yield from ((index, paths, row) for index, (paths, row) in zip(chosen, found, strict=True))


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


AnyConverter = Converter | UserWordConverter
"""A converter, with or without user words."""
