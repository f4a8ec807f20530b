"""Sends waveforms through a telephone line or a lossy codec, for augmented copies of recordings.

libsndfile encodes and decodes in memory. Random choices come from the generator that is given.
"""

import io

import numpy as np
import scipy.signal
import soundfile

from utils.audio.reading import resample

_TELEPHONE_RATE = 8000
_LOWEST_HZ, _HIGHEST_HZ = (150.0, 350.0), (3200.0, 3800.0)  # limits of the band, drawn for each line
_TELEPHONE_CODECS = ("ALAW", "ULAW", "GSM610")  # in WAV
_CODECS = (("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("OGG", "OPUS"))
_LOWEST_QUALITY = (0.85, 0.99)  # libsndfile's compression level, 1: the lowest bit rate


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
