"""Normalises log filter-bank energies of a stream: subtracts from each bin its running mean.

The mean is exponentially weighted over the frames so far that are loud enough to be speech; later frames have
no influence. The state is kept from one call to the next, so a stream in pieces of any size gives the same
result as the whole recording.
"""

from itertools import pairwise

import numpy as np
import scipy.sparse
from python_speech_features import hz2mel

MEMORY_SECONDS = 5.0  # seconds of speech after which the weight of a frame has fallen to 1 / e
ACTIVE_RANGE = np.log(1000.0)  # frames more than 30 dB below the recent loudest frame are ignored
# The level of the recent loudest frame decreases: slowly, or the noise in a pause would be normalised like
# speech, but fast enough that a slammed door doesn't suppress a conversation for long.
FADING_DB_PER_SECOND = 0.5
# The seconds of speech that the mean of a stream counts as at its beginning: its level, which depends on the
# loudness of a recording, and its shape, in which recordings differ less.
LEVEL_SECONDS, SHAPE_SECONDS = 0.5, 2.0
# Long-term average spectrum of speech: natural logarithms of the power density of 16-bit samples after
# pre-emphasis, at frequencies that are evenly spaced on the mel scale from 0 to 8 kHz. Mean over the active
# frames of the 131 training speakers of Common Voice, each with the same weight.
SPEECH_DENSITY = np.array([
    4.20, 9.70, 11.00, 11.64, 10.68, 10.09, 9.69, 9.86, 10.00,
    10.18, 10.35, 10.17, 10.18, 9.09, 8.77, 8.56, 6.09,
])  # fmt: skip
HIGHEST_HZ = 8000.0


def average_speech(filters: scipy.sparse.sparray, sample_rate: int, window: np.ndarray) -> np.ndarray:
    """The long-term average spectrum of speech in mel filters: (F,) log energies.

    Args:
        filters: (fft / 2 + 1, F) weights of the power spectrum.
        sample_rate: Hz.
        window: the factors of the samples of a frame.
    """
    hertz = np.linspace(0.0, sample_rate / 2, filters.shape[0])
    points = np.linspace(0.0, hz2mel(HIGHEST_HZ), len(SPEECH_DENSITY))
    density = np.exp(np.interp(hz2mel(hertz), points, SPEECH_DENSITY)) * np.square(window).sum()
    energies = density @ filters
    energies[energies == 0] = 1.0  # of a filter without an FFT bin, which is constant
    return np.log(energies)


class RunningNormalisation:
    """Subtracts from each bin its mean over the active frames so far; older frames have lower weights.

    This removes the channel and the loudness, as the mean of a whole utterance does.

    Args:
        levels: (F,) log energies, the mean that a stream begins with.
        hop_seconds: time from one frame to the next.

    Attributes:
        keep: factor of the weights of the earlier frames at each active frame.
        fading: by which the level of the loudest frame decreases, in nepers of power per frame.
        loudest: log energy of the recent loudest frame, plus the decrease since the first frame: this value
            never decreases.
        sums: (F + 3,) weighted sums of the level and of the shape of the active frames, then the sums of
            their weights.
    """

    def __init__(self, levels: np.ndarray, hop_seconds: float):
        self.keep = np.exp(-hop_seconds / MEMORY_SECONDS)
        self.fading = FADING_DB_PER_SECOND * np.log(10.0) / 10.0 * hop_seconds
        self._frames = 0
        level = levels.mean()
        self.loudest = level + np.log(len(levels))
        shape = SHAPE_SECONDS * (levels - level)
        self.sums = np.concatenate([[LEVEL_SECONDS * level], shape, [LEVEL_SECONDS, SHAPE_SECONDS]])
        self.sums /= hop_seconds

    def __call__(self, frames: np.ndarray) -> np.ndarray:
        """Normalise the next frames: (n, F), natural logarithms of energies → (n, F) float64."""
        frames = frames.astype(np.float64)  # or the result would depend on the chunks
        active = self._active(frames)  # (n,) bool
        levels = frames[active].mean(axis=1, keepdims=True)  # (m, 1)
        ones = np.ones((len(levels), 2))
        added = np.concatenate([levels, frames[active] - levels, ones], axis=1)  # (m, F + 3)
        # A loop: loading scipy.signal, which has such a filter, takes a second.
        sums = np.concatenate([self.sums[None], added])  # (m + 1, F + 3)
        for before, after in pairwise(sums):
            after += self.keep * before
        self.sums = sums[-1].copy()
        means = sums[:, :1] / sums[:, -2:-1] + sums[:, 1:-2] / sums[:, -1:]
        return frames - means[np.cumsum(active)]

    def _active(self, frames: np.ndarray) -> np.ndarray:
        """Whether each frame is loud enough to count: (n, F) → (n,) bool."""
        unfaded = np.log(np.exp(frames).sum(axis=1))
        unfaded += self.fading * np.arange(self._frames, self._frames + len(frames))
        loudest = np.maximum.accumulate(np.append(self.loudest, unfaded))  # (n + 1,)
        self._frames += len(frames)
        self.loudest = loudest[-1]
        return unfaded >= loudest[1:] - ACTIVE_RANGE
