"""Log-probabilities of Chinese text by a trained language model of hanzi; needs no framework."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from model_language.batching import length_batches
from model_language.networks.causal_cnn_numpy import WEIGHTS_FILE, CausalCnnWeights, NumpyCausalCnn
from utils.errors import RunError
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary

BATCH_HANZI = 20_000  # hanzi and sentence ends computed together: 240 MB with the shipped model


class HanziLanguageModel:
    """A causal language model of hanzi: the log-probability of each character, given those before it.

    Args:
        network: computes the log-probabilities of sequences of ids.
        vocabulary: the hanzi of its ids.

    Raises:
        RunError: network and vocabulary have different sizes.
    """

    def __init__(self, network: NumpyCausalCnn, vocabulary: Vocabulary):
        if network.size != len(vocabulary):
            raise RunError(
                f"the language model has {network.size} hanzi, its vocabulary {len(vocabulary)}",
                hint="copy the whole run folder again",
            )
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
        return self._network.log_probs_of_hypotheses(self._encoded(utterances))

    def log_ratios(self, utterances: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """How much more probable each hypothesis is than the first one of its utterance.

        The same as the differences of the sums of :meth:`log_probs_of_hypotheses`, in less time: what the
        hypotheses have in common is not computed.

        Returns:
            (hypotheses,) float64 each, natural logarithms; the first value is 0.
        """
        return self._network.log_ratios(self._encoded(utterances))

    def _encoded(self, utterances: Sequence[Sequence[str]]) -> list[list[np.ndarray]]:
        return [[self._vocabulary.encode_or_unknown(text) for text in texts] for texts in utterances]


def language_model_parts(run: RunFolder, config: Any) -> list[Path]:
    """The files that :func:`load_hanzi_language_model` reads."""
    return [run.vocabulary("hanzi.txt"), run.path / WEIGHTS_FILE]


def load_hanzi_language_model(run: RunFolder, config: Any) -> HanziLanguageModel:
    """The language model of a finished run.

    Raises:
        RunError: a part is missing or damaged.
    """
    vocabulary, weights = map(run.part, language_model_parts(run, config))
    return HanziLanguageModel(NumpyCausalCnn(CausalCnnWeights.load(weights)), Vocabulary.load(vocabulary))
