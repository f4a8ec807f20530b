"""Adds noise or reverberation to waveforms, and generates coloured noise and room impulse responses.

All augmentation and synthesis uses these functions. Random choices come from the generator that is given:
equal generators give equal results.
"""

import numpy as np
import scipy.fft

_NOISE_SLOPE = (0.0, 2.0)  # of generated noise: power ∝ 1/f^slope; white 0, pink 1, brown 2
_SMALLEST_POWER = 1e-20  # avoids a division by zero


def add_noise(samples: np.ndarray, noise: np.ndarray, snr_db: float) -> np.ndarray:
    """Add ``noise`` (of the same length) at a signal-to-noise ratio; silence is returned unchanged."""
    speech_power, noise_power = mean_power(samples), mean_power(noise)
    if speech_power == 0 or noise_power == 0:
        return samples
    factor = np.sqrt(speech_power / noise_power / 10.0 ** (snr_db / 10.0))
    return samples + np.float32(factor) * noise


def add_room(samples: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Convolve (samples,) with a room's impulse response, (n,), from its direct sound on.

    Length and power are kept.
    """
    response = response[np.abs(response).argmax() :]
    size = scipy.fft.next_fast_len(len(samples) + len(response) - 1, real=True)
    spectrum = scipy.fft.rfft(samples, size) * scipy.fft.rfft(response, size)
    reverberant = scipy.fft.irfft(spectrum, size)[: len(samples)]
    gain = np.sqrt(mean_power(samples) / max(mean_power(reverberant), _SMALLEST_POWER))
    return reverberant * np.float32(gain)


def mean_power(samples: np.ndarray) -> float:
    """Mean square of (samples,)."""
    return float(np.mean(np.square(samples)))


def noise_segment(recording: np.ndarray, start: int, length: int) -> np.ndarray:
    """(length,) samples of a recording from ``start`` on; after its end it begins again."""
    if start + length <= len(recording):
        return recording[start : start + length]
    return np.take(recording, np.arange(start, start + length), mode="wrap")


def coloured_noise(length: int, slope: float, rng: np.random.Generator) -> np.ndarray:
    """Noise whose power falls with 1/f^slope: (length,) float32, power about 1."""
    size = scipy.fft.next_fast_len(max(length, 2), real=True)
    spectrum = scipy.fft.rfft(rng.standard_normal(size, dtype=np.float32))
    spectrum[1:] *= np.arange(1, len(spectrum), dtype=np.float32) ** (-slope / 2)
    noise = scipy.fft.irfft(spectrum, size)[:length]
    return noise / np.float32(np.sqrt(max(mean_power(noise), _SMALLEST_POWER)))


def random_coloured_noise(length: int, rng: np.random.Generator) -> np.ndarray:
    """Coloured noise of a random slope between white and brown: (length,) float32, power about 1."""
    return coloured_noise(length, slope=rng.uniform(*_NOISE_SLOPE), rng=rng)


def generated_room(seconds: float, ratio_db: float, rng: np.random.Generator, sample_rate: int) -> np.ndarray:
    """Impulse response of a room: the direct sound, then noise that decays.

    Args:
        seconds: reverberation time (RT60), in which the noise falls by 60 dB.
        ratio_db: power of the direct sound relative to the rest.
        rng: random generator.
        sample_rate: Hz.

    Returns:
        (samples,) float32.
    """
    length = max(2, int(seconds * sample_rate))
    decay = 10.0 ** (-3.0 * np.arange(length) / length)  # of the amplitude: 60 dB in all
    response = (rng.standard_normal(length) * decay).astype(np.float32)
    response[0] = 0.0
    response *= np.float32(10.0 ** (-ratio_db / 20.0) / np.sqrt(np.square(response).sum()))
    response[0] = 1.0
    return response
