"""SpecAugment: masks random bands and segments of features, and warps their frequency axis, in each epoch."""

from dataclasses import dataclass

import numpy as np

from utils.errors import require
from utils.limits import Limited, NotNegative, Size


@dataclass(frozen=True)
class SpecAugmentConfig(Limited, section="spec_augment"):
    """SpecAugment (Park et al. 2019, arXiv:1904.08779, section 2; without time warping) and VTLP.

    Attributes:
        frequency_warp: the positions of the bins are scaled by a random factor within 1 ± this, as if
            another speaker spoke (vocal tract length perturbation, Jaitly & Hinton 2013); 0: no warping.
        frequency_masks: number of masked bands.
        frequency_width: largest width of a band, in bins.
        time_masks: number of masked segments.
        time_width: largest length of a segment, in frames.
        time_width_ratio: largest length as a fraction of the utterance; the smaller limit holds.
    """

    frequency_warp: NotNegative = 0.0
    frequency_masks: Size = 2
    frequency_width: Size = 20
    time_masks: Size = 2
    time_width: Size = 40
    time_width_ratio: NotNegative = 0.1

    def __post_init__(self):
        require(
            self.frequency_warp < 0.5,
            f"spec_augment.frequency_warp is {self.frequency_warp}",
            hint="below 0.5",
        )
        super().__post_init__()


def spec_augment(features: np.ndarray, rng: np.random.Generator, config: SpecAugmentConfig) -> np.ndarray:
    """A warped copy of (frames, bins) float32 features in which the masks hold the mean value."""
    frames, bins = features.shape
    longest = min(config.time_width, int(config.time_width_ratio * frames), frames)
    if config.frequency_warp:
        masked = warp_frequencies(
            features, factor=1.0 + rng.uniform(-config.frequency_warp, config.frequency_warp)
        )
    else:
        masked = features.copy()
    mean = masked.mean()
    for start, stop in _mask_ranges(bins, config.frequency_masks, min(config.frequency_width, bins), rng):
        masked[:, start:stop] = mean
    for start, stop in _mask_ranges(frames, config.time_masks, longest, rng):
        masked[start:stop] = mean
    return masked


def warp_frequencies(features: np.ndarray, factor: float) -> np.ndarray:
    """Read (frames, bins) float32 features at positions scaled by ``factor``, interpolated linearly."""
    bins = features.shape[1]
    positions = np.minimum(np.arange(bins, dtype=np.float32) * np.float32(factor), bins - 1)
    below = positions.astype(np.int64)
    above = np.minimum(below + 1, bins - 1)
    fraction = (positions - below).astype(np.float32)
    return features[:, below] * (1 - fraction) + features[:, above] * fraction


def _mask_ranges(size: int, count: int, widest: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` random (start, stop) ranges within ``size``, each of a width from 0 to ``widest``."""
    widths = rng.integers(0, widest + 1, size=count)
    starts = rng.integers(0, size - widths + 1)
    return np.stack([starts, starts + widths], axis=1)
