"""Runs a streamed keyword model with its front end on samples in pieces of any length.

The output is a row of label probabilities per call of the model.
"""

import numpy as np

from streaming.chunks import ChunkBuffer, StreamedModel
from utils.features.keyword import KeywordFeatureConfig, KeywordFeatureStream
from utils.softmax import softmax


class KeywordStream:
    """A keyword model with its front end, for endless audio.

    Args:
        model: streamed model with one output per call.
        features: settings of its front end.
        chunk: frames per call (samples, for the kind ``raw``).
    """

    def __init__(self, model: StreamedModel, features: KeywordFeatureConfig, chunk: int):
        self._model, self._chunks = model, ChunkBuffer(chunk)
        self._features = KeywordFeatureStream(features)
        hop = 1 if features.kind == "raw" else features.stride_samples
        self.call_seconds = chunk * hop / features.sample_rate

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Process the next samples.

        Args:
            samples: (n,) floats in [-1, 1] at the front end's sample rate, n of any size.

        Returns:
            (calls, labels) float64, a row for each call that the samples complete; (0, 0) if there is none.
        """
        chunks = self._chunks.feed(self._features.feed(samples))
        if not len(chunks):
            return np.zeros((0, 0))
        return softmax(np.concatenate([self._model.step(chunk) for chunk in chunks]))

    def reset(self) -> None:
        """Start a new stream."""
        self._model.reset()
        self._chunks.reset()
        self._features.reset()
