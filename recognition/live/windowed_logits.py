"""Computes the logits of live audio with an acoustic model that needs whole utterances, as they become final.

The counterpart of :class:`streaming.speech.stream.LogitStream` for acoustic models like the one that ships.
The last :data:`WINDOW_SECONDS` are computed again and again; a row (the logits of one output frame) is final
when :data:`RIGHT_SECONDS` of sound have followed it. Rows depend on the samples only, not on the pieces in
which they come.
"""

import numpy as np

from model_speech.acoustic_logits import AcousticLogits
from utils.features.speech import extract_features

WINDOW_SECONDS = 3.2  # the sound that is computed at once
HOP_SECONDS = 0.4  # from one computation to the next: the cost is WINDOW / HOP times that of a recording
RIGHT_SECONDS = 0.4  # the sound after a row that is needed before the row is final


class WindowedLogits:
    """Samples → rows of logits, one row per output frame.

    Args:
        acoustic: computes whole utterances.
    """

    def __init__(self, acoustic: AcousticLogits):
        self._acoustic = acoustic
        seconds = acoustic.frame_seconds
        self._row = round(seconds * acoustic.features.sample_rate)  # samples
        self._window, self._hop, self._right = (
            max(1, round(length / seconds)) * self._row
            for length in (WINDOW_SECONDS, HOP_SECONDS, RIGHT_SECONDS)
        )
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._pending = np.zeros(0, np.float32)  # less than a hop
        self._sound, self._origin = np.zeros(0, np.float32), 0  # samples in memory, rows before the first
        self._rows = 0  # returned so far

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Process the next samples (n,) in [-1, 1]; return the rows that become final, (m, C) float32."""
        self._pending = np.concatenate([self._pending, samples])
        found = [np.zeros((0, len(self._acoustic.vocabulary)), np.float32)]
        while len(self._pending) >= self._hop:
            found.append(self._step(self._pending[: self._hop], self._right))
            self._pending = self._pending[self._hop :]
        return np.concatenate(found)

    def flush(self) -> np.ndarray:
        """Return the rows that the end of the audio completes, (m, C); then `reset`."""
        rows = self._step(self._pending, 0)
        self.reset()
        return rows

    def _step(self, samples: np.ndarray, right: int) -> np.ndarray:
        """Compute the window that ends with these samples; the rows before the last ``right`` samples."""
        self._sound = np.concatenate([self._sound, samples])
        dropped = max(0, -(-(len(self._sound) - self._window) // self._row))
        self._sound, self._origin = self._sound[dropped * self._row :], self._origin + dropped
        if not len(self._sound):
            return np.zeros((0, len(self._acoustic.vocabulary)), np.float32)
        logits, lengths = self._acoustic.logits([extract_features(self._sound, self._acoustic.features)])
        end = lengths[0] if not right else max((len(self._sound) - right) // self._row, 0)
        rows = logits[0, self._rows - self._origin : end]
        self._rows += len(rows)
        return rows
