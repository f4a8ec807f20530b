"""Shallow fusion: computes the scores that a language model of syllables adds in the CTC beam search.

The beam search maximises, over all sequences y,

    log P(y | audio) + weight · log P(y) + bonus · |y|

P(y | audio) comes from CTC, P(y) from a language model of syllables. The bonus for each of the |y| syllables
makes up for the language model's preference for short sequences (Hannun et al., arXiv:1408.2873, equation for
Q(Y); Gulcehre et al., arXiv:1503.03535, section 4.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

BOUNDARY = 0
"""The language model's id of the beginning and the end of a sentence."""


class SequenceModel(Protocol):
    """The language model of a fusion; its token ids are its own."""

    history: int  # number of previous tokens that it depends on

    def log_probs(self, histories: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """histories (N, history) int, oldest first, tokens (N, K) int → (N, K); id 0 is the boundary."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """A language model and its weight in the search.

    Attributes:
        model: the language model.
        ids: (classes,) int, the model's id of each acoustic class; -1 for a class that it doesn't score (the
            space).
        weight: factor of its log-probabilities, ≥ 0.
        bonus: added for each token that it scores.
    """

    model: SequenceModel
    ids: np.ndarray
    weight: float
    bonus: float

    @property
    def history(self) -> int:
        """Number of previous tokens that the model depends on."""
        return self.model.history

    @property
    def max_gain(self) -> float:
        """Upper bound of what one token can gain: log-probabilities are at most 0."""
        return max(self.bonus, 0.0)

    def gains(self, histories: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Scores that new tokens add to their prefixes.

        Args:
            histories: (M, history) ids of the model.
            classes: (M,) acoustic classes, one after each history.

        Returns:
            (M,) float64.
        """
        words = self.ids[classes]
        log_probs = self.model.log_probs(histories, np.maximum(words, 0)[:, None])[:, 0]
        return np.where(words >= 0, self.weight * log_probs.astype(np.float64) + self.bonus, 0.0)

    def extend_histories(self, histories: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Histories (R, N, history) after one more token each (R, N); token -1 leaves a history unchanged."""
        words = np.where(tokens >= 0, self.ids[tokens], -1)[..., None]  # (R, N, 1)
        return np.where(words >= 0, np.concatenate([histories[..., 1:], words], axis=2), histories)

    def end_gains(self, histories: np.ndarray) -> np.ndarray:
        """Scores that the end of the sentence adds after each history, (R, N, history) → (R, N)."""
        boundary = np.full((histories[..., 0].size, 1), BOUNDARY)
        log_probs = self.model.log_probs(histories.reshape(-1, self.history), boundary)
        return self.weight * log_probs.reshape(histories.shape[:2])

    def sequence_gain(self, tokens: Sequence[int]) -> float:
        """Score that the language model adds to a whole sequence of acoustic classes."""
        history, total = np.zeros((1, 1, self.history), np.int64), 0.0
        for token in tokens:
            classes = np.array([token])
            total += float(self.gains(history[0], classes)[0])
            history = self.extend_histories(history, classes[None])
        return total + float(self.end_gains(history)[0, 0])
