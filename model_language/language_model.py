"""Log-probabilities of Chinese text by a trained language model of hanzi; needs no framework.

As a second pass (:class:`SecondPass`) it rescores the best hypotheses that a search has found. The models of
a search see only two hanzi before each one, because they score every hypothesis; a language model that sees
the whole text before a hanzi is too slow for that. Its weighted log P(hanzi) is added to the scores of the
best hypotheses alone (n-best rescoring: Ostendorf et al. 1991, "Integration of Diverse Recognition
Methodologies Through Reevaluation of N-Best Sentence Hypotheses").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model_language.batching import length_batches
from model_language.networks.causal_cnn_numpy import CausalCnnWeights, NumpyCausalCnn
from model_language.search.user_words import Span
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary

BATCH_HANZI = 20_000  # hanzi and sentence ends computed together: 240 MB with the shipped model
RESCORING = 0.2
"""Default weight of the language model, used where none was chosen on dev speakers."""
LEAST_USER_WORD_LOG_PROB = -4.0
"""Minimum log-probability of a hanzi in a user word: that of an average hanzi. The language model does not
know such words, and must not cancel their bonus."""


class HanziLanguageModel:
    """A causal language model of hanzi: the log-probability of each character, given those before it.

    Args:
        network: computes the log-probabilities of sequences of ids.
        vocabulary: the hanzi of its ids.
    """

    def __init__(self, network: NumpyCausalCnn, vocabulary: Vocabulary):
        self._network, self._vocabulary = network, vocabulary

    def log_probs(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Natural log-probabilities of each text's characters and of its end, (length + 1,) float32 each.

        Characters outside the vocabulary count as one unknown character. Common prefixes of the texts of a
        batch are computed once.
        """
        encoded = [self._vocabulary.encode_or_unknown(text) for text in texts]
        found: dict[int, np.ndarray] = {}
        for batch in length_batches([len(ids) + 1 for ids in encoded], BATCH_HANZI):
            found |= zip(batch.tolist(), self._network.log_probs([encoded[i] for i in batch]), strict=True)
        return [found[index] for index in range(len(texts))]

    def log_probs_of_hypotheses(self, utterances: Sequence[Sequence[str]]) -> list[list[np.ndarray]]:
        """As :meth:`log_probs` for the hypotheses of several utterances, the best first.

        Hypotheses of an utterance share one computation after the same last hanzi
        (:const:`model_language.networks.causal_cnn_numpy.SHARED_HISTORY`).

        Returns:
            (length + 1,) float32 for each hypothesis of each utterance.
        """
        encoded = [[self._vocabulary.encode_or_unknown(text) for text in texts] for texts in utterances]
        return self._network.log_probs_of_hypotheses(encoded)


def load_hanzi_language_model(run: RunFolder, config: Any) -> HanziLanguageModel:
    """The language model of a finished run.

    Raises:
        RunError: a part is missing or damaged.
    """
    vocabulary, weights = map(run.part, (run.vocabulary("hanzi.txt"), run.causal_network))
    return HanziLanguageModel(NumpyCausalCnn(CausalCnnWeights.load(weights)), Vocabulary.load(vocabulary))


@dataclass(frozen=True)
class SecondPass:
    """Rescores hypotheses with a language model.

    Attributes:
        language_model: scores whole texts.
        weight: factor of its log-probabilities.
    """

    language_model: HanziLanguageModel
    weight: float

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


def _protect(text: str, log_probs: np.ndarray, spans: Sequence[Span]) -> None:
    """Raise log-probabilities of user words below :data:`LEAST_USER_WORD_LOG_PROB` to it, in place."""
    for span in spans:
        if text[span.start : span.end] == span.word.hanzi:
            own = log_probs[span.start : span.end]
            own.clip(LEAST_USER_WORD_LOG_PROB, out=own)
