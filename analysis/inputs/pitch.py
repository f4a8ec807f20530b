"""Estimates the median pitch of the voice in a recording, by the YIN algorithm."""

import numpy as np

LOWEST_HZ, HIGHEST_HZ = 60.0, 400.0
WINDOW_SECONDS, HOP_SECONDS = 0.025, 0.02
APERIODICITY = 0.15  # frames above it are not voiced
MIN_FRAMES = 10  # voiced ones
_BATCH = 1000  # frames that are computed at once


def median_pitch(samples: np.ndarray, sample_rate: int) -> float | None:
    """The median fundamental frequency of the voiced frames in Hz, from 60 to 400.

    Each frame is compared with itself, delayed by every period. Its pitch is the shortest period at which the
    cumulative mean normalised difference has a minimum below 0.15 (YIN: de Cheveigné and Kawahara, 2002,
    "YIN, a fundamental frequency estimator for speech and music", steps 1 to 4).

    Args:
        samples: (samples,) float, mono, of any scale.
        sample_rate: Hz.

    Returns:
        None for less than ten voiced frames (0.2 s).
    """
    window = round(WINDOW_SECONDS * sample_rate)
    longest = int(sample_rate / LOWEST_HZ)
    if len(samples) < window + longest:
        return None
    every = round(HOP_SECONDS * sample_rate)
    frames = np.lib.stride_tricks.sliding_window_view(samples, window + longest)[::every]
    pitches = [
        _frame_pitches(frames[start : start + _BATCH].astype(np.float64), window, sample_rate)
        for start in range(0, len(frames), _BATCH)
    ]
    voiced = np.concatenate(pitches)
    return float(np.median(voiced)) if len(voiced) >= MIN_FRAMES else None


def _frame_pitches(frames: np.ndarray, window: int, sample_rate: int) -> np.ndarray:
    """Pitch of each voiced frame: (frames, window + longest period) → (voiced frames,) in Hz."""
    periods = np.arange(1, frames.shape[1] - window + 1)
    energy = np.cumsum(np.square(frames), axis=1)
    energy = np.concatenate(
        [energy[:, window - 1 : window], energy[:, window:] - energy[:, :-window]], axis=1
    )
    size = 2 ** int(np.ceil(np.log2(frames.shape[1] + window)))
    spectrum = np.fft.rfft(frames, size) * np.conj(np.fft.rfft(frames[:, :window], size))
    correlation = np.fft.irfft(spectrum, size)[:, 1 : len(periods) + 1]
    difference = np.maximum(energy[:, :1] + energy[:, 1:] - 2.0 * correlation, 0.0)  # (frames, periods)
    sums = np.cumsum(difference, axis=1)
    normalised = np.divide(difference * periods, sums, out=np.ones_like(sums), where=sums > 0)
    shortest = int(sample_rate / HIGHEST_HZ)
    inner = normalised[:, shortest:-1]
    is_minimum = (inner <= normalised[:, shortest - 1 : -2]) & (inner < normalised[:, shortest + 1 :])
    found = is_minimum & (inner < APERIODICITY)
    return sample_rate / periods[shortest + np.argmax(found[found.any(axis=1)], axis=1)]
