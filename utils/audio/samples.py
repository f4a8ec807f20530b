"""Samples of a caller: checks and resamples them as those of a file are, or writes them as a WAV file."""

import io
from pathlib import Path

import numpy as np
import soundfile

from utils.audio.reading import INT16_SCALE, SAMPLE_RATE, at_rate, checked
from utils.errors import AudioError
from utils.files import replacing


def resampled(samples: np.ndarray, rate: int | None, sample_rate: int) -> np.ndarray:
    """Samples of a caller at another rate, as those of a file are: (n,) float32 in [-1, 1].

    Args:
        samples: see :func:`mono_samples`.
        rate: Hz, of the samples.
        sample_rate: Hz, of the result.

    Raises:
        AudioError: as for :func:`mono_samples`, or there is no rate.
    """
    if not rate:
        raise AudioError("samples without their sample rate", hint="give it in Hz, e.g. 16000")
    blocks = at_rate([mono_samples(samples)], rate, sample_rate)  # none, of too few samples
    return np.concatenate([np.zeros(0, np.float32), *blocks]).clip(-1.0, 1.0)


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


def write_wav(path: str | Path, samples: np.ndarray, sample_rate: int = SAMPLE_RATE) -> None:
    """Write (samples,) floats as a mono 16-bit WAV; values outside [-1, 1] are clipped.

    Raises:
        OSError: the file can't be written.
    """
    # Written by Python, because libsndfile reports a full disk as "System error".
    content = io.BytesIO()
    soundfile.write(content, as_int16(samples), sample_rate, subtype="PCM_16", format="WAV")
    with replacing(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def as_int16(samples: np.ndarray) -> np.ndarray:
    """(samples,) floats as 16-bit integers, as :func:`write_wav` writes them."""
    return np.clip(np.rint(samples * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype(np.int16)
