"""Log energies of consecutive frames in, the same less what each bin held lately out: what a stream can do.

A frame knows its past alone, so the frames of a stream, in pieces of any size, give what the whole recording
gives at once: the recursions below carry their last values from one piece to the next.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

MEMORY_SECONDS = 5.0  # of speech: what was heard so long ago counts 1 / e
# At first a usual level stands in for the past, as heavy as half a second of speech: 16-bit speech of common
# loudness has this mean log energy in its mel filters (the demo's corpus: 9.7, single recordings 6 to 14).
USUAL_LEVEL = 10.0
USUAL_SECONDS = 0.5
ACTIVE_RANGE = np.log(1000.0)  # 30 dB below the loudest frame of late a frame says nothing of the speaker
# The loudest frame of late fades: slowly, or the noise of a pause would become what is normal; yet a slammed
# door must not hide a conversation for long.
FADING_DB_PER_SECOND = 0.5


class RunningNormalisation:
    """Takes from each bin its mean over the active frames so far, the older the lighter.

    The channel and the loudness leave with the mean, as they do with the mean of a whole utterance.

    Args:
        bins: F, values a frame.
        hop_seconds: from one frame to the next.
    """

    def __init__(self, bins: int, hop_seconds: float):
        self._keep = np.exp(-hop_seconds / MEMORY_SECONDS)
        self._fading = FADING_DB_PER_SECOND * np.log(10.0) / 10.0 * hop_seconds  # nepers of power a frame
        self._frames = 0
        # The loudest frame of late, as if nothing had faded since the first frame: so it only ever rises.
        self._loudest = USUAL_LEVEL + np.log(bins)
        # Sums of the active frames and, in the last column, of their weights.
        self._sums = USUAL_SECONDS / hop_seconds * np.append(np.full(bins, USUAL_LEVEL), 1.0)

    def __call__(self, frames: np.ndarray) -> np.ndarray:
        """The next frames (n, F) float64, natural logs of energies → the same, normalised."""
        active = self._active(frames)  # (n,) bool
        heard = np.pad(frames[active], ((0, 0), (0, 1)), constant_values=1.0)  # (m, F + 1)
        # sums[i] = heard[i] + keep * sums[i - 1]
        later, _ = lfilter([1.0], [1.0, -self._keep], heard, axis=0, zi=self._keep * self._sums[None])
        sums = np.concatenate([self._sums[None], later])  # (m + 1, F + 1)
        self._sums = sums[-1]
        means = sums[:, :-1] / sums[:, -1:]
        return frames - means[np.cumsum(active)]

    def _active(self, frames: np.ndarray) -> np.ndarray:
        """Which frames are loud enough to tell the speaker's level: (n, F) → (n,) bool."""
        unfaded = np.log(np.exp(frames).sum(axis=1))
        unfaded += self._fading * np.arange(self._frames, self._frames + len(frames))
        loudest = np.maximum.accumulate(np.append(self._loudest, unfaded))  # (n + 1,)
        self._frames += len(frames)
        self._loudest = loudest[-1]
        return unfaded >= loudest[1:] - ACTIVE_RANGE
