"""Simulates recordings of clean synthetic speech: adds silence, a room, noise and a level; also noise alone.

All randomness comes from the given generator: equal generators give equal samples.
"""

from pathlib import Path

import numpy as np

from data.features.waveform_effects import (
    add_noise,
    add_room,
    coloured_noise,
    generated_room,
    random_coloured_noise,
)
from data.synthesis.speech import Babble
from utils.audio.reading import SAMPLE_RATE
from utils.audio.samples import write_wav

NOISE_PROBABILITY, ROOM_PROBABILITY = 0.6, 0.4  # fractions of the recordings with noise, in a room

# Ranges from which a value is drawn for each recording.
_SILENCE_SECONDS = (0.1, 0.35)
_ROOM_SECONDS = (0.1, 0.45)  # reverberation time (RT60)
_DIRECT_TO_REVERBERANT_DB = (3.0, 15.0)
_SNR_DB = {"coloured": (10.0, 35.0), "hum": (10.0, 30.0), "babble": (12.0, 30.0)}
_HUM_HZ = (50.0, 60.0)  # mains
_LEVEL_DB = (-32.0, -18.0)  # root mean square, relative to full scale
_PEAK = 0.97  # largest sample: the level is lower if it would be exceeded

_NOISE_SECONDS = 60  # length of each recording of noise alone
_NOISE_RMS = 0.05  # level of these recordings
_NOISE_KEY = 11  # purpose of a random generator


def record(
    speech: np.ndarray,
    rng: np.random.Generator,
    babble: Babble,
    sample_rate: int,
    silence_seconds: tuple[float, float] = _SILENCE_SECONDS,
) -> np.ndarray:
    """Simulate a recording of speech.

    Args:
        speech: (samples,) float32, clean.
        rng: the source of randomness.
        babble: generates (length,) float32 of several voices; called for some recordings only.
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
        samples = _add_random_noise(samples, rng, babble, sample_rate)
    level = 10.0 ** (rng.uniform(*_LEVEL_DB) / 20.0)
    factor = min(level / float(np.sqrt(np.mean(np.square(samples)))), _PEAK / float(np.abs(samples).max()))
    return (samples * factor).astype(np.float32)


def hum(length: int, rng: np.random.Generator, sample_rate: int) -> np.ndarray:
    """Generate mains hum, a tone with falling harmonics, with a little hiss: (length,) float32, power ≈ 1."""
    time = np.arange(length) / sample_rate
    fundamental = _HUM_HZ[rng.integers(len(_HUM_HZ))]
    harmonics = np.arange(1, 9)
    amplitudes, phases = rng.uniform(0.2, 1.0, 8) / harmonics, rng.uniform(0.0, 2.0 * np.pi, 8)
    angles = 2.0 * np.pi * fundamental * np.outer(time, harmonics) + phases  # (length, 8)
    tones = np.sin(angles) @ amplitudes  # (length,)
    tones /= np.sqrt(np.mean(np.square(tones)))
    return (tones + 0.1 * coloured_noise(length, 1.0, rng)).astype(np.float32)


def write_noises(folder: Path, babble: Babble, seed: int) -> None:
    """Write a minute each of white, pink and brown noise, mains hum, steps in a room, and babble.

    Args:
        folder: gets a WAV file of each.
        babble: generates (length,) float32 of several voices.
        seed: seed of all randomness.
    """
    length = _NOISE_SECONDS * SAMPLE_RATE
    rng = np.random.default_rng([seed, _NOISE_KEY])
    noises = {
        "white": coloured_noise(length, 0.0, rng),
        "pink": coloured_noise(length, 1.0, rng),
        "brown": coloured_noise(length, 2.0, rng),
        "hum": hum(length, rng, SAMPLE_RATE),
        "steps": _steps(length, rng),
        "babble": babble(rng, length),
    }
    for name, samples in noises.items():
        factor = _NOISE_RMS / np.sqrt(np.mean(np.square(samples)))
        write_wav(folder / f"{name}.wav", samples * np.float32(factor))


def _add_random_noise(
    samples: np.ndarray, rng: np.random.Generator, babble: Babble, sample_rate: int
) -> np.ndarray:
    kind = ("coloured", "coloured", "hum", "babble")[rng.integers(4)]
    snr_db = rng.uniform(*_SNR_DB[kind])
    if kind == "coloured":
        noise = random_coloured_noise(len(samples), rng)
    elif kind == "hum":
        noise = hum(len(samples), rng, sample_rate)
    else:
        noise = babble(rng, len(samples))
    return add_noise(samples, noise, snr_db)


def _steps(length: int, rng: np.random.Generator) -> np.ndarray:
    """Generate knocks about twice a second in a room, with a little noise: (length,) float32."""
    samples = np.zeros(length, np.float32)
    onsets = rng.integers(0, length, 2 * _NOISE_SECONDS)
    samples[onsets] = rng.uniform(0.3, 1.0, len(onsets))
    reverberant = add_room(samples, generated_room(0.4, -6.0, rng, SAMPLE_RATE))
    noise_level = np.float32(0.2 * np.sqrt(np.mean(np.square(reverberant))))
    return reverberant + noise_level * coloured_noise(length, 1.0, rng)
