"""Interface of a trained acoustic model: features in, CTC logits out; implemented with and without Keras."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from utils.features.speech import FeatureConfig
from utils.vocabulary import Vocabulary


class AcousticLogits(Protocol):
    """An acoustic model, with Keras (:class:`~model_speech.acoustic_model.AcousticModel`) or without."""

    features: FeatureConfig
    vocabulary: Vocabulary

    @property
    def frame_seconds(self) -> float:
        """Seconds between two logit frames."""

    def logits(self, features: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """B feature arrays (frames, bins) → logits (B, T', classes) and lengths (B,) int32."""
