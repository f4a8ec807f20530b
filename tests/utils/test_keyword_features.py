"""Tests of keyword features: MFCC by definition, features of microcontrollers, streams."""

import math

import numpy as np
import pytest
import scipy.fft
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.errors import AudioError, ConfigError
from utils.features.keyword import (
    ENERGY_FLOOR,
    KeywordFeatureConfig,
    KeywordFeatureStream,
    feature_frames,
    feature_values,
    keyword_features,
)

RATE = 16_000
MFCC = KeywordFeatureConfig()
MICRO = KeywordFeatureConfig("micro")
CONFIGS = {
    "mfcc": MFCC,
    "log_mel": KeywordFeatureConfig(window_ms=25, stride_ms=10, coefficients=0),
    "odd": KeywordFeatureConfig(sample_rate=11_025, window_ms=31, stride_ms=17, mel_bins=23, coefficients=9),
    "micro": MICRO,
}


def signals() -> dict[str, np.ndarray]:
    """Signals of one second, rounded to 16 bits as recordings are: float32 in [-1, 1]."""
    random = np.random.default_rng(0)
    time = np.arange(RATE) / RATE
    chirp = 0.3 * np.sin(2 * np.pi * (200 + 2000 * time) * time) * np.hanning(RATE)
    # Harmonics with a gliding pitch under two resonances, with pauses: similar to speech.
    pitch = np.cumsum(120 + 40 * np.sin(2 * np.pi * 1.5 * time)) / RATE
    voice = sum(np.sin(2 * np.pi * k * pitch) / (1 + ((k * 120 - 700) / 500) ** 2) for k in range(1, 40))
    made = {
        "noise": random.normal(size=RATE) * 0.1,
        "clipped": random.normal(size=RATE) * 2,
        "faint": random.normal(size=RATE) * 1e-4,
        "tone": 0.5 * np.sin(2 * np.pi * 440 * time),
        "loudest_tone": np.sin(2 * np.pi * 1000 * time),
        "square": np.where(np.sin(2 * np.pi * 300 * time) >= 0, 1.0, -1.0),
        "click": np.where(np.arange(RATE) == 7000, -1.0, 0.0),
        "silence": np.zeros(RATE),
        "chirp": chirp + random.normal(size=RATE) * 1e-3,
        "voice": 0.2 * voice * (np.sin(2 * np.pi * 2 * time) > -0.3) + random.normal(size=RATE) * 3e-4,
    }
    rounded = {name: np.clip(np.round(x * 32768), -32768, 32767) / 32768 for name, x in made.items()}
    return {name: x.astype(np.float32) for name, x in rounded.items()}


SIGNALS = signals()


def mel(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)


def written_out(samples: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    """MFCC by definition, a frame and a filter at a time."""
    window, stride = config.window_samples, config.stride_samples
    size = 2 ** math.ceil(math.log2(window))
    low, high = mel(config.lowest_hz), mel(config.highest_hz)
    corners = [low + (high - low) * i / (config.mel_bins + 1) for i in range(config.mel_bins + 2)]
    hann = scipy.signal.get_window("hann", window)
    frames = []
    for start in range(0, len(samples) - window + 1, stride):
        spectrum = np.fft.fft(samples[start : start + window].astype(float) * hann, size)
        logs = []
        for left, centre, right in zip(corners[:-2], corners[1:-1], corners[2:], strict=True):
            energy = 0.0
            for k in range(size // 2 + 1):
                mels = mel(k * config.sample_rate / size)
                if left < mels < right:
                    rising, falling = (mels - left) / (centre - left), (right - mels) / (right - centre)
                    energy += min(rising, falling) * abs(spectrum[k]) ** 2
            logs.append(math.log(energy + ENERGY_FLOOR))
        frames.append(
            scipy.fft.dct(logs, norm="ortho")[: config.coefficients] if config.coefficients else logs
        )
    return np.array(frames)


@pytest.mark.parametrize("name", ["mfcc", "log_mel", "odd"])
def test_mfcc_are_those_of_the_definition(name: str):
    config, samples = CONFIGS[name], SIGNALS["voice"][6000:8000]
    features = keyword_features(samples, config)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, written_out(samples, config), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("samples", "frames"), [(0, 0), (639, 0), (640, 1), (959, 1), (960, 2), (16_000, 49), (16_319, 49)]
)
def test_only_whole_windows_are_taken(samples: int, frames: int):
    assert feature_frames(samples, MFCC) == frames
    if frames:
        features = keyword_features(SIGNALS["noise"][:samples], MFCC)
        assert features.shape == (len(SIGNALS["noise"][:samples]) // 320 - 1, 20)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_batch_gives_the_features_of_each_clip(config: KeywordFeatureConfig):
    clips = np.stack(
        [SIGNALS[name] for name in ("noise", "voice", "silence", "tone", "chirp", "click", "faint")]
    )
    batch = keyword_features(clips, config)
    assert batch.shape == (7, feature_frames(RATE, config), feature_values(config))
    for clip, features in zip(clips, batch, strict=True):
        np.testing.assert_allclose(keyword_features(clip, config), features, rtol=0, atol=1e-5)
    assert keyword_features(clips[:0], config).shape == (0, *batch.shape[1:])


def test_micro_has_a_frame_of_30_ms_every_10_ms():
    loud, quiet = (keyword_features(SIGNALS[name], MICRO) for name in ("clipped", "silence"))
    assert loud.shape == quiet.shape == (98, 40)
    assert loud.mean() > 5 and not quiet.any()


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(CONFIGS)),
    st.lists(st.integers(0, 3000), min_size=1, max_size=12),
    st.sampled_from(["voice", "click", "noise"]),
)
def test_a_stream_gives_the_features_of_the_whole(name: str, lengths: list[int], signal: str):
    config, samples = CONFIGS[name], SIGNALS[signal]
    stream = KeywordFeatureStream(config)
    parts = np.split(samples, np.minimum(np.cumsum(lengths), len(samples)))
    for _ in range(2):
        fed = 0
        frames = []
        for part in parts:
            frames.append(stream.feed(part))
            fed += len(part)
            assert sum(map(len, frames)) == feature_frames(fed, config)  # as soon as possible
        np.testing.assert_allclose(np.concatenate(frames), keyword_features(samples, config), atol=1e-5)
        stream.reset()


def test_raw_features_are_the_samples():
    raw = KeywordFeatureConfig("raw")
    clips = np.stack([SIGNALS["noise"], SIGNALS["voice"]]).astype(np.float64)
    features = keyword_features(clips, raw)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, clips)
    np.testing.assert_array_equal(
        KeywordFeatureStream(raw).feed(SIGNALS["noise"][:123]), SIGNALS["noise"][:123]
    )
    assert (feature_frames(RATE, raw), feature_values(raw)) == (
        49,
        20,
    )  # settings of the layers inside the model


@pytest.mark.parametrize("kind", ["mfcc", "raw", "micro"])
def test_a_clip_shorter_than_a_window_is_refused_with_both_lengths(kind: str):
    config = KeywordFeatureConfig(kind, window_ms=30)
    with pytest.raises(AudioError, match=r"200 samples \(12.5 ms\) .* one window of 480 samples \(30 ms\)"):
        keyword_features(np.zeros((2, 200), np.float32), config)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "spectrogram"}, "unknown features.kind 'spectrogram', there are: raw, mfcc, micro"),
        ({"sample_rate": 0}, "features.sample_rate is 0, 1 to 1,000,000"),
        ({"stride_ms": 0}, "features.stride_ms is 0.0, above 0"),
        ({"stride_ms": 0.01}, "features.stride_ms is 0.01, at least one sample, 0.0625 ms"),
        ({"window_ms": 15}, "features.window_ms is 15, at least features.stride_ms, 20"),
        ({"mel_bins": 0}, "features.mel_bins is 0, at least 1"),
        ({"coefficients": 41}, r"features.coefficients is 41, 0 .* to features.mel_bins, 40"),
        ({"kind": "micro", "stride_ms": 20}, "features.stride_ms is 20.0, 10.0 for the kind micro"),
        ({"lowest_hz": -1}, "features.lowest_hz is -1.0, at least 0"),
        ({"highest_hz": 8001}, "features.highest_hz is 8001, .* at most half the sample rate, 8000"),
        ({"lowest_hz": 300, "highest_hz": 300}, "features.lowest_hz is 300, .* the lower one first"),
        ({"window_ms": 20, "mel_bins": 200}, r"features.mel_bins is 200: some filters.*31.25 Hz apart"),
    ],
    ids=str,
)
def test_a_setting_out_of_range_is_named_with_its_range(wrong: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        KeywordFeatureConfig(**wrong)
