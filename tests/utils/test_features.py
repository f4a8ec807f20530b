"""Tests of features against python_speech_features and the original's loop; normalisation; settings."""

import warnings

import numpy as np
import pytest
import python_speech_features as reference
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.config import build_config
from utils.errors import ConfigError
from utils.features.settings import FeatureConfig, feature_bins, frame_count
from utils.features.speech import extract_features

KINDS = ("spectrogram", "filter_bank", "mfcc")


def noise(samples: int = 16_000, seed: int = 0, level: float = 0.1) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=samples) * level
    return np.clip(values, -1, 1).astype(np.float32)


def speechlike(seed: int = 0) -> np.ndarray:
    """One second: 0.3 s faint noise, 0.4 s of a changing tone, 0.3 s faint noise."""
    time = np.arange(6400) / 16_000
    tone = 0.3 * np.sin(2 * np.pi * (200 + 2000 * time) * time) * np.hanning(6400)
    return noise(16_000, seed, 1e-4) + np.pad(tone, 4800).astype(np.float32)


def reference_features(samples: np.ndarray, kind: str) -> np.ndarray:
    """The features of the reference systems, from samples at 16-bit scale."""
    signal = samples.astype(np.float64) * 32768
    if kind == "spectrogram":
        frames = [signal[start : start + 400] for start in range(0, len(signal) - 399, 160)]
        return np.array([np.log(np.abs(scipy.fft.fft(f * np.hamming(400)))[:200] + 1) for f in frames])
    if kind == "filter_bank":
        return reference.logfbank(signal, nfilt=80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cepstra = reference.mfcc(signal)
    deltas = reference.delta(cepstra, 2)
    return np.hstack([cepstra, deltas, reference.delta(deltas, 2)])


def check_against_reference(samples: np.ndarray, kind: str) -> None:
    features = extract_features(samples, FeatureConfig(kind, normalise="none"))
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, reference_features(samples, kind), rtol=0, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("samples", [400, 401, 559, 560, 561, 8000, 50_123])
def test_equals_the_reference_on_random_audio(kind, samples):
    check_against_reference(noise(samples, seed=samples), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(4000, np.float32),
        np.ones(4000, np.float32),
        noise(level=1e-5),
        noise(level=10.0),
        speechlike(),
    ],
    ids=["silence", "constant", "faint", "clipped", "speechlike"],
)
def test_equals_the_reference_on_extremes(kind, samples):
    check_against_reference(samples, kind)


@pytest.mark.parametrize("kind", ["filter_bank", "mfcc"])
@pytest.mark.parametrize(
    ("rate", "frame_ms", "hop_ms"), [(8000, 25.0, 10.0), (16_000, 32.0, 16.0), (22_050, 25.0, 10.0)]
)
def test_other_rates_and_frames_equal_the_reference(kind, rate, frame_ms, hop_ms):
    config = FeatureConfig(kind, rate, frame_ms, hop_ms, bins=12, normalise="none")
    arguments = {
        "samplerate": rate,
        "winlen": config.frame_samples / rate,
        "winstep": config.hop_samples / rate,
    }
    arguments |= {"nfft": config.fft_size}
    signal = noise(rate) * 32768.0
    if kind == "mfcc":
        expected = reference.mfcc(signal, numcep=12, **arguments)
    else:
        expected = reference.logfbank(signal, nfilt=12, **arguments)
    np.testing.assert_allclose(extract_features(noise(rate), config)[:, :12], expected, rtol=0, atol=1e-4)


def test_a_window_equals_the_reference():
    config = FeatureConfig("filter_bank", frame_ms=50.0, window="hamming", normalise="none")
    signal = noise() * 32768.0
    energies, _ = reference.fbank(signal, winlen=0.05, nfilt=80, nfft=1024, winfunc=np.hamming)
    expected = np.log(energies)
    np.testing.assert_allclose(extract_features(noise(), config), expected, rtol=0, atol=1e-4)


@settings(max_examples=60)
@given(st.integers(1, 3000), st.sampled_from(KINDS), st.sampled_from(["none", "utterance"]), st.floats(0, 1))
def test_any_length_and_level_gives_finite_features(samples, kind, normalise, level):
    config = FeatureConfig(kind, normalise=normalise)
    features = extract_features(noise(samples, samples, level), config)
    assert features.shape == (frame_count(samples, config), feature_bins(config))
    assert np.isfinite(features).all()


def test_long_audio_is_computed_in_blocks_without_a_seam():
    samples = noise(160 * 2500)
    for kind in KINDS:
        config = FeatureConfig(kind, normalise="none")
        whole = extract_features(samples, config)
        piece = extract_features(samples[160 * 1000 :], config)
        inner = slice(10, 100)  # away from the start, which pre-emphasis and deltas change
        np.testing.assert_allclose(whole[1000:][inner], piece[inner], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_normalised_active_frames_have_mean_0_and_deviation_1(kind):
    config = FeatureConfig(kind)
    features = extract_features(noise(32_000), config)  # equally loud everywhere: all frames count
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-4)
    for part in np.split(features, 3 if kind == "mfcc" else 1, axis=1):
        assert np.sqrt(part.var(axis=0).mean()) == pytest.approx(1, abs=1e-4)


def test_wrong_samples_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 100\)"):
        extract_features(np.zeros((2, 100), np.float32), FeatureConfig())
    with pytest.raises(ValueError, match=r"shape \(0,\)"):
        extract_features(np.zeros(0, np.float32), FeatureConfig())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "fbank"}, "unknown features.kind 'fbank', config, did you mean 'filter_bank'"),
        ({"normalise": "global"}, "unknown features.normalise 'global'"),
        ({"kind": "spectrogram", "bins": 201}, "features.bins is 201, config, spectrogram has 1 to 200"),
        ({"kind": "mfcc", "bins": 27}, "mfcc has 1 to 26"),
        ({"bins": 0}, "features.bins is 0"),
        ({"hop_ms": 0.0}, "must be above 0"),
        ({"sample_rate": -1}, "must be above 0"),
    ],
)
def test_wrong_settings_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        build_config(FeatureConfig, values)
