"""Samples → log mel of microcontrollers, in integers: what TensorFlow's ``microfrontend`` gives, bit for bit.

The chain of ``tensorflow/lite/experimental/microfrontend`` in whole-array NumPy: 12-bit Hann window → 16-bit
FFT (as kissfft rounds it) → energies of triangular mel filters, square root → noise reduction → PCAN gain
control (Wang et al., arXiv 1607.05666) → logarithm. Only the estimate of the noise depends on earlier frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse
from numpy.lib.stride_tricks import sliding_window_view

from utils.audio.reading import INT16_SCALE
from utils.features.fixed_point_fft import fixed_point_fft

# What one step of the output stands for: models for microcontrollers are fed 10 / 256 of it, which brings the
# usual range (0 to about 670) to 0 … 26 (micro_speech example of tflite-micro; microWakeWord).
OUTPUT_SCALE = 10 / 256

_WINDOW_BITS = 12
_FILTER_BITS = 12
_NOISE_BITS = 14
_SMOOTHING_BITS = 10
_SMOOTHING = (0.025, 0.06)  # how fast the estimate of the noise follows, in even and in odd channels
_LEAST_SIGNAL = 0.05  # share that noise reduction leaves of a channel at least
_GAIN_BITS = 21
_GAIN_STRENGTH = np.float32(0.95)
_GAIN_OFFSET = np.float32(80.0)
_SNR_BITS = 12
_SHRUNK_BITS = 6
_LOG_BITS = 16
_LOG_SEGMENT_BITS = 7
_LOG_COEFFICIENT = 45426  # ln 2 in 16 bits
_LOG_SHIFT = 6
_LARGEST = np.iinfo(np.int16).max
_BLOCK_FRAMES = 256  # frames a time, which keeps them in the processor's cache


@dataclass(frozen=True)
class MicroFrontEnd:
    """Settings, in samples and Hz; the usual ones are 480, 320, 40 channels from 125 to 7500 Hz at 16 kHz."""

    sample_rate: int
    window: int
    stride: int
    channels: int
    lowest_hz: float
    highest_hz: float

    @property
    def fft_size(self) -> int:
        """The next power of two: 512 for a window of 480 samples."""
        return 1 << (self.window - 1).bit_length()

    @property
    def correction_bits(self) -> int:
        """By how many bits the square root of a filter's energy is scaled up: 3 for 512."""
        return self.fft_size.bit_length() - 1 - _FILTER_BITS // 2


def micro_features(
    samples: np.ndarray, front_end: MicroFrontEnd, noise: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Log mel values of whole windows, and the state to go on with.

    Args:
        samples: (clips, samples) floats in [-1, 1], at least one window; beyond that they are clipped.
        front_end: the settings.
        noise: (clips, channels) uint32, what the last call returned; None at the start of a recording.

    Returns:
        (clips, frames, channels) float32, and the estimate of the noise (clips, channels) uint32.
    """
    pcm = np.clip(np.round(samples * INT16_SCALE), -_LARGEST - 1, _LARGEST).astype(np.int16)
    framed = sliding_window_view(pcm, front_end.window, axis=1)[:, :: front_end.stride]
    clips, frames = framed.shape[:2]
    signal = np.empty((clips, frames, front_end.channels), np.uint32)
    together = max(1, _BLOCK_FRAMES // frames)
    for clip in range(0, clips, together):
        for frame in range(0, frames, _BLOCK_FRAMES):
            block = slice(clip, clip + together), slice(frame, frame + _BLOCK_FRAMES)
            signal[block] = _filter_magnitudes(framed[block], front_end)
    if noise is None:
        noise = np.zeros((clips, front_end.channels), np.uint32)
    estimates = _noise_estimates(signal, noise)
    cleaned = _without_noise(signal, estimates)
    levels = _logarithm(_gain_control(cleaned, estimates, front_end), front_end)
    return (levels * OUTPUT_SCALE).astype(np.float32), estimates[:, -1]


def _filter_magnitudes(framed: np.ndarray, front_end: MicroFrontEnd) -> np.ndarray:
    """(clips, frames, window) int16 → root of each filter's energy, (clips, frames, channels) uint32."""
    # Frames lie side by side as columns, (window, n): each step of the FFT then runs over long rows.
    columns = framed.reshape(-1, front_end.window).T.astype(np.int32)
    windowed = (columns * _window(front_end.window)[:, None] >> _WINDOW_BITS).astype(np.int16)
    # Each frame is scaled up as far as 16 bits allow; -32768 counts as negative here, as it does in C.
    peaks = np.maximum(np.abs(windowed).max(axis=0), 0)
    shift = 15 - _bit_length(peaks)  # (n,)
    padded = np.zeros((front_end.fft_size, columns.shape[1]), np.int32)
    padded[: front_end.window] = (windowed.astype(np.int32) << shift).astype(np.int16)
    real, imaginary = fixed_point_fft(padded)
    energy = real.astype(np.float64) ** 2 + imaginary.astype(np.float64) ** 2  # whole numbers up to 2^31
    # Products and sums of whole numbers below 2^53: double precision is exact, and faster than integers.
    sums = _filters(front_end) @ energy  # (channels, n)
    magnitudes = (_rounded_root(sums) >> shift).astype(np.uint32)
    return magnitudes.T.reshape(*framed.shape[:2], -1)


def _rounded_root(sums: np.ndarray) -> np.ndarray:
    """Square roots to the nearest whole number, int64; sums of at most 32 bits never give more than 65535."""
    roots = np.floor(np.sqrt(sums))
    up = (sums - roots * roots > roots) & ~((sums < 2.0**32) & (roots == 0xFFFF))
    return (roots + up).astype(np.int64)


def _noise_estimates(signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The noise in each channel, smoothed over time: (clips, frames, channels) uint32."""
    smoothing = np.resize([int(share * (1 << _NOISE_BITS)) for share in _SMOOTHING], noise.shape[1])
    smoothing = smoothing.astype(np.uint64)
    rest = np.uint64(1 << _NOISE_BITS) - smoothing
    news = (signal << np.uint32(_SMOOTHING_BITS)) * smoothing  # wraps at 32 bits before, as in C
    estimates = np.empty_like(signal)
    for frame in range(signal.shape[1]):
        noise = ((news[:, frame] + noise * rest) >> np.uint64(_NOISE_BITS)).astype(np.uint32)
        estimates[:, frame] = noise
    return estimates


def _without_noise(signal: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """What is left of each channel, at least a twentieth: (clips, frames, channels) uint32."""
    scaled = signal << np.uint32(_SMOOTHING_BITS)
    subtracted = (scaled - np.minimum(estimates, scaled)) >> np.uint32(_SMOOTHING_BITS)
    least = (signal * np.uint64(_LEAST_SIGNAL * (1 << _NOISE_BITS))) >> np.uint64(_NOISE_BITS)
    return np.maximum(subtracted, least.astype(np.uint32))


def _gain_control(signal: np.ndarray, estimates: np.ndarray, front_end: MicroFrontEnd) -> np.ndarray:
    """Each channel over a power of its noise (PCAN), squeezed near zero: (clips, frames, channels) uint32."""
    gain = _interpolated_gain(estimates.astype(np.int64), _gain_table(front_end.correction_bits))
    shift = _GAIN_BITS - front_end.correction_bits - _SNR_BITS
    ratio = ((signal * gain.astype(np.uint64)) >> np.uint64(shift)).astype(np.uint32).astype(np.int64)
    squared = ratio * ratio >> (2 + 2 * _SNR_BITS - _SHRUNK_BITS)
    linear = (ratio >> (_SNR_BITS - _SHRUNK_BITS)) - (1 << _SHRUNK_BITS)
    return np.where(ratio < 2 << _SNR_BITS, squared, linear).astype(np.uint32)


def _interpolated_gain(estimates: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The gain at each estimate, a parabola between powers of two: int64, same shape."""
    octave = _bit_length(estimates)
    start, slope, bend = np.moveaxis(table[octave], -1, 0)
    small, large = np.maximum(11 - octave, 0), np.maximum(octave - 11, 0)
    place = np.where(octave < 11, estimates << small, estimates >> large)
    place &= 0x3FF
    change = ((bend * place >> 5) + (slope << 5)) * place
    return start + ((change + (1 << 14)) >> 15)


def _logarithm(values: np.ndarray, front_end: MicroFrontEnd) -> np.ndarray:
    """64 times the natural logarithm of the scaled values, 0 for those up to 1: int64, at most 65535."""
    scaled = (values << np.uint32(front_end.correction_bits)).astype(np.int64)
    usable = np.maximum(scaled, 1)
    whole = _bit_length(usable) - 1
    above = usable - (np.int64(1) << whole)
    fraction = np.where(
        whole < _LOG_BITS,
        above << np.maximum(_LOG_BITS - whole, 0),
        above >> np.maximum(whole - _LOG_BITS, 0),
    )
    table = _log_table()
    segment = fraction >> (_LOG_BITS - _LOG_SEGMENT_BITS)
    within = fraction - (segment << (_LOG_BITS - _LOG_SEGMENT_BITS))
    rise = (table[segment + 1] - table[segment]) * within >> _LOG_BITS
    base_two = (whole << _LOG_BITS) + fraction + table[segment] + rise
    half = 1 << (_LOG_BITS - 1)
    natural = (_LOG_COEFFICIENT * base_two + half) >> _LOG_BITS
    result = ((natural << _LOG_SHIFT) + half) >> _LOG_BITS
    return np.where(scaled > 1, np.minimum(result, 0xFFFF), 0)


def _bit_length(values: np.ndarray) -> np.ndarray:
    """Bits of each whole number from 0 to 2^32, as ``int.bit_length``: int32."""
    return np.frexp(values.astype(np.float64))[1]


@lru_cache(maxsize=4)
def _window(samples: int) -> np.ndarray:
    """Hann window with 12 bits after the point: (samples,) int32.

    Angle and cosine are rounded to single precision: one coefficient of 480 differs otherwise.
    """
    angle = (np.float32(2 * np.pi / samples) * (np.arange(samples) + 0.5)).astype(np.float32)
    cosine = np.cos(angle.astype(np.float64)).astype(np.float32).astype(np.float64)
    return np.floor((0.5 - 0.5 * cosine) * (1 << _WINDOW_BITS) + 0.5).astype(np.int32)


@lru_cache(maxsize=4)
def _filters(front_end: MicroFrontEnd) -> scipy.sparse.csr_array:
    """Filters with 12 bits after the point, in single precision as in C: (channels, fft_size / 2) float64."""
    bins = front_end.fft_size // 2
    spacing_hz = np.float32(0.5 * front_end.sample_rate / bins)
    mel = _mel(np.arange(bins, dtype=np.float32) * spacing_hz)
    lowest, highest = _mel(np.float32(front_end.lowest_hz)), _mel(np.float32(front_end.highest_hz))
    bands = front_end.channels + 1
    steps = (highest - lowest) / np.float32(bands) * np.arange(bands + 1, dtype=np.float32)
    corners = lowest + steps  # (channels + 2,) float32; the first one is lowest itself
    weights = np.zeros((bins, bands + 1))
    first = int(1.5 + front_end.lowest_hz / spacing_hz)
    for band in range(bands):
        last = int(np.searchsorted(mel, corners[band + 1], side="right"))
        inside = slice(first, last)
        share = (corners[band + 1] - mel[inside]) / (corners[band + 1] - corners[band])
        # A bin falls off in the channel before and rises in this one.
        weights[inside, band] += np.floor(share * (1 << _FILTER_BITS) + 0.5)
        weights[inside, band + 1] += np.floor((1.0 - share.astype(np.float64)) * (1 << _FILTER_BITS) + 0.5)
        first = max(first, last)
    return scipy.sparse.csr_array(weights[:, 1:bands].T)


def _mel(hertz: np.ndarray) -> np.ndarray:
    """HTK's mel scale with the C library's single-precision ``log1pf``, float32, as in the original.

    Where that function rounds otherwise (glibc's isn't exact), single weights differ by 1 / 4096.
    """
    return np.float32(1127.0) * np.log1p(np.float32(hertz) / np.float32(700.0))


@lru_cache(maxsize=4)
def _gain_table(correction_bits: int) -> np.ndarray:
    """Start, slope and bend of the gain in each octave of the estimate: (33, 3) int64, by bit length."""
    bits = _SMOOTHING_BITS - correction_bits

    def gain(estimate: int) -> int:
        level = np.float32(estimate) / np.float32(1 << bits) + _GAIN_OFFSET
        return int(min(np.float32(1 << _GAIN_BITS) * level**-_GAIN_STRENGTH + np.float32(0.5), _LARGEST))

    table = np.zeros((33, 3), np.int64)
    table[0, 0], table[1, 0] = gain(0), gain(1)
    for octave in range(2, 33):
        start = 1 << (octave - 1)
        end = 2 * start - (octave == 32)
        low, middle, high = gain(start), gain(start + start // 2), gain(end)
        slope = 4 * (middle - low) - (high - low)
        table[octave] = low, slope, high - low - slope
    return table


@lru_cache(maxsize=1)
def _log_table() -> np.ndarray:
    """log2(1 + x) - x at 128 places from 0 to 1, with 16 bits after the point: (130,) int64."""
    places = np.arange((1 << _LOG_SEGMENT_BITS) + 1) / (1 << _LOG_SEGMENT_BITS)
    table = np.round((np.log2(1 + places) - places) * (1 << _LOG_BITS)).astype(np.int64)
    return np.append(table, 0)
