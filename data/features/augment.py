"""Makes augmented copies of training recordings: another speed, room, noise, level, codec, shorter pauses.

The feature cache calls this before it computes the features. Random choices come from the generator that is
given: equal generators give equal copies. libsndfile encodes and decodes in memory.
"""

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.signal
import soundfile

from data.features.waveform_effects import (
    add_noise,
    add_room,
    generated_room,
    noise_segment,
    random_coloured_noise,
)
from utils.audio.folders import find_recordings
from utils.audio.padding import trim_pauses, with_pauses
from utils.audio.reading import SAMPLE_RATE, read_audio, resample
from utils.errors import require
from utils.limits import Limited, Size

_ROOM_SECONDS = (0.15, 0.6)  # reverberation time (RT60) of generated rooms
_DIRECT_TO_REVERBERANT_DB = (0.0, 12.0)  # power of the direct sound to that of the reverberation
_RECORDINGS_IN_MEMORY = 16  # recordings of noise and rooms that each process keeps
_TELEPHONE_RATE = 8000
_LOWEST_HZ, _HIGHEST_HZ = (150.0, 350.0), (3200.0, 3800.0)  # limits of the band, drawn for each line
_TELEPHONE_CODECS = ("ALAW", "ULAW", "GSM610")  # in WAV
_CODECS = (("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("OGG", "OPUS"))
_LOWEST_QUALITY = (0.85, 0.99)  # libsndfile's compression level, 1: the lowest bit rate


@dataclass(frozen=True)
class AugmentConfig(Limited, section="augment"):
    """How the augmented copies of each training recording are made.

    Attributes:
        copies: augmented copies of each recording; an epoch uses the recording itself or one copy, at random.
        speeds: factors of tempo and pitch; one is drawn for each copy.
        noise_probability: fraction of the copies that get noise.
        noise_folder: recordings of noise, subfolders included; None: generated coloured noise.
        snr_db: range of the signal-to-noise ratio in decibels.
        room_probability: fraction of the copies that get reverberation.
        room_folder: room impulse responses; None: generated ones.
        gain_db: range of the change of level in decibels.
        telephone_probability: fraction of the copies that go through a telephone line: 8 kHz, its band and
            one of its codecs.
        codec_probability: fraction of the others that go through a lossy codec at a low bit rate.
        trim_probability: fraction of the copies whose pauses at the edges are shortened, as in recordings
            that are cut close to the speech (:func:`utils.audio.padding.trim_pauses`).
    """

    copies: Size = 0
    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    noise_probability: float = 0.5
    noise_folder: str | None = None
    snr_db: tuple[float, float] = (5.0, 25.0)
    room_probability: float = 0.3
    room_folder: str | None = None
    gain_db: tuple[float, float] = (-10.0, 5.0)
    trim_probability: float = 0.0
    telephone_probability: float = 0.0
    codec_probability: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        require(
            self.speeds and all(0.5 <= speed <= 2.0 for speed in self.speeds),
            f"augment.speeds is {list(self.speeds)}",
            hint="factors from 0.5 to 2",
        )
        check_ranges(self, "snr_db", "gain_db")


def check_ranges(config: Any, *names: str) -> None:
    """Check the (low, high) ranges and all probabilities of a config of waveform augmentation.

    Raises:
        ConfigError: a value is out of its limits; it is named.
    """
    for name in names:
        low, high = getattr(config, name)
        require(low <= high, f"augment.{name} is {[low, high]}", hint="the lower value first")
    for name, value in vars(config).items():
        require(
            not name.endswith("_probability") or 0.0 <= value <= 1.0,
            f"augment.{name} is {value}",
            hint="from 0 to 1",
        )


def augment_waveform(
    samples: np.ndarray, rng: np.random.Generator, config: AugmentConfig, sample_rate: int = SAMPLE_RATE
) -> np.ndarray:
    """One augmented copy: speed, then room, noise, gain and codec, in the order in which sound is recorded.

    If the pauses are shortened, the copy gets the silence that the recogniser adds to such a recording
    (:func:`utils.audio.padding.with_pauses`).

    Args:
        samples: (samples,) float32 in [-1, 1].
        rng: random generator.
        config: the settings.
        sample_rate: Hz.

    Returns:
        (samples / speed,) float32 in [-1, 1]; another length if it is cut.

    Raises:
        AudioError: a noise or room folder holds no recordings, or one can't be read.
    """
    speed = config.speeds[rng.integers(len(config.speeds))]
    samples = resample(samples, sample_rate * speed, sample_rate)
    trimmed = config.trim_probability > 0 and rng.random() < config.trim_probability
    if trimmed:  # before noise is added, which would hide the pauses
        samples = trim_pauses(samples, sample_rate, rng)
    if rng.random() < config.room_probability:
        samples = add_room(samples, _room(rng, config, sample_rate))
    if rng.random() < config.noise_probability:
        samples = add_noise(
            samples, noise=_noise(len(samples), rng, config, sample_rate), snr_db=rng.uniform(*config.snr_db)
        )
    gain = 10.0 ** (rng.uniform(*config.gain_db) / 20.0)
    samples = np.clip(samples * np.float32(gain), -1.0, 1.0)
    if config.telephone_probability > 0 and rng.random() < config.telephone_probability:
        samples = through_telephone(samples, sample_rate, rng)
    elif config.codec_probability > 0 and rng.random() < config.codec_probability:
        samples = through_codec(samples, sample_rate, rng)
    return with_pauses(samples, sample_rate)[0] if trimmed else samples


def forget_recordings() -> None:
    """Read noises and rooms from disk again when they are next needed: their folders may have changed."""
    _folder_recordings.cache_clear()
    _recording.cache_clear()


def _room(rng: np.random.Generator, config: AugmentConfig, sample_rate: int) -> np.ndarray:
    if config.room_folder is None:
        seconds, ratio_db = rng.uniform(*_ROOM_SECONDS), rng.uniform(*_DIRECT_TO_REVERBERANT_DB)
        return generated_room(seconds, ratio_db, rng, sample_rate)
    return _random_recording(config.room_folder, rng, sample_rate)


def _noise(length: int, rng: np.random.Generator, config: AugmentConfig, sample_rate: int) -> np.ndarray:
    """(length,) float32 of noise: a random segment of a random recording, or generated."""
    if config.noise_folder is None:
        return random_coloured_noise(length, rng)
    recording = _random_recording(config.noise_folder, rng, sample_rate)
    return noise_segment(recording, int(rng.integers(len(recording))), length)


def _random_recording(folder: str, rng: np.random.Generator, sample_rate: int) -> np.ndarray:
    paths = _folder_recordings(folder)
    return _recording(paths[rng.integers(len(paths))], sample_rate)


@lru_cache(maxsize=4)
def _folder_recordings(folder: str) -> tuple[Path, ...]:
    return tuple(find_recordings(folder))


@lru_cache(maxsize=_RECORDINGS_IN_MEMORY)
def _recording(path: Path, sample_rate: int) -> np.ndarray:
    return read_audio(path, sample_rate)


def through_telephone(samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
    """A telephone line: (samples,) float32 in [-1, 1] → the same shape, with the band of 8 kHz."""
    narrow = resample(samples, sample_rate, _TELEPHONE_RATE)
    band = (rng.uniform(*_LOWEST_HZ), rng.uniform(*_HIGHEST_HZ))
    filters = scipy.signal.butter(2, band, "bandpass", fs=_TELEPHONE_RATE, output="sos")
    narrow = np.clip(scipy.signal.sosfilt(filters, narrow), -1.0, 1.0).astype(np.float32)
    coded = _coded(narrow, _TELEPHONE_RATE, "WAV", str(rng.choice(_TELEPHONE_CODECS)))
    return _of_length(resample(coded, _TELEPHONE_RATE, sample_rate), len(samples))


def through_codec(samples: np.ndarray, sample_rate: int, rng: np.random.Generator) -> np.ndarray:
    """MP3, Vorbis or Opus at a low bit rate: (samples,) float32 in [-1, 1] → the same shape."""
    container, codec = _CODECS[rng.integers(len(_CODECS))]
    level = rng.uniform(*_LOWEST_QUALITY)
    return _of_length(_coded(samples, sample_rate, container, codec, compression_level=level), len(samples))


def _coded(samples: np.ndarray, rate: int, container: str, codec: str, **options: float) -> np.ndarray:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=container, subtype=codec, **options)
    file.seek(0)
    return soundfile.read(file, dtype="float32")[0]


def _of_length(samples: np.ndarray, length: int) -> np.ndarray:
    """Codecs append some samples to fill their last frame."""
    return np.pad(samples[:length], (0, max(0, length - len(samples))))
