"""Clean synthetic speech in, a recording of it out: silence around it, a room, noise, a level.

All chance comes from the generator given, so equal generators give equal samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from data.features.waveform_effects import (
    add_noise,
    add_room,
    coloured_noise,
    generated_room,
    random_coloured_noise,
)

NOISE_PROBABILITY, ROOM_PROBABILITY = 0.6, 0.4

_SILENCE_SECONDS = (0.1, 0.35)
_ROOM_SECONDS = (0.1, 0.45)  # reverberation time (RT60)
_DIRECT_TO_REVERBERANT_DB = (3.0, 15.0)
_SNR_DB = {"coloured": (10.0, 35.0), "hum": (10.0, 30.0), "babble": (12.0, 30.0)}
_HUM_HZ = (50.0, 60.0)  # mains
_LEVEL_DB = (-32.0, -18.0)  # RMS below full scale
_PEAK = 0.97

Babble = Callable[[np.random.Generator, int], np.ndarray]


def record(
    speech: np.ndarray,
    rng: np.random.Generator,
    babble: Babble,
    sample_rate: int,
    silence_seconds: tuple[float, float] = _SILENCE_SECONDS,
) -> np.ndarray:
    """Put speech before a microphone.

    Args:
        speech: (samples,) float32, clean.
        rng: where all chance comes from.
        babble: gives (length,) float32 of several voices; called for a part of the recordings only.
        sample_rate: Hz.
        silence_seconds: range, before the speech and after it.

    Returns:
        (samples + silence,) float32 within ±0.97.
    """
    before, after = (int(seconds * sample_rate) for seconds in rng.uniform(*silence_seconds, size=2))
    samples = np.pad(speech, (before, after))
    if rng.random() < ROOM_PROBABILITY:
        seconds, ratio_db = rng.uniform(*_ROOM_SECONDS), rng.uniform(*_DIRECT_TO_REVERBERANT_DB)
        samples = add_room(samples, generated_room(seconds, ratio_db, rng, sample_rate))
    if rng.random() < NOISE_PROBABILITY:
        samples = _noisy(samples, rng, babble, sample_rate)
    level = 10.0 ** (rng.uniform(*_LEVEL_DB) / 20.0)
    factor = min(level / float(np.sqrt(np.mean(np.square(samples)))), _PEAK / float(np.abs(samples).max()))
    return (samples * factor).astype(np.float32)


def hum(length: int, rng: np.random.Generator, sample_rate: int) -> np.ndarray:
    """Mains hum, a tone with falling harmonics, over a little hiss: (length,) float32, power about 1."""
    time = np.arange(length) / sample_rate
    basic = _HUM_HZ[rng.integers(len(_HUM_HZ))]
    numbers = np.arange(1, 9)
    amplitudes, phases = rng.uniform(0.2, 1.0, 8) / numbers, rng.uniform(0.0, 2.0 * np.pi, 8)
    tones = (
        np.sin(2.0 * np.pi * basic * np.outer(time, numbers) + phases) @ amplitudes
    )  # (length, 8) -> (length,)
    tones /= np.sqrt(np.mean(np.square(tones)))
    return (tones + 0.1 * coloured_noise(length, 1.0, rng)).astype(np.float32)


def _noisy(samples: np.ndarray, rng: np.random.Generator, babble: Babble, sample_rate: int) -> np.ndarray:
    kind = ("coloured", "coloured", "hum", "babble")[rng.integers(4)]
    snr_db = rng.uniform(*_SNR_DB[kind])
    if kind == "coloured":
        noise = random_coloured_noise(len(samples), rng)
    elif kind == "hum":
        noise = hum(len(samples), rng, sample_rate)
    else:
        noise = babble(rng, len(samples))
    return add_noise(samples, noise, snr_db)
