"""Tests of the front end inside a model: equal to the features outside, converted, streamed, on JAX."""

import dataclasses
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy.lib.stride_tricks import sliding_window_view

from model_keyword.layers.front_end import MelCepstrum, front_end, settings_inside
from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.speech.keras_stream import KerasStream
from tests.utils.test_keyword_features import RATE, SIGNALS
from utils.backend.frame_spectra import Frames
from utils.errors import ConfigError
from utils.features.keyword import KeywordFeatureConfig, feature_frames, keyword_features, mel_filters

ROOT = Path(__file__).parents[2]
CONFIGS = {
    "usual": KeywordFeatureConfig("raw"),
    "log_mel": KeywordFeatureConfig("raw", window_ms=25, stride_ms=10, coefficients=0),
    "window_no_multiple": KeywordFeatureConfig("raw", window_ms=30, stride_ms=20),
    "odd": KeywordFeatureConfig("raw", 11_025, window_ms=31, stride_ms=17, mel_bins=23, coefficients=9),
    "window_of_a_power_of_two": KeywordFeatureConfig("raw", window_ms=32, stride_ms=32, highest_hz=8000),
}
NATURAL = np.stack([SIGNALS[name] for name in ("voice", "noise", "clipped", "faint", "silence")])
# Far from a pure tone's frequency only rounding is left, which is larger in single precision.
PURE = np.stack([SIGNALS[name] for name in ("tone", "loudest_tone", "chirp")])


def model_of(config: KeywordFeatureConfig, samples: int = RATE, batch: int | None = None) -> keras.Model:
    inputs = keras.Input((samples,), batch_size=batch, name="samples")
    return keras.Model(inputs, front_end(inputs, config), name="front_end")


def run(model: keras.Model, samples: np.ndarray) -> np.ndarray:
    return keras.ops.convert_to_numpy(model(samples))


def outside(samples: np.ndarray, config: KeywordFeatureConfig) -> np.ndarray:
    return keyword_features(samples, dataclasses.replace(config, kind="mfcc"))


def assert_agree(inside: np.ndarray, samples: np.ndarray, config: KeywordFeatureConfig, within: float = 1e-4):
    """Equal within a share of each value's deviation over noise and voice."""
    deviation = outside(NATURAL, config).std(axis=(0, 1))
    expected = outside(samples, config)
    assert inside.shape == expected.shape
    assert np.max(np.abs(inside - expected) / deviation) <= within


@pytest.fixture(scope="module")
def usual() -> keras.Model:
    """One clip of a second, the usual settings."""
    return model_of(CONFIGS["usual"], batch=1)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_features_inside_and_outside_agree(config: KeywordFeatureConfig):
    model = model_of(config)
    assert_agree(run(model, NATURAL), NATURAL, config)
    assert_agree(run(model, PURE), PURE, config, within=5e-3)
    assert model.count_params() == 0 and not model.weights


def test_mel_filters_are_those_of_tensorflow():
    config = KeywordFeatureConfig()
    expected = tf.signal.linear_to_mel_weight_matrix(40, 513, 16_000, 20.0, 7600.0, tf.float64)
    np.testing.assert_allclose(mel_filters(config), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("samples", "window", "hop"),
    [(10, 4, 2), (11, 4, 2), (4, 4, 3), (23, 7, 3), (9, 1, 1), (20, 5, 5), (25, 9, 8)],
)
def test_frames_are_whole_windows(samples: int, window: int, hop: int):
    signal = np.random.default_rng(0).normal(size=(2, samples)).astype(np.float32)
    layer = Frames(window, hop)
    frames = keras.ops.convert_to_numpy(layer(signal))
    np.testing.assert_array_equal(frames, sliding_window_view(signal, window, axis=1)[:, ::hop])
    assert layer.compute_output_shape((2, samples)) == frames.shape
    assert (layer.window, layer.hop, layer.streaming_window) == (window, hop, (window, hop))


def test_frames_of_invalid_sizes_are_refused():
    with pytest.raises(ValueError, match="needs 640 samples, and the input has 639"):
        front_end(keras.Input((639,)), CONFIGS["usual"])
    with pytest.raises(ValueError, match="needs 640 samples, and the input has None"):
        front_end(keras.Input((None,)), CONFIGS["usual"])
    with pytest.raises(ValueError, match="a hop of 5 samples isn't between 1 and the window's 4"):
        Frames(4, 5)
    with pytest.raises(ValueError, match="is for frames of 640 samples, not 480"):
        MelCepstrum(CONFIGS["usual"])(np.zeros((1, 2, 480), np.float32))


def test_micro_is_no_part_of_a_model():
    with pytest.raises(ConfigError, match="micro works in integers"):
        settings_inside(KeywordFeatureConfig("micro"))


def test_half_precision_leaves_the_features_alone():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        features = run(model_of(CONFIGS["usual"]), NATURAL)
    finally:
        keras.config.set_dtype_policy(policy)
    assert_agree(features, NATURAL, CONFIGS["usual"])


@pytest.mark.parametrize("mode", [Mode.STREAM_INTERNAL_STATE_INFERENCE, Mode.STREAM_EXTERNAL_STATE_INFERENCE])
@pytest.mark.parametrize(("name", "frames"), [("usual", 1), ("window_no_multiple", 3)])
def test_samples_streamed_in_give_the_same_features(name: str, frames: int, mode: Mode):
    config, samples = CONFIGS[name], SIGNALS["voice"][4000:9760]  # 18 hops
    stream = KerasStream(to_mode(model_of(config, len(samples)), mode, frames))
    assert stream.chunk_shape == (1, frames * config.stride_samples)
    rows = np.concatenate([stream(chunk[None])[0] for chunk in np.split(samples, 18 // frames)])
    whole = feature_frames(len(samples), config)
    assert len(rows) == 18 == whole + 1  # the first hop holds no whole window yet
    np.testing.assert_allclose(rows[1:], outside(samples, config), atol=1e-3)


SCRIPT = """
import sys
import keras, numpy as np
from model_keyword.layers.front_end import front_end
from utils.features.keyword import KeywordFeatureConfig
clips = np.load(sys.argv[1])
inputs = keras.Input(clips.shape[1:])
model = keras.Model(inputs, front_end(inputs, KeywordFeatureConfig("raw")))
np.save(sys.argv[2], keras.ops.convert_to_numpy(model(clips)))
assert "tensorflow" not in sys.modules
"""


@pytest.mark.nightly
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="pip install -r requirements/backends.txt"
)
def test_jax_gives_the_same(tmp_path: Path):
    np.save(tmp_path / "clips.npy", NATURAL)
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "clips.npy"), str(tmp_path / "features.npy")],
        check=True,
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "OMP_NUM_THREADS": "1"},
    )
    assert_agree(np.load(tmp_path / "features.npy"), NATURAL, CONFIGS["usual"])
