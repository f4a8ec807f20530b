"""Running means of a stream's frames in NumPy, as in :class:`model_speech.layers.running_mean.RunningMean`.

With the prior p, the mean m(t) after frame x(t), t = 0, 1, …, is

    m(t) = m(t - 1) + (x(t) - m(t - 1)) / min(t + 1 + PRIOR_FRAMES, MEMORY_FRAMES),    m(-1) = p

so that all frames count alike at first, and later the mean forgets exponentially. The share of a frame in
each later mean does not depend on the frames: all means are a cumulative sum of weighted frames.
"""

import numpy as np

PRIOR_FRAMES = 12
"""Frames that the mean before the first frame counts for."""
MEMORY_FRAMES = 256
"""Frames after which older ones begin to be forgotten."""


def frame_shares(before: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of new frames, and of the mean before them, in the running means after these frames.

    Args:
        before: frames so far.
        count: number of the next frames.

    Returns:
        The share of each of these in the mean after it, and what that mean keeps of the mean before the
        first of them: (count, 1) float64 each.
    """
    frames = np.arange(before + 1, before + count + 1)[:, None]
    shares = 1.0 / np.minimum(frames + PRIOR_FRAMES, MEMORY_FRAMES)
    return shares, np.cumprod(1.0 - shares, axis=0)


def running_means(frames: np.ndarray, mean: np.ndarray, shares: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The mean after each of the next frames: (count, D) float64.

    Args:
        frames: (count, D), without the prior.
        mean: (D,) the mean before them, without the prior.
        shares, kept: see :func:`frame_shares`.
    """
    return (mean + np.cumsum(frames * (shares / kept), axis=0)) * kept
