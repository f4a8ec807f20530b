"""A converter with user words, which get a bonus in the search, and with reasons for its results.

It has the methods of a plain converter; `explain` also gives confidences, alternatives and reasons.
"""

from collections.abc import Iterator, Sequence

from model_language.batching import length_batches
from model_language.converters.base import Converter
from model_language.converters.explanation import LEAST_PATHS, Explanation, explanation
from model_language.converters.found_paths import FoundPaths, rescored, search_rates
from model_language.search.grid import Conversion
from model_language.search.user_words import Span, UserWords


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

    def scores(self, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]) -> list[float]:
        """See :meth:`Converter.scores`; without the bonus of user words."""
        return self.converter.scores(sentences, hanzi)

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
