"""Computes power spectra of frames, energies of mel filters, and their cepstral coefficients (MFCC)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.fft
import scipy.sparse
from numpy.lib.stride_tricks import sliding_window_view
from python_speech_features import get_filterbanks

_BLOCK_FRAMES = 128  # computed together: limits the memory for long recordings, fits into the cache


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples, and what is done to them in each block.

    Attributes:
        samples: (samples,) floats, at least one.
        scale: factor.
        emphasis: pre-emphasis, the fraction of the preceding sample that is subtracted.
        before: the sample before the first.
    """

    samples: np.ndarray
    scale: float
    emphasis: float
    before: float


def power_blocks(
    sound: Sound, frames: int, hop: int, window: np.ndarray, fft_size: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """|FFT|² of windowed frames.

    Args:
        sound: the recording; after its end there is silence.
        frames: number of frames.
        hop: samples from one frame to the next.
        window: (samples of a frame,) float64.
        fft_size: at least the samples of a frame.

    Yields:
        the rows of a block of frames, and their power spectra (block, fft_size / 2 + 1) float32, whose memory
        the next block uses again.
    """
    # Fresh memory takes longer than the FFT. So all blocks use the same, and no array is as long as the
    # recording.
    block, length = min(frames, _BLOCK_FRAMES), len(window)
    scaled, subtracted = np.zeros(
        (2, 1 + (block - 1) * hop + length)
    )  # the sample before, and those of the frames
    framed = sliding_window_view(scaled[1:], length)[::hop]  # (block, samples)
    padded, spectrum = np.zeros((block, fft_size)), np.empty((block, fft_size // 2 + 1), np.complex128)
    single = np.empty(spectrum.shape, np.complex64)
    power, squares = np.empty((2, *spectrum.shape), np.float32)
    for start in range(0, frames, block):
        rows = slice(start, min(start + block, frames))
        here = slice(rows.stop - start)
        known = sound.samples[start * hop : (rows.stop - 1) * hop + length]
        end = 1 + len(known)
        scaled[0] = (sound.samples[start * hop - 1] if start else sound.before) * sound.scale
        np.multiply(known, sound.scale, out=scaled[1:end], dtype=np.float64)
        scaled[end:] = 0.0
        np.multiply(scaled[:-1], sound.emphasis, out=subtracted[1:])
        scaled[1:end] -= subtracted[1:end]
        np.multiply(framed[here], window, out=padded[here, :length])
        np.copyto(single[here], np.fft.rfft(padded[here], out=spectrum[here]), casting="same_kind")
        np.square(single.real[here], out=power[here])
        np.square(single.imag[here], out=squares[here])
        power[here] += squares[here]
        yield rows, power[here]


@lru_cache(maxsize=8)
def mel_filters(filters: int, fft_size: int, sample_rate: int) -> scipy.sparse.csr_array:
    """python_speech_features' triangular filters, for power spectra: (fft_size / 2 + 1, filters) float32.

    They go up to half the rate, and divide by the length of the FFT. Their corners are rounded down to FFT
    bins, so with many filters the lowest ones may be empty. The filters are cached, because the package
    computes them in a Python loop (1 ms for 80 filters), and sparse, because an FFT bin is in at most two
    filters; a dense product would start all threads of the linear algebra library for a tiny task (3 × the
    CPU time).
    """
    return scipy.sparse.csr_array(
        get_filterbanks(filters, fft_size, sample_rate).T / fft_size, dtype=np.float32
    )


_LIFTER = 22  # cepstral liftering, as in python_speech_features
_DELTA_REACH = 2  # frames on each side that a delta is computed from


def cepstra_with_deltas(energies: np.ndarray, totals: np.ndarray, coefficients: int) -> np.ndarray:
    """``python_speech_features.mfcc`` with first and second deltas.

    Args:
        energies: (frames, filters) of the mel filters, above 0.
        totals: (frames,) energy of each frame, above 0; its logarithm replaces the first coefficient.
        coefficients: number of cepstral coefficients.

    Returns:
        (frames, 3 × coefficients) float64.
    """
    # In double precision: a coefficient is a sum of 26 logarithms, and deltas are small differences.
    logs = np.log(energies, dtype=np.float64)
    cepstra = scipy.fft.dct(logs, type=2, norm="ortho", axis=1)[:, :coefficients]
    cepstra *= 1 + _LIFTER / 2 * np.sin(np.pi * np.arange(coefficients) / _LIFTER)
    cepstra[:, 0] = np.log(totals)
    first = _deltas(cepstra)
    return np.concatenate([cepstra, first, _deltas(first)], axis=1)


def _deltas(features: np.ndarray) -> np.ndarray:
    """``python_speech_features.delta``: slope over ±2 frames, edges repeated; same shape."""
    frames, reach = len(features), _DELTA_REACH
    padded = np.pad(features, ((reach, reach), (0, 0)), mode="edge")
    steps = range(1, reach + 1)
    slope = sum(n * (padded[reach + n :][:frames] - padded[reach - n :][:frames]) for n in steps)
    return slope / (2 * sum(n * n for n in steps))
