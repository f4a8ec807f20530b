"""Tests of augmentation: reproducible from the generator, with the requested levels and lengths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.features.augment import AugmentConfig, augment_waveform
from data.features.spec_augment import SpecAugmentConfig, spec_augment, warp_frequencies
from data.features.waveform_effects import add_noise, add_room, coloured_noise, generated_room
from utils.audio.padding import LEAST_SECONDS, PAUSE_SECONDS
from utils.audio.samples import write_wav
from utils.config import build_config, to_plain
from utils.errors import ConfigError

RATE = 16_000
NOTHING = AugmentConfig(speeds=(1.0,), noise_probability=0.0, room_probability=0.0, gain_db=(0.0, 0.0))


def speech(samples: int = RATE) -> np.ndarray:
    return (0.1 * np.random.default_rng(5).normal(size=samples)).astype(np.float32)


def changed(**values) -> AugmentConfig:
    return build_config(AugmentConfig, {**to_plain(NOTHING), **values})


def decibels(left: np.ndarray, right: np.ndarray) -> float:
    return float(10 * np.log10(np.mean(np.square(left)) / np.mean(np.square(right))))


def peak_hertz(samples: np.ndarray) -> float:
    return float(np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples))


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 5000))
def test_any_copy_is_finite_float32_within_one(seed, samples):
    config = AugmentConfig(
        noise_probability=0.7, room_probability=0.7, gain_db=(-20.0, 20.0), trim_probability=0.5
    )
    copy = augment_waveform(speech(samples), np.random.default_rng(seed), config)
    assert copy.dtype == np.float32 and copy.ndim == 1 and len(copy)
    assert np.isfinite(copy).all() and np.abs(copy).max() <= 1.0


@pytest.mark.parametrize("speed", [0.9, 1.1, 1.5])
def test_speed_changes_length_and_pitch(speed):
    tone = (0.5 * np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)).astype(np.float32)
    faster = augment_waveform(tone, np.random.default_rng(0), changed(speeds=[speed]))
    assert len(faster) == pytest.approx(RATE / speed, abs=1)
    assert peak_hertz(faster) == pytest.approx(1000 * speed, abs=2)


def test_pauses_at_the_edges_are_shortened_and_never_the_speech():
    """A second of speech between pauses of 0.5 and 0.7 s: what is cut from each pause is random."""
    config, spoken = changed(trim_probability=1.0), speech()
    recording = np.concatenate([np.zeros(RATE // 2), spoken, np.zeros(7 * RATE // 10)]).astype(np.float32)
    pauses = []
    for seed in range(60):
        copy = augment_waveform(recording, np.random.default_rng(seed), config)
        start = int(np.flatnonzero(copy)[0])
        np.testing.assert_array_equal(copy[start : start + RATE], spoken)
        pauses.append((start / RATE, (len(copy) - start) / RATE - 1))
    before, after = np.array(pauses).T
    for pause, recorded in ((before, 0.5), (after, 0.7)):
        # Where less than LEAST_SECONDS were left, silence has been added; sounds are found in steps of 5 ms.
        shortest = min(LEAST_SECONDS, PAUSE_SECONDS) - 0.011
        assert shortest <= pause.min() < 0.2 and recorded - 0.15 < pause.max() <= recorded
    assert abs(np.corrcoef(before, after)[0, 1]) < 0.4


@pytest.mark.parametrize("snr", [-5.0, 0.0, 20.0])
def test_noise_has_the_requested_ratio(snr):
    noise = coloured_noise(RATE, 1.0, np.random.default_rng(0))
    assert decibels(speech(), add_noise(speech(), noise, snr) - speech()) == pytest.approx(snr, abs=0.01)


@pytest.mark.parametrize("slope", [0.0, 1.0, 2.0])
def test_coloured_noise_falls_as_requested(slope):
    noise = coloured_noise(1 << 17, slope, np.random.default_rng(0))
    assert np.mean(np.square(noise)) == pytest.approx(1, abs=1e-3)
    power = np.square(np.abs(np.fft.rfft(noise)))
    low, high = power[1000:2000].mean(), power[10_000:20_000].mean()
    assert np.log10(low / high) == pytest.approx(slope, abs=0.1)  # ten times the frequency


def test_a_room_equals_the_plain_convolution():
    response = generated_room(0.05, 3.0, np.random.default_rng(0), RATE)
    expected = np.convolve(speech(3000), response)[:3000]
    expected *= np.sqrt(np.mean(speech(3000) ** 2) / np.mean(expected**2))
    np.testing.assert_allclose(add_room(speech(3000), response), expected, atol=1e-5)


def test_a_generated_room_falls_by_60_db():
    response = generated_room(0.5, 6.0, np.random.default_rng(0), RATE)
    assert len(response) == 8000 and response[0] == 1.0
    assert decibels(response[:1], response[1:]) == pytest.approx(6.0 + 10 * np.log10(7999), abs=0.01)
    assert decibels(response[100:500], response[-400:]) == pytest.approx(60 * 7500 / 8000, abs=3)


def test_rooms_of_a_folder(tmp_path):
    write_wav(tmp_path / "echo.wav", np.array([0.8] + [0.0] * 99 + [0.4]))
    copy = augment_waveform(
        speech(), np.random.default_rng(0), changed(room_folder=str(tmp_path), room_probability=1.0)
    )
    echo = speech() + 0.5 * np.concatenate([np.zeros(100), speech()[:-100]])
    assert np.corrcoef(copy, echo)[0, 1] > 0.9999


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"copies": -1}, "augment.copies is -1"),
        ({"speeds": []}, r"augment.speeds is \[\]"),
        ({"speeds": [0.1]}, r"augment.speeds is \[0.1\]"),
        ({"noise_probability": 1.5}, "noise_probability is 1.5"),
        ({"snr_db": [10.0, 5.0]}, r"snr_db is \[10.0, 5.0\], .*the lower value first"),
        ({"snr_db": [10.0]}, "snr_db"),
        ({"speed": [1.0]}, "did you mean 'speeds'"),
    ],
)
def test_wrong_settings_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        build_config(AugmentConfig, values)


@settings(max_examples=50)
@given(st.integers(0, 1000), st.integers(1, 300), st.integers(1, 100))
def test_masks_stay_within_their_limits(seed, frames, bins):
    config = SpecAugmentConfig(frequency_masks=2, frequency_width=20, time_masks=3, time_width=40)
    features = np.random.default_rng(seed).normal(size=(frames, bins)).astype(np.float32)
    before = features.copy()
    masked = spec_augment(features, np.random.default_rng(seed), config)
    np.testing.assert_array_equal(features, before)
    assert masked.shape == features.shape and masked.dtype == np.float32
    differs = masked != features
    assert set(np.unique(masked[differs])) <= {features.mean()}
    assert differs.all(axis=0).sum() <= 2 * min(20, bins)
    if bins > 40:  # otherwise all bins could be masked
        assert differs.all(axis=1).sum() <= 3 * min(40, int(0.1 * frames))


def test_a_warp_moves_energy_to_another_bin():
    features = np.random.default_rng(0).normal(size=(5, 80)).astype(np.float32)
    np.testing.assert_array_equal(warp_frequencies(features, 1.0), features)
    tone = np.zeros((3, 80), np.float32)
    tone[:, 40] = 1.0
    assert warp_frequencies(tone, 0.8).argmax(axis=1).tolist() == [50] * 3
    halves = warp_frequencies(np.arange(80, dtype=np.float32)[None], 1.25)[0]
    np.testing.assert_allclose(halves, np.minimum(1.25 * np.arange(80), 79), rtol=1e-6)
    assert halves.dtype == np.float32
