"""Normalises log filter-bank energies of a stream: subtracts from each bin its running mean.

The mean is exponentially weighted over the frames so far that are loud enough to be speech; later frames have
no influence. The state is kept from one call to the next, so a stream in pieces of any size gives the same
result as the whole recording.
"""

from itertools import pairwise

import numpy as np

MEMORY_SECONDS = 5.0  # seconds of speech after which the weight of a frame has fallen to 1 / e
# The mean starts at an assumed level, with the weight of half a second of speech: the mean log energy of
# 16-bit speech of usual loudness in the mel filters (corpus of the demo: 9.7; single recordings: 6 to 14).
INITIAL_LEVEL = 10.0
INITIAL_SECONDS = 0.5
ACTIVE_RANGE = np.log(1000.0)  # frames more than 30 dB below the recent loudest frame are ignored
# The level of the recent loudest frame decreases: slowly, or the noise in a pause would be normalised like
# speech, but fast enough that a slammed door doesn't suppress a conversation for long.
FADING_DB_PER_SECOND = 0.5


class RunningNormalisation:
    """Subtracts from each bin its mean over the active frames so far; older frames have lower weights.

    This removes the channel and the loudness, as the mean of a whole utterance does.

    Args:
        bins: F, values per frame.
        hop_seconds: time from one frame to the next.
    """

    def __init__(self, bins: int, hop_seconds: float):
        self._keep = np.exp(-hop_seconds / MEMORY_SECONDS)
        self._fading = FADING_DB_PER_SECOND * np.log(10.0) / 10.0 * hop_seconds  # nepers of power per frame
        self._frames = 0
        # The recent loudest frame, plus the decrease since the first frame: this value never decreases.
        self._loudest = INITIAL_LEVEL + np.log(bins)
        # Weighted sums of the active frames; the last column is the sum of the weights.
        self._sums = INITIAL_SECONDS / hop_seconds * np.append(np.full(bins, INITIAL_LEVEL), 1.0)

    def __call__(self, frames: np.ndarray) -> np.ndarray:
        """Normalise the next frames: (n, F) float64, natural logarithms of energies → the same shape."""
        active = self._active(frames)  # (n,) bool
        added = np.pad(frames[active], ((0, 0), (0, 1)), constant_values=1.0)  # (m, F + 1)
        # A loop: loading scipy.signal, which has such a filter, takes a second.
        sums = np.concatenate([self._sums[None], added])  # (m + 1, F + 1)
        for before, after in pairwise(sums):
            after += self._keep * before
        self._sums = sums[-1].copy()
        means = sums[:, :-1] / sums[:, -1:]
        return frames - means[np.cumsum(active)]

    def _active(self, frames: np.ndarray) -> np.ndarray:
        """Whether each frame is loud enough to count: (n, F) → (n,) bool."""
        unfaded = np.log(np.exp(frames).sum(axis=1))
        unfaded += self._fading * np.arange(self._frames, self._frames + len(frames))
        loudest = np.maximum.accumulate(np.append(self._loudest, unfaded))  # (n + 1,)
        self._frames += len(frames)
        self._loudest = loudest[-1]
        return unfaded >= loudest[1:] - ACTIVE_RANGE
