"""The output of an acoustic model for a recording, as an error report shows it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Inspection:
    """The output of an acoustic model for a recording.

    Attributes:
        posteriors: (T', classes) float32, the probability of each class.
        classes: the tokens of the classes; the last one is the blank.
        frame_seconds: time from one frame to the next.
        start: where the first frame begins, in seconds from the start of the recording; negative if silence
            was added before it.
    """

    posteriors: np.ndarray
    classes: tuple[str, ...]
    frame_seconds: float
    start: float = 0.0

    def frames(self, seconds: np.ndarray) -> np.ndarray:
        """The frame at each time (n,) in the recording, (n,) int: the first or the last one if outside."""
        frames = ((seconds - self.start) / self.frame_seconds).astype(int)
        return np.clip(frames, 0, len(self.posteriors) - 1)
