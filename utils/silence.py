"""Long recordings in, pieces short enough for the acoustic model out, cut where it is quietest."""

from __future__ import annotations

import numpy as np

BLOCK_SECONDS = 0.01
# Quiet for this long: longer than the closure of a plosive (0.1 s), shorter than most pauses.
PAUSE_BLOCKS = 20


def cut_at_silence(samples: np.ndarray, sample_rate: int, longest: float = 20.0) -> list[tuple[int, int]]:
    """Cut a recording into pieces of at most ``longest`` seconds.

    Each cut lies in the middle of the quietest 0.2 s (by mean power) between half the longest piece and the
    longest one. It need not be silent: speech without a pause is cut too.

    Args:
        samples: (samples,) floats.
        sample_rate: Hz.
        longest: seconds; at least 1.

    Returns:
        (start, end) of each piece in samples; together they are the whole recording.
    """
    block = int(sample_rate * BLOCK_SECONDS)
    reach = int(longest * sample_rate) // block  # blocks that a piece may have
    power = _mean_power(samples, block)
    pieces, start = [], 0
    while len(samples) - start * block > longest * sample_rate:
        first = start + reach // 2
        cut = first + int(np.argmin(power[first : start + reach]))
        pieces.append((start * block, cut * block))
        start = cut
    return [*pieces, (start * block, len(samples))]


def _mean_power(samples: np.ndarray, block: int) -> np.ndarray:
    """Mean power in the 0.2 s around the start of each block: (whole blocks,)."""
    blocks = samples[: len(samples) // block * block].reshape(-1, block)  # (blocks, samples)
    power = np.einsum("bs,bs->b", blocks, blocks, dtype=np.float64)  # (blocks,), no copy of the samples
    around = np.concatenate([[0.0], np.cumsum(power)])
    places = np.arange(len(power))
    low = np.maximum(places - PAUSE_BLOCKS // 2, 0)
    high = np.minimum(places + PAUSE_BLOCKS // 2, len(power))
    return (around[high] - around[low]) / (high - low)
