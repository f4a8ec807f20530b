"""Tests of pitch estimation on generated sounds and on recordings played faster."""

import numpy as np
import pytest

from analysis.inputs.sound import median_pitch
from tests.support.recordings import RECORDINGS
from utils.audio.reading import read_audio

RATE = 16_000
RNG = np.random.default_rng(0)


def voice(hertz: np.ndarray, harmonics: int = 12) -> np.ndarray:
    """A buzz with the pitch of each sample: (samples,)."""
    phase = 2 * np.pi * np.cumsum(hertz) / RATE
    return sum(np.cos(number * phase + number) / number for number in range(1, harmonics + 1))


@pytest.mark.parametrize("hertz", [70, 110, 163, 220, 305, 390])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_steady_voice(hertz: float, noise: float):
    samples = voice(np.full(RATE, float(hertz)))
    samples += noise * samples.std() * RNG.standard_normal(len(samples))
    assert median_pitch(samples, RATE) == pytest.approx(hertz, rel=0.03)


def test_the_median_of_a_gliding_voice():
    assert median_pitch(voice(np.linspace(120.0, 180.0, 2 * RATE)), RATE) == pytest.approx(150, rel=0.03)


def test_without_its_fundamental_a_voice_keeps_its_pitch():
    whole = voice(np.full(RATE, 130.0))
    telephone = whole - np.cos(2 * np.pi * 130.0 * np.arange(1, RATE + 1) / RATE + 1)
    assert median_pitch(telephone, RATE) == pytest.approx(130, rel=0.03)


def test_sounds_without_a_pitch():
    assert median_pitch(RNG.standard_normal(RATE), RATE) is None
    assert median_pitch(np.zeros(RATE), RATE) is None
    assert median_pitch(voice(np.full(1000, 200.0)), RATE) is None
    assert median_pitch(np.zeros(0, np.float32), RATE) is None


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_that_is_played_faster(recording):
    samples = read_audio(recording, RATE)
    pitch = median_pitch(samples, RATE)
    assert 80 < pitch < 300
    assert median_pitch(samples, round(1.25 * RATE)) == pytest.approx(1.25 * pitch, rel=0.1)
