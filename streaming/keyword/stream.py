"""Samples of any length in; the probabilities of a streamed keyword model, one row a call, out. NumPy only.

Features are made frame by frame; what doesn't fill a call of the model waits for the next samples.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from utils.features.keyword import FeatureStream, KeywordFeatureConfig
from utils.softmax import softmax


class Stepped(Protocol):
    """A streamed model in any runtime."""

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """The next chunk (1, size, …) → logits (1, labels)."""

    def reset(self) -> None:
        """Forget what was heard."""


class KeywordStream:
    """What a keyword model makes of endless sound.

    Args:
        model: streamed, of one answer a call.
        features: settings of its front end.
        chunk: frames a call (samples, for the kind ``raw``).
    """

    def __init__(self, model: Stepped, features: KeywordFeatureConfig, chunk: int):
        self._model, self._chunk = model, chunk
        self._features = FeatureStream(features)
        hop = 1 if features.kind == "raw" else features.stride_samples
        self.call_seconds = chunk * hop / features.sample_rate
        self._waiting: np.ndarray | None = None

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Take the next samples.

        Args:
            samples: (n,) floats in [-1, 1] at the front end's sample rate, n of any size.

        Returns:
            (calls, labels) float64, a row for each call that the samples completed; (0, 0) for none.
        """
        frames = self._features.feed(samples)
        waiting = frames if self._waiting is None else np.concatenate([self._waiting, frames])
        calls = len(waiting) // self._chunk
        self._waiting = waiting[calls * self._chunk :]
        if not calls:
            return np.zeros((0, 0))
        chunks = waiting[: calls * self._chunk].reshape(calls, 1, self._chunk, *waiting.shape[1:])
        return softmax(np.concatenate([self._model.step(chunk) for chunk in chunks]))

    def reset(self) -> None:
        """Forget all that was heard."""
        self._model.reset()
        self._waiting = None
        self._features.reset()
