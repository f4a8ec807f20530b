"""Batches of keyword clips → altered batches: another speed, another moment, noise, another level; masks.

It runs for each batch of each epoch anew, so it is made to be fast: 100 clips of a second in some 30 ms. All
chance comes from the generator given, and as much for each clip whatever becomes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.features.augment import SpecAugmentConfig, coloured_noise, spec_augment
from data.keywords.clips import NOISE_SHARES
from utils.audio.reading import SAMPLE_RATE, audio_blocks, audio_seconds, resample
from utils.config import at_least
from utils.errors import ConfigError

_NOISE_SECONDS = 300  # of each recording of noise in memory (20 MB)
_GENERATED_SLOPES = (0.0, 0.5, 1.0, 1.5, 2.0)  # power ∝ 1/f^slope
_GENERATED_SECONDS = 20


@dataclass(frozen=True)
class KeywordAugmentConfig:
    """What may happen to the clips of a batch.

    Attributes:
        shift_ms: a clip moves by at most so much to either side; zeros come in.
        speed: range of factors of tempo and pitch.
        speed_probability: share of the clips that get another speed.
        snr_db: range of the clip's power over that of the noise, in decibels.
        noise_probability: share of the clips that get noise.
        gain_db: range of the change of level in decibels.
    """

    shift_ms: float = 100.0
    speed: tuple[float, float] = (0.85, 1.15)
    speed_probability: float = 0.7
    snr_db: tuple[float, float] = (0.0, 25.0)
    noise_probability: float = 0.7
    gain_db: tuple[float, float] = (-12.0, 6.0)

    def __post_init__(self):
        at_least(self, "augment", shift_ms=0)
        for name in ("speed", "snr_db", "gain_db"):
            low, high = getattr(self, name)
            if low > high:
                raise ConfigError(f"augment.{name} is {[low, high]}", hint="the lower value first")
        if not 0.5 <= self.speed[0] <= self.speed[1] <= 2.0:
            raise ConfigError(f"augment.speed is {list(self.speed)}", hint="factors from 0.5 to 2")
        for name in ("speed_probability", "noise_probability"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"augment.{name} is {getattr(self, name)}", hint="from 0 to 1")


def load_noises(
    recordings: Sequence[Path], sample_rate: int = SAMPLE_RATE, seed: int = 0
) -> list[np.ndarray]:
    """Noise for :func:`augment_clips`: (samples,) float32 each, the first minutes of each recording.

    What dev and test cut their silence from is left out. Without recordings noise is generated, from white to
    brown, the same for the same seed.

    Raises:
        AudioError: a recording can't be read.
    """
    if recordings:
        return [_beginning(path, sample_rate) for path in recordings]
    rng = np.random.default_rng(seed)
    length = _GENERATED_SECONDS * sample_rate
    return [np.float32(0.1) * coloured_noise(length, slope, rng) for slope in _GENERATED_SLOPES]


def augment_clips(
    samples: np.ndarray,
    config: KeywordAugmentConfig,
    rng: np.random.Generator,
    noises: Sequence[np.ndarray],
    sample_rate: int = SAMPLE_RATE,
) -> np.ndarray:
    """Altered copies of a batch: speed, then shift, then noise, then gain.

    Args:
        samples: (clips, samples) float32 in [-1, 1].
        config: what may happen.
        rng: where all chance comes from.
        noises: (samples,) float32 each, from :func:`load_noises`.
        sample_rate: Hz.

    Returns:
        (clips, samples) float32 in [-1, 1]; a digitally silent clip stays silent.

    Raises:
        ValueError: noise is asked for, and there is none.
    """
    count, length = samples.shape
    if config.noise_probability and not noises:
        raise ValueError("noises are empty: load_noises([]) generates some")
    # Drawn for all clips, needed or not: a clip's chance doesn't depend on what happens to the others.
    speeds = rng.uniform(*config.speed, count)
    speeds[rng.random(count) >= config.speed_probability] = 1.0
    most = config.shift_ms / 1000 * sample_rate
    shifts = np.rint(rng.uniform(-most, most, count)).astype(int)
    noisy = rng.random(count) < config.noise_probability
    snr_db = rng.uniform(*config.snr_db, count)
    pieces = rng.random((count, 2))  # which noise, and where in it
    gains = 10.0 ** (rng.uniform(*config.gain_db, count) / 20.0)

    altered = np.zeros((count, length), np.float32)
    for row, (clip, speed, shift) in enumerate(zip(samples, speeds, shifts, strict=True)):
        _place(altered[row], _at_speed(clip, speed, sample_rate), shift)
    for row in np.flatnonzero(noisy):
        _add_noise(altered[row], _piece(noises, *pieces[row], length), snr_db[row])
    altered *= gains.astype(np.float32)[:, None]
    return np.clip(altered, -1.0, 1.0, out=altered)


def mask_features(features: np.ndarray, config: SpecAugmentConfig, rng: np.random.Generator) -> np.ndarray:
    """SpecAugment's masks, other ones for each clip: a copy of (clips, frames, values) float32.

    On DCT coefficients (``mfcc``) a band is one of cepstral coefficients, and ``frequency_warp`` makes no
    sense; log-mel values are what it was made for.
    """
    return np.stack([spec_augment(clip, rng, config) for clip in features])


def _at_speed(clip: np.ndarray, speed: float, sample_rate: int) -> np.ndarray:
    """(samples,) → (samples / speed,); band-limited, as what lies above half the rate would fold back."""
    return resample(clip, sample_rate * speed, sample_rate, "LQ") if speed != 1.0 else clip


def _place(row: np.ndarray, clip: np.ndarray, shift: int) -> None:
    """Put a clip's middle ``shift`` samples behind that of a row of zeros; what stands out is lost."""
    start = (len(row) - len(clip)) // 2 + shift
    low, high = max(start, 0), min(start + len(clip), len(row))
    if low < high:
        row[low:high] = clip[low - start : high - start]


def _piece(noises: Sequence[np.ndarray], which: float, where: float, length: int) -> np.ndarray:
    """(length,) float32 of a recording of noise, which is repeated if it is shorter."""
    noise = noises[int(which * len(noises))]
    if len(noise) < length:
        return np.resize(np.roll(noise, -int(where * len(noise))), length)
    start = int(where * (len(noise) - length + 1))
    return noise[start : start + length]


def _add_noise(row: np.ndarray, noise: np.ndarray, snr_db: float) -> None:
    """As ``data.features.augment.add_noise``, in place and by dot products, three times as fast."""
    power, noise_power = np.dot(row, row), np.dot(noise, noise)
    if power > 0 and noise_power > 0:
        row += np.float32(np.sqrt(power / noise_power / 10.0 ** (snr_db / 10.0))) * noise


def _beginning(path: Path, sample_rate: int) -> np.ndarray:
    seconds = min(_NOISE_SECONDS, NOISE_SHARES["train"][1] * audio_seconds(path))
    length = max(1, round(seconds * sample_rate))
    blocks, have = [], 0
    for block in audio_blocks(path, sample_rate):
        blocks.append(block)
        have += len(block)
        if have >= length:
            break
    return np.concatenate(blocks)[:length]
