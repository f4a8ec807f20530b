"""Log mel features in integer arithmetic, equal to those that microcontrollers compute (``microfrontend``).

The steps of ``tensorflow/lite/experimental/microfrontend`` in NumPy: 12-bit Hann window → 16-bit FFT (with
the rounding of kissfft) → energies of triangular mel filters, square root → noise reduction → per-channel
energy normalisation, PCAN (Wang et al., arXiv 1607.05666) → logarithm. Only the noise estimate depends on
earlier frames.

The package pymicro-features computes the same, but only with 30 ms windows every 10 ms and 40 channels at
16 kHz; the tests compare with it.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import scipy.sparse
from numpy.lib.stride_tricks import sliding_window_view

from utils.audio.reading import INT16_SCALE
from utils.features.fixed_point_fft import fixed_point_fft
from utils.features.keyword_config import KeywordFeatureConfig

# Factor of the output for models on microcontrollers: it scales the usual range of 0 to about 670 to 0 … 26
# (micro_speech example of tflite-micro; microWakeWord).
OUTPUT_SCALE = 10 / 256

# The constants of the C code; BITS: fractional bits of a fixed-point number.
_WINDOW_BITS = 12
_FILTER_BITS = 12
_NOISE_BITS = 14
_SMOOTHING_BITS = 10
_SMOOTHING = (0.025, 0.06)  # smoothing factors of the noise estimate, in even and in odd channels
_LEAST_SIGNAL = 0.05  # fraction of a channel that noise reduction always keeps
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
_BLOCK_FRAMES = 256  # computed together; they fit into the processor's cache


def micro_features(
    samples: np.ndarray, config: KeywordFeatureConfig, noise: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Log mel values of whole windows, and the state for the next call.

    Args:
        samples: (clips, samples) floats, at least one window; values outside [-1, 1] are clipped.
        config: the settings; ``mel_bins`` is the number of channels.
        noise: (clips, channels) uint32, from the last call; None at the start of a recording.

    Returns:
        (clips, frames, channels) float32, and the noise estimate (clips, channels) uint32.
    """
    pcm = np.clip(np.round(samples * INT16_SCALE), -_LARGEST - 1, _LARGEST).astype(np.int16)
    framed = sliding_window_view(pcm, config.window_samples, axis=1)[:, :: config.stride_samples]
    clips, frames = framed.shape[:2]
    signal = np.empty((clips, frames, config.mel_bins), np.uint32)
    for block in frame_blocks(clips, frames):
        signal[block] = _filter_magnitudes(framed[block], config)
    if noise is None:
        noise = np.zeros((clips, config.mel_bins), np.uint32)
    estimates = _noise_estimates(signal, noise)
    cleaned = _without_noise(signal, estimates)
    levels = _logarithm(_gain_control(cleaned, estimates, config), config)
    return (levels * OUTPUT_SCALE).astype(np.float32), estimates[:, -1]


def frame_blocks(clips: int, frames: int) -> Iterator[tuple[slice, slice]]:
    """Divide (clips, frames) into blocks of about ``_BLOCK_FRAMES`` frames."""
    together = max(1, _BLOCK_FRAMES // frames)
    for clip in range(0, clips, together):
        for frame in range(0, frames, _BLOCK_FRAMES):
            yield slice(clip, clip + together), slice(frame, frame + _BLOCK_FRAMES)


def _correction_bits(config: KeywordFeatureConfig) -> int:
    """The number of bits by which the square root of a filter's energy is scaled up: 3 for an FFT of 512."""
    return config.fft_size.bit_length() - 1 - _FILTER_BITS // 2


def _filter_magnitudes(framed: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """(clips, frames, window) int16 → root of each filter's energy, (clips, frames, channels) uint32."""
    # Frames are columns (window, n), so that each step of the FFT works on long rows.
    columns = framed.reshape(-1, config.window_samples).T.astype(np.int32)
    windowed = (columns * _window(config.window_samples)[:, None] >> _WINDOW_BITS).astype(np.int16)
    # Each frame is scaled up to the full range of 16 bits; as in C, abs(-32768) is negative.
    peaks = np.maximum(np.abs(windowed).max(axis=0), 0)
    shift = 15 - _bit_length(peaks)  # (n,)
    padded = np.zeros((config.fft_size, columns.shape[1]), np.int32)
    padded[: config.window_samples] = (windowed.astype(np.int32) << shift).astype(np.int16)
    real, imaginary = fixed_point_fft(padded)
    energy = real.astype(np.float64) ** 2 + imaginary.astype(np.float64) ** 2  # integers up to 2^31
    # Double precision is exact for integers below 2^53, and faster than integer arithmetic.
    sums = _filters(config) @ energy  # (channels, n)
    magnitudes = (_rounded_root(sums) >> shift).astype(np.uint32)
    return magnitudes.T.reshape(*framed.shape[:2], -1)


def _rounded_root(sums: np.ndarray) -> np.ndarray:
    """Square roots rounded to integers, int64; at most 65535 for sums of up to 32 bits."""
    roots = np.floor(np.sqrt(sums))
    up = (sums - roots * roots > roots) & ~((sums < 2.0**32) & (roots == 0xFFFF))
    return (roots + up).astype(np.int64)


def _noise_estimates(signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The noise in each channel, smoothed over time: (clips, frames, channels) uint32."""
    smoothing = np.resize([int(factor * (1 << _NOISE_BITS)) for factor in _SMOOTHING], noise.shape[1])
    smoothing = smoothing.astype(np.uint64)
    rest = np.uint64(1 << _NOISE_BITS) - smoothing
    weighted = (signal << np.uint32(_SMOOTHING_BITS)) * smoothing  # the shift overflows 32 bits as in C
    estimates = np.empty_like(signal)
    for frame in range(signal.shape[1]):
        noise = ((weighted[:, frame] + noise * rest) >> np.uint64(_NOISE_BITS)).astype(np.uint32)
        estimates[:, frame] = noise
    return estimates


def _without_noise(signal: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """Each channel minus its noise, but at least a twentieth of it: (clips, frames, channels) uint32."""
    scaled = signal << np.uint32(_SMOOTHING_BITS)
    subtracted = (scaled - np.minimum(estimates, scaled)) >> np.uint32(_SMOOTHING_BITS)
    least = (signal * np.uint64(_LEAST_SIGNAL * (1 << _NOISE_BITS))) >> np.uint64(_NOISE_BITS)
    return np.maximum(subtracted, least.astype(np.uint32))


def _gain_control(signal: np.ndarray, estimates: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """Each channel divided by a power of its noise (PCAN), compressed near zero: same shape, uint32."""
    gain = _interpolated_gain(estimates.astype(np.int64), _gain_table(_correction_bits(config)))
    shift = _GAIN_BITS - _correction_bits(config) - _SNR_BITS
    ratio = ((signal * gain.astype(np.uint64)) >> np.uint64(shift)).astype(np.uint32).astype(np.int64)
    squared = ratio * ratio >> (2 + 2 * _SNR_BITS - _SHRUNK_BITS)
    linear = (ratio >> (_SNR_BITS - _SHRUNK_BITS)) - (1 << _SHRUNK_BITS)
    return np.where(ratio < 2 << _SNR_BITS, squared, linear).astype(np.uint32)


def _interpolated_gain(estimates: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The gain for each noise estimate, a parabola between powers of two: int64, same shape."""
    octave = _bit_length(estimates)
    start, slope, bend = np.moveaxis(table[octave], -1, 0)
    small, large = np.maximum(11 - octave, 0), np.maximum(octave - 11, 0)
    position = np.where(octave < 11, estimates << small, estimates >> large)
    position &= 0x3FF
    change = ((bend * position >> 5) + (slope << 5)) * position
    return start + ((change + (1 << 14)) >> 15)


def _logarithm(values: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """64 times the natural logarithm of the scaled values, 0 for values up to 1: int64, at most 65535."""
    scaled = (values << np.uint32(_correction_bits(config))).astype(np.int64)
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
    """``int.bit_length`` of integers from 0 to 2^32: int32."""
    return np.frexp(values.astype(np.float64))[1]


@lru_cache(maxsize=4)
def _window(samples: int) -> np.ndarray:
    """Hann window with 12 fractional bits: (samples,) int32.

    Angle and cosine are rounded to single precision; otherwise one coefficient of 480 differs.
    """
    angle = (np.float32(2 * np.pi / samples) * (np.arange(samples) + 0.5)).astype(np.float32)
    cosine = np.cos(angle.astype(np.float64)).astype(np.float32).astype(np.float64)
    return np.floor((0.5 - 0.5 * cosine) * (1 << _WINDOW_BITS) + 0.5).astype(np.int32)


@lru_cache(maxsize=4)
def _filters(config: KeywordFeatureConfig) -> scipy.sparse.csr_array:
    """Mel filters with 12 fractional bits, as in C: (channels, fft_size / 2) float64."""
    bins = config.fft_size // 2
    spacing_hz = np.float32(0.5 * config.sample_rate / bins)
    mel = _mel(np.arange(bins, dtype=np.float32) * spacing_hz)
    lowest, highest = _mel(np.float32(config.lowest_hz)), _mel(np.float32(config.highest_hz))
    bands = config.mel_bins + 1
    steps = (highest - lowest) / np.float32(bands) * np.arange(bands + 1, dtype=np.float32)
    corners = lowest + steps  # (channels + 2,) float32, from the lowest frequency
    weights = np.zeros((bins, bands + 1))
    first = int(1.5 + config.lowest_hz / spacing_hz)
    for band in range(bands):
        last = int(np.searchsorted(mel, corners[band + 1], side="right"))
        inside = slice(first, last)
        falling = (corners[band + 1] - mel[inside]) / (corners[band + 1] - corners[band])
        # A bin is on the falling side of one channel and on the rising side of the next one.
        weights[inside, band] += np.floor(falling * (1 << _FILTER_BITS) + 0.5)
        weights[inside, band + 1] += np.floor((1.0 - falling.astype(np.float64)) * (1 << _FILTER_BITS) + 0.5)
        first = max(first, last)
    return scipy.sparse.csr_array(weights[:, 1:bands].T)


def _mel(hertz: np.ndarray) -> np.ndarray:
    """The mel scale of HTK in single precision, as the C code computes it; the same on every machine.

    The logarithm is correctly rounded, as ``log1pf`` of the C library glibc from 2.41 on. Where ``log1pf`` is
    not, a few weights of the C code differ by 1 / 4096: four of those of 40 channels with glibc 2.36.
    """
    return np.float32(1127.0) * _rounded_log1p(np.float32(hertz) / np.float32(700.0))


def _rounded_log1p(values: np.ndarray) -> np.ndarray:
    """log(1 + values), float32. That of NumPy in single precision depends on processor and C library."""
    return np.log1p(values.astype(np.float64)).astype(np.float32)


@lru_cache(maxsize=4)
def _gain_table(correction_bits: int) -> np.ndarray:
    """Start, slope and bend of the gain for each bit length of the noise estimate: (33, 3) int64."""
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
    """log2(1 + x) - x at 129 points from 0 to 1, with 16 fractional bits, and a zero: (130,) int64."""
    points = np.arange((1 << _LOG_SEGMENT_BITS) + 1) / (1 << _LOG_SEGMENT_BITS)
    table = np.round((np.log2(1 + points) - points) * (1 << _LOG_BITS)).astype(np.int64)
    return np.append(table, 0)
