"""A language model over the acoustic classes in, what it adds to prefixes of the beam search out: NumPy only.

Shallow fusion: the search looks for the sequence y of the highest

    log P(y | audio) + weight · log P(y) + bonus · |y|

with P(y | audio) from CTC, P(y) from a model of syllables alone, and a bonus for each of the |y| syllables,
since a language model likes short sequences (Hannun et al., arXiv:1408.2873, equation for Q(Y); Gulcehre et
al., arXiv:1503.03535, section 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

BOUNDARY = 0
"""Id of a language model's model for the beginning and the end of a sentence."""


class SequenceModel(Protocol):
    """What a language model must offer to be fused; its ids are its own."""

    history: int  # how many tokens back it looks

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """histories (N, history) int, oldest first, words (N, K) int → (N, K); id 0 is the boundary."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """A language model and the strength of its say.

    Attributes:
        model: the language model.
        ids: (classes,) int, its id of each acoustic class; -1 for a class that it doesn't score (the space).
        weight: factor of its log-probabilities, ≥ 0.
        bonus: added for each token that it scores.
    """

    model: SequenceModel
    ids: np.ndarray
    weight: float
    bonus: float

    @property
    def history(self) -> int:
        """How many tokens back the model looks."""
        return self.model.history

    @property
    def most(self) -> float:
        """The most that a token can gain: log-probabilities are at most 0."""
        return max(self.bonus, 0.0)

    def gains(self, histories: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """What extensions add to their prefixes' scores.

        Args:
            histories: (M, history) ids of the model.
            classes: (M,) acoustic classes, one after each history.

        Returns:
            (M,) float64.
        """
        words = self.ids[classes]
        found = self.model.log_probs(histories, np.maximum(words, 0)[:, None])[:, 0]
        return np.where(words >= 0, self.weight * found.astype(np.float64) + self.bonus, 0.0)

    def remember(self, histories: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Histories (R, N, history) after one more token each (R, N); -1 stands for none."""
        words = np.where(tokens >= 0, self.ids[tokens], -1)[..., None]  # (R, N, 1)
        return np.where(words >= 0, np.concatenate([histories[..., 1:], words], axis=2), histories)

    def ends(self, histories: np.ndarray) -> np.ndarray:
        """What the end of the sentence adds after each history, (R, N, history) → (R, N)."""
        boundary = np.full((histories[..., 0].size, 1), BOUNDARY)
        found = self.model.log_probs(histories.reshape(-1, self.history), boundary)
        return self.weight * found.reshape(histories.shape[:2])
