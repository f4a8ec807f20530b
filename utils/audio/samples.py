"""Samples that a caller has: checked, and at the sample rate of the models."""

from collections.abc import Iterator

import numpy as np

from utils.audio.reading import INT16_SCALE, at_rate, checked
from utils.errors import AudioError


def sample_blocks(samples: np.ndarray, rate: int | None, sample_rate: int) -> Iterator[np.ndarray]:
    """Samples of a caller, resampled as those of a file are.

    Args:
        samples: see :func:`mono_samples`.
        rate: Hz, of the samples.
        sample_rate: Hz, of the result.

    Yields:
        (samples,) float32 in [-1, 1].

    Raises:
        AudioError: as for :func:`mono_samples`, or there is no rate.
    """
    if not rate:
        raise AudioError("samples without their sample rate", hint="give it in Hz, e.g. 16000")
    for block in at_rate([mono_samples(samples)], rate, sample_rate):
        yield np.clip(block, -1.0, 1.0)


def mono_samples(samples: np.ndarray) -> np.ndarray:
    """Samples of a caller, (n,) floats in [-1, 1] or 16-bit integers, as (n,) float32.

    Raises:
        AudioError: they have another shape or type, are not finite, or are floats that are not scaled.
    """
    samples = np.asarray(samples)
    if samples.ndim != 1:
        hint = "give one channel, an array (samples,)"
        raise AudioError(f"samples with the shape {samples.shape}", hint=hint)
    if samples.dtype == np.int16:
        return samples.astype(np.float32) / np.float32(INT16_SCALE)
    if not np.issubdtype(samples.dtype, np.floating):
        raise AudioError(f"samples of type {samples.dtype}", hint="give float32 in [-1, 1], or int16")
    return checked(samples.astype(np.float32, copy=False), "samples")
