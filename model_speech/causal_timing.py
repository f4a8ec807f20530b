"""Timing of a causal acoustic model in a stream: stride, look-ahead, delay of its logits, and latency."""

from dataclasses import dataclass
from typing import ClassVar

from utils.features.settings import FeatureConfig
from utils.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class CausalTiming:
    """The timing of an acoustic model that a stream needs.

    Attributes:
        features: settings of the features that it was trained on.
        vocabulary: the tokens of its classes, in the order of the logits.
        time_stride: feature frames per logit frame.
        look_ahead: number of zero frames to append at the end of an utterance, a multiple of ``time_stride``.
        chunks_at_once: chunks that its streams take as a single longer one, if they have been waiting.
    """

    chunks_at_once: ClassVar[int] = 1

    features: FeatureConfig
    vocabulary: Vocabulary
    time_stride: int
    look_ahead: int

    @property
    def delay(self) -> int:
        """Number of logit frames before the first one that belongs to the audio."""
        return self.look_ahead // self.time_stride

    @property
    def frame_seconds(self) -> float:
        """Seconds between two logit frames."""
        return self.time_stride * self.features.hop_seconds

    @property
    def look_ahead_seconds(self) -> float:
        """Latency of a logit frame after its audio has ended: look-ahead and overlap of feature frames."""
        overlap = self.features.frame_samples - self.features.hop_samples
        return self.look_ahead * self.features.hop_seconds + overlap / self.features.sample_rate
