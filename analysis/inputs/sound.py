"""Estimates the signal-to-noise ratio of a recording and the median pitch of the voice in it."""

import numpy as np

FRAME_SECONDS = 0.02  # length of a frame; frames do not overlap
# The noise is measured in the quietest tenth of the frames. Even read speech has that many pauses between
# words, and the power of steady noise hardly differs between frames of 20 ms.
QUIETEST = 0.1  # fraction of the frames
SPEECH_ABOVE_NOISE = 2.0  # ratio of powers; frames below it do not count as speech
MIN_FRAMES = 10  # shorter recordings have no estimate
MIN_DB, MAX_DB = -10.0, 60.0  # the estimate is clipped to this range
LOWEST_HZ, HIGHEST_HZ = 60.0, 400.0
WINDOW_SECONDS, HOP_SECONDS = 0.025, 0.02
APERIODICITY = 0.15  # frames above it are not voiced
MIN_VOICED_FRAMES = 10
_BATCH = 1000  # frames that are computed at once


def signal_to_noise(samples: np.ndarray, sample_rate: int) -> float | None:
    """The ratio of the mean power of speech to that of the noise in dB, from -10 to 60.

    The estimate assumes steady noise and pauses in the speech; for music or babble it is too high. For a
    recording with digital silence it is 60 dB.

    Args:
        samples: (samples,) float, mono, of any scale.
        sample_rate: Hz.

    Returns:
        None for less than 0.2 s, or if all samples are zero.
    """
    size = int(sample_rate * FRAME_SECONDS)
    frames = samples[: len(samples) // size * size].reshape(-1, size).astype(np.float64)  # (frames, size)
    frames = frames - frames.mean(
        axis=1, keepdims=True
    )  # removes offset and low hum, which are not noise here
    power = np.sort(np.square(frames).mean(axis=1))  # (frames,)
    if len(power) < MIN_FRAMES or power[-1] == 0:
        return None
    quietest = power[: max(MIN_FRAMES // 2, round(QUIETEST * len(power)))]
    noise = float(quietest.mean())
    spoken = power[power > SPEECH_ABOVE_NOISE * noise]
    if noise == 0:
        return MAX_DB
    if not len(spoken):
        return MIN_DB
    return float(np.clip(10.0 * np.log10((spoken.mean() - noise) / noise), MIN_DB, MAX_DB))


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
    return float(np.median(voiced)) if len(voiced) >= MIN_VOICED_FRAMES else None


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
