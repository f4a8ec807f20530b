"""Second pass: a language model of hanzi rescores the best hypotheses that a search has found.

The models of a search see only two hanzi before each one, because they score every hypothesis; a language
model that sees the whole text before a hanzi is too slow for that. Its weighted log P(hanzi) is added to the
scores of the best hypotheses alone (n-best rescoring: Ostendorf et al. 1991, "Integration of Diverse
Recognition Methodologies Through Reevaluation of N-Best Sentence Hypotheses").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_language.language_model import HanziLanguageModel
from model_language.search.user_words import Span

RESCORING = 0.2
"""Default weight of the language model, used where none was chosen on dev speakers."""
RESCORED, NEAR = 8, 1.5
"""Conversions that the second pass may choose: this many, the best ones of the search, and only those whose
log-score is at most this much lower than the first one's. Errors and speed with others:
docs/what_helped.md."""
LEAST_USER_WORD_LOG_PROB = -4.0
"""Minimum log-probability of a hanzi in a user word: that of an average hanzi. The language model does not
know such words, and must not cancel their bonus."""


@dataclass(frozen=True)
class SecondPass:
    """Rescores hypotheses with a language model.

    Attributes:
        language_model: scores whole texts.
        weight: factor of its log-probabilities.
    """

    language_model: HanziLanguageModel
    weight: float

    def choose(self, texts: Sequence[Sequence[str]], scores: Sequence[np.ndarray]) -> list[int]:
        """The index of the best text of each utterance.

        Args:
            texts: the texts of each utterance, at least one, the best first.
            scores: their scores, (texts,) each, to which the weighted log-probabilities are added.
        """
        ratios = self.language_model.log_ratios(texts)
        return [int((own + self.weight * by).argmax()) for own, by in zip(scores, ratios, strict=True)]

    def gains(
        self, utterances: Sequence[Sequence[str]], words: Sequence[Sequence[Sequence[Span]]] | None = None
    ) -> list[np.ndarray]:
        """The weighted log-probability to add to the score of each hypothesis.

        Args:
            utterances: the hypotheses of each, in hanzi, the best first.
            words: user words whose syllables occur in each hypothesis; None: there are none.

        Returns:
            (hypotheses,) float64 for each utterance.
        """
        rated = self.language_model.log_probs_of_hypotheses(utterances)
        for texts, values, spans in zip(utterances, rated, words, strict=True) if words else ():
            for text, log_probs, found in zip(texts, values, spans, strict=True):
                _protect(text, log_probs, found)
        return [
            self.weight * np.array([log_probs.sum(dtype=np.float64) for log_probs in values])
            for values in rated
        ]


def near_the_best(scores: np.ndarray) -> np.ndarray:
    """How many conversions of each sentence the second pass may choose: (..., n) sorted scores → (...)."""
    return (scores[..., :RESCORED] >= scores[..., :1] - NEAR).sum(axis=-1)


def _protect(text: str, log_probs: np.ndarray, spans: Sequence[Span]) -> None:
    """Raise log-probabilities of user words below :data:`LEAST_USER_WORD_LOG_PROB` to it, in place."""
    for span in spans:
        if text[span.start : span.end] == span.word.hanzi:
            own = log_probs[span.start : span.end]
            own.clip(LEAST_USER_WORD_LOG_PROB, out=own)
