"""Augments batches of keyword clips: random speed, position, noise and level; or masks in their features.

Every batch of every epoch is augmented again, so this has to be fast: 100 clips of a second take about 30 ms.
Random choices come from the generator that is given. Each clip uses the same number of random values,
whether it needs them or not, so clips don't influence each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.features.augment import check_ranges
from data.features.spec_augment import SpecAugmentConfig, spec_augment
from data.features.waveform_effects import add_noise, coloured_noise, noise_segment
from data.keywords.clips import NOISE_PARTS
from utils.audio.properties import audio_seconds
from utils.audio.reading import SAMPLE_RATE, audio_blocks, resample
from utils.errors import require
from utils.limits import Limited, NotNegative

_NOISE_SECONDS = 300  # how much of each recording of noise is kept in memory (20 MB)
# Generated noises, used without recordings of noise: one for each slope of the spectrum (power ∝ 1/f^slope).
_GENERATED_SLOPES = (0.0, 0.5, 1.0, 1.5, 2.0)
_GENERATED_SECONDS = 20


@dataclass(frozen=True)
class KeywordAugmentConfig(Limited, section="augment"):
    """How the clips of a batch are altered.

    Attributes:
        shift_ms: a clip moves by at most this to either side; zeros fill the gap.
        speed: range of factors of tempo and pitch.
        speed_probability: fraction of the clips that get another speed.
        snr_db: range of the signal-to-noise ratio in decibels.
        noise_probability: fraction of the clips that get noise.
        gain_db: range of the change of level in decibels.
    """

    shift_ms: NotNegative = 100.0
    speed: tuple[float, float] = (0.85, 1.15)
    speed_probability: float = 0.7
    snr_db: tuple[float, float] = (0.0, 25.0)
    noise_probability: float = 0.7
    gain_db: tuple[float, float] = (-12.0, 6.0)

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, "speed", "snr_db", "gain_db")
        require(
            0.5 <= self.speed[0] <= self.speed[1] <= 2.0,
            f"augment.speed is {list(self.speed)}",
            hint="factors from 0.5 to 2",
        )


def load_noises(
    recordings: Sequence[Path], sample_rate: int = SAMPLE_RATE, seed: int = 0
) -> list[np.ndarray]:
    """Noise for :func:`augment_clips`: (samples,) float32 each, the first minutes of each recording.

    The parts from which dev and test take their silence are left out. Without recordings noise is generated,
    from white to brown, and depends on the seed only.

    Raises:
        AudioError: a recording can't be read.
    """
    if recordings:
        return [_training_part(path, sample_rate) for path in recordings]
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
    """Augmented copies of a batch: speed, then shift, noise and gain.

    Args:
        samples: (clips, samples) float32 in [-1, 1].
        config: the settings.
        rng: random generator.
        noises: (samples,) float32 each, from :func:`load_noises`.
        sample_rate: Hz.

    Returns:
        (clips, samples) float32 in [-1, 1]; a digitally silent clip stays silent.

    Raises:
        ValueError: noise is asked for, but ``noises`` is empty.
    """
    count, length = len(samples), samples.shape[1]
    if config.noise_probability and not noises:
        raise ValueError("noises are empty: load_noises([]) generates some")
    # Drawn for all clips, needed or not, so that the clips don't influence each other.
    speeds = rng.uniform(*config.speed, count)
    speeds[rng.random(count) >= config.speed_probability] = 1.0
    largest_shift = config.shift_ms / 1000 * sample_rate
    shifts = np.rint(rng.uniform(-largest_shift, largest_shift, count)).astype(int)
    noisy = rng.random(count) < config.noise_probability
    snr_db = rng.uniform(*config.snr_db, count)
    choices, starts = rng.random((count, 2)).T  # of a noise, and of a position in it, as fractions
    gains = 10.0 ** (rng.uniform(*config.gain_db, count) / 20.0)

    altered = np.zeros((count, length), np.float32)
    for row, (clip, speed, shift) in enumerate(zip(samples, speeds, shifts, strict=True)):
        _insert(altered[row], resample(clip, sample_rate * speed, sample_rate, "LQ"), shift)
    for row in np.flatnonzero(noisy):
        noise = noises[int(choices[row] * len(noises))]
        segment = noise_segment(noise, int(starts[row] * len(noise)), length)
        altered[row] = add_noise(altered[row], segment, snr_db[row])
    altered *= gains.astype(np.float32)[:, None]
    return np.clip(altered, -1.0, 1.0, out=altered)


def mask_features(features: np.ndarray, config: SpecAugmentConfig, rng: np.random.Generator) -> np.ndarray:
    """A copy of (clips, frames, values) float32 with SpecAugment masks, different ones for each clip.

    They are meant for log-mel values. For ``mfcc`` a band is one of cepstral coefficients, and
    ``frequency_warp`` has no meaning.
    """
    return np.stack([spec_augment(clip, rng, config) for clip in features])


def _insert(row: np.ndarray, clip: np.ndarray, shift: int) -> None:
    """Write a clip into a row of zeros, its centre ``shift`` samples behind the row's; cut off the rest."""
    start = (len(row) - len(clip)) // 2 + shift
    low, high = max(start, 0), min(start + len(clip), len(row))
    if low < high:
        row[low:high] = clip[low - start : high - start]


def _training_part(path: Path, sample_rate: int) -> np.ndarray:
    """The part of a recording that is for training, or its first minutes: (samples,) float32."""
    seconds = min(_NOISE_SECONDS, NOISE_PARTS["train"][1] * audio_seconds(path))
    length = max(1, round(seconds * sample_rate))
    blocks, count = [], 0
    for block in audio_blocks(path, sample_rate):
        blocks.append(block)
        count += len(block)
        if count >= length:
            break
    return np.concatenate(blocks)[:length]
