"""Recordings → altered recordings, features → masked features: variety that the corpus lacks.

Waveforms get another speed, room, noise and level before their features are made and cached; features
get SpecAugment's masks in each epoch anew. Both draw all chance from the generator they are given: equal
generators, equal results.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.fft

from utils.audio.reading import SAMPLE_RATE, read_audio, recordings_in, resample
from utils.config import at_least
from utils.errors import ConfigError

_ROOM_SECONDS = (0.15, 0.6)  # reverberation time (RT60) of generated rooms
_DIRECT_TO_REVERBERANT_DB = (0.0, 12.0)
_NOISE_SLOPE = (0.0, 2.0)  # generated noise has power ∝ 1/f^slope: white 0, pink 1, brown 2
_RECORDINGS_KEPT = 16  # noise recordings in memory at a time, for each process


@dataclass(frozen=True)
class AugmentConfig:
    """How the altered copies of each training recording are made.

    Attributes:
        copies: altered copies beside the recording itself; an epoch uses one of all, by chance.
        speeds: factors of tempo and pitch; one is drawn for each copy.
        noise_probability: share of the copies that get noise.
        noise_folder: recordings of noise (searched through); None = generated coloured noise.
        snr_db: range of the speech-to-noise power ratio in decibels.
        room_probability: share of the copies that get reverberation.
        room_folder: room impulse responses; None = generated ones.
        gain_db: range of the change of level in decibels.
    """

    copies: int = 0
    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    noise_probability: float = 0.5
    noise_folder: str | None = None
    snr_db: tuple[float, float] = (5.0, 25.0)
    room_probability: float = 0.3
    room_folder: str | None = None
    gain_db: tuple[float, float] = (-10.0, 5.0)

    def __post_init__(self):
        at_least(self, "augment", copies=0)
        if not self.speeds or not all(0.5 <= speed <= 2.0 for speed in self.speeds):
            raise ConfigError(f"augment.speeds is {list(self.speeds)}", hint="factors from 0.5 to 2")
        for name in ("noise_probability", "room_probability"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"augment.{name} is {getattr(self, name)}", hint="from 0 to 1")
        for name in ("snr_db", "gain_db"):
            low, high = getattr(self, name)
            if low > high:
                raise ConfigError(f"augment.{name} is {[low, high]}", hint="the lower value first")


@dataclass(frozen=True)
class SpecAugmentConfig:
    """Other vocal tracts; masks over features (Park et al. 2019, arXiv:1904.08779, section 2; no time warp).

    Attributes:
        frequency_warp: the bins' positions are scaled by a factor within 1 ± this, drawn for each utterance,
            as if another mouth spoke (vocal tract length perturbation, Jaitly & Hinton 2013); 0 for none.
        frequency_masks: bands of bins that are masked.
        frequency_width: widest band, in bins.
        time_masks: stretches of frames that are masked.
        time_width: longest stretch, in frames.
        time_width_ratio: longest stretch as a share of the utterance; the smaller limit holds.
    """

    frequency_warp: float = 0.0
    frequency_masks: int = 2
    frequency_width: int = 20
    time_masks: int = 2
    time_width: int = 40
    time_width_ratio: float = 0.1

    def __post_init__(self):
        if self.frequency_warp >= 0.5:
            raise ConfigError(f"spec_augment.frequency_warp is {self.frequency_warp}", hint="below 0.5")
        at_least(self, "spec_augment", **{field.name: 0 for field in fields(self)})


def augment_waveform(
    samples: np.ndarray, rng: np.random.Generator, config: AugmentConfig, sample_rate: int = SAMPLE_RATE
) -> np.ndarray:
    """One altered copy: speed, then room, then noise, then gain, as sound takes its way to a recorder.

    Args:
        samples: (samples,) float32 in [-1, 1].
        rng: where all chance comes from.
        config: what may happen.
        sample_rate: Hz.

    Returns:
        (samples / speed,) float32 in [-1, 1].

    Raises:
        AudioError: a noise or room folder holds no recordings, or one is not readable.
    """
    speed = config.speeds[rng.integers(len(config.speeds))]
    samples = resample(samples, sample_rate * speed, sample_rate)
    if rng.random() < config.room_probability:
        samples = add_room(samples, _room(rng, config, sample_rate))
    if rng.random() < config.noise_probability:
        noise = _noise(len(samples), rng, config, sample_rate)
        samples = add_noise(samples, noise, rng.uniform(*config.snr_db))
    gain = 10.0 ** (rng.uniform(*config.gain_db) / 20.0)
    return np.clip(samples * np.float32(gain), -1.0, 1.0)


def add_noise(samples: np.ndarray, noise: np.ndarray, snr_db: float) -> np.ndarray:
    """Add ``noise`` (same length) at a power ``snr_db`` below that of ``samples``; silence stays as it is."""
    speech_power, noise_power = _power(samples), _power(noise)
    if speech_power == 0 or noise_power == 0:
        return samples
    factor = np.sqrt(speech_power / noise_power / 10.0 ** (snr_db / 10.0))
    return samples + np.float32(factor) * noise


def add_room(samples: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Convolve with a room's impulse response, from its direct sound on; length and power are kept."""
    response = response[np.abs(response).argmax() :]
    size = scipy.fft.next_fast_len(len(samples) + len(response) - 1, real=True)
    spectrum = scipy.fft.rfft(samples, size) * scipy.fft.rfft(response, size)
    wet = scipy.fft.irfft(spectrum, size)[: len(samples)]
    return wet * np.float32(np.sqrt(_power(samples) / max(_power(wet), 1e-20)))


def spec_augment(features: np.ndarray, rng: np.random.Generator, config: SpecAugmentConfig) -> np.ndarray:
    """A copy of (frames, bins) float32 features, warped, with bands and stretches set to their mean value."""
    frames, bins = features.shape
    longest = min(config.time_width, int(config.time_width_ratio * frames))
    if config.frequency_warp:
        factor = 1.0 + rng.uniform(-config.frequency_warp, config.frequency_warp)
        masked = warp_frequencies(features, factor)
    else:
        masked = features.copy()
    value = masked.mean()
    for start, stop in _mask_ranges(bins, config.frequency_masks, min(config.frequency_width, bins), rng):
        masked[:, start:stop] = value
    for start, stop in _mask_ranges(frames, config.time_masks, longest, rng):
        masked[start:stop] = value
    return masked


def warp_frequencies(features: np.ndarray, factor: float) -> np.ndarray:
    """Read (frames, bins) float32 features at positions scaled by ``factor``, between bins linearly."""
    bins = features.shape[1]
    positions = np.minimum(np.arange(bins, dtype=np.float32) * np.float32(factor), bins - 1)
    below = positions.astype(np.int64)
    above = np.minimum(below + 1, bins - 1)
    share = (positions - below).astype(np.float32)
    return features[:, below] * (1 - share) + features[:, above] * share


def forget_recordings() -> None:
    """Read noises and rooms from disk again when next needed: their folders may have changed."""
    _listed.cache_clear()
    _recording.cache_clear()


def coloured_noise(length: int, slope: float, rng: np.random.Generator) -> np.ndarray:
    """Noise whose power falls with 1/f^slope: (length,) float32, power about 1."""
    size = scipy.fft.next_fast_len(max(length, 2), real=True)
    spectrum = scipy.fft.rfft(rng.standard_normal(size, dtype=np.float32))
    spectrum[1:] *= np.arange(1, len(spectrum), dtype=np.float32) ** (-slope / 2)
    noise = scipy.fft.irfft(spectrum, size)[:length]
    return noise / np.float32(np.sqrt(max(_power(noise), 1e-20)))


def generated_room(seconds: float, ratio_db: float, rng: np.random.Generator, sample_rate: int) -> np.ndarray:
    """A room's impulse response: the direct sound, then noise that falls by 60 dB in ``seconds``.

    ``ratio_db`` is the power of the direct sound above that of all the rest. (samples,) float32.
    """
    length = max(2, int(seconds * sample_rate))
    decay = 10.0 ** (-3.0 * np.arange(length) / length)  # amplitude; 60 dB in all
    response = (rng.standard_normal(length) * decay).astype(np.float32)
    response[0] = 0.0
    response *= np.float32(10.0 ** (-ratio_db / 20.0) / np.sqrt(np.square(response).sum()))
    response[0] = 1.0
    return response


def _mask_ranges(size: int, count: int, widest: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` random (start, stop) ranges within ``size``, each of 0 to ``widest`` places."""
    widths = rng.integers(0, widest + 1, size=count)
    starts = rng.integers(0, size - widths + 1)
    return np.stack([starts, starts + widths], axis=1)


def _room(rng: np.random.Generator, config: AugmentConfig, sample_rate: int) -> np.ndarray:
    if config.room_folder is None:
        seconds, ratio_db = rng.uniform(*_ROOM_SECONDS), rng.uniform(*_DIRECT_TO_REVERBERANT_DB)
        return generated_room(seconds, ratio_db, rng, sample_rate)
    rooms = _listed(config.room_folder)
    return _recording(rooms[rng.integers(len(rooms))], sample_rate)


def _noise(length: int, rng: np.random.Generator, config: AugmentConfig, sample_rate: int) -> np.ndarray:
    """(length,) float32 of noise: a random piece of a random recording (repeated if short), or generated."""
    if config.noise_folder is None:
        return coloured_noise(length, rng.uniform(*_NOISE_SLOPE), rng)
    noises = _listed(config.noise_folder)
    recording = _recording(noises[rng.integers(len(noises))], sample_rate)
    start = rng.integers(len(recording))
    return np.take(recording, np.arange(start, start + length), mode="wrap")


def _power(samples: np.ndarray) -> float:
    return float(np.mean(np.square(samples)))


@lru_cache(maxsize=4)
def _listed(folder: str) -> tuple[Path, ...]:
    return tuple(recordings_in(folder))


@lru_cache(maxsize=_RECORDINGS_KEPT)
def _recording(path: Path, sample_rate: int) -> np.ndarray:
    return read_audio(path, sample_rate)
