"""Tests of telephone lines and codecs as augmentation: length, band, alignment with the original."""

import numpy as np
import pytest
import scipy.signal

from data.features import augment as codecs
from data.features.augment import AugmentConfig, augment_waveform

RATE = 16_000


def voice(seconds: float = 2.0) -> np.ndarray:
    """Harmonics of a gliding pitch under a syllable-like envelope."""
    time = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(120 + 40 * np.sin(3 * time)) / RATE
    harmonics = sum(np.sin(n * phase) / n for n in range(1, 40))
    return (0.2 * harmonics * np.abs(np.sin(5 * time))).astype(np.float32)


def power(samples: np.ndarray, low: float, high: float) -> float:
    spectrum = np.abs(np.fft.rfft(samples)) ** 2
    hertz = np.fft.rfftfreq(len(samples), 1 / RATE)
    return float(spectrum[(hertz >= low) & (hertz < high)].sum())


@pytest.mark.parametrize("codec", codecs._TELEPHONE_CODECS)
def test_a_telephone_line_keeps_its_band_and_the_time(codec, monkeypatch):
    monkeypatch.setattr(codecs, "_TELEPHONE_CODECS", (codec,))
    samples = voice()
    heard = codecs.through_telephone(samples, RATE, np.random.default_rng(0))
    assert heard.shape == samples.shape
    assert heard.dtype == np.float32
    assert power(heard, 4100, 8000) < 1e-3 * power(samples, 4100, 8000) + 1e-4 * power(samples, 0, 8000)
    assert power(heard, 500, 3000) == pytest.approx(power(samples, 500, 3000), rel=0.3)
    band = scipy.signal.butter(4, (500, 3000), "bandpass", fs=RATE, output="sos")
    samples, heard = (scipy.signal.sosfiltfilt(band, each) for each in (samples, heard))
    shifts = range(-200, 201)
    correlation = [float(np.dot(samples, np.roll(heard, shift))) for shift in shifts]
    assert abs(shifts[int(np.argmax(correlation))]) <= 16  # 1 ms


@pytest.mark.parametrize("codec", codecs._CODECS)
def test_a_codec_keeps_length_and_time(codec, monkeypatch):
    monkeypatch.setattr(codecs, "_CODECS", (codec,))
    samples = voice()
    heard = codecs.through_codec(samples, RATE, np.random.default_rng(0))
    assert heard.shape == samples.shape
    assert np.dot(samples, heard) / np.dot(samples, samples) == pytest.approx(1, abs=0.1)
    assert not np.array_equal(samples, heard)


def test_copies_are_repeatable_and_the_probabilities_select():
    config = AugmentConfig(
        copies=1,
        speeds=(1.0,),
        noise_probability=0,
        room_probability=0,
        gain_db=(0, 0),
        telephone_probability=1,
    )
    first, second = (augment_waveform(voice(), np.random.default_rng(5), config) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert power(first, 4100, 8000) < 0.01 * power(voice(), 4100, 8000) + 1e-4 * power(voice(), 0, 8000)
