"""Tests of the front end inside an acoustic model: whole and streamed, equal to the features outside."""

import keras
import numpy as np
import pytest

from model_speech.layers.front_end import front_end
from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.conversion.plan import stream_geometry
from streaming.speech.keras_stream import KerasStream
from tests.support.recordings import RECORDING
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.errors import ConfigError
from utils.features.settings import FeatureConfig
from utils.features.stream import FeatureStream

CONFIGS = {
    "shipped": FeatureConfig(frame_ms=64, hop_ms=8.5, normalise="running_ltass", window="hamming"),
    "usual": FeatureConfig(bins=20, normalise="running_ltass"),
    "none": FeatureConfig(bins=20, frame_ms=50, normalise="none", window="hamming"),
    "telephone": FeatureConfig(sample_rate=8000, frame_ms=32, hop_ms=16, normalise="running_ltass"),
}
SAMPLES = 40_000


def sound() -> np.ndarray:
    """Speech, a pause without any sound, and fainter speech, which does not count as active at first."""
    speech = read_audio(RECORDING, SAMPLE_RATE)[: SAMPLES // 2]
    faint = np.where(np.arange(len(speech)) < 6000, 0.0, 0.01 * speech)
    return np.concatenate([speech, faint]).astype(np.float32)


def model_of(config: FeatureConfig) -> keras.Model:
    samples = keras.Input((SAMPLES,), name="samples")
    return keras.Model(samples, front_end(samples, config), name="front_end")


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_features_inside_and_outside_agree(config: FeatureConfig):
    model, samples = model_of(config), sound()
    expected = FeatureStream(config).feed(samples)
    found = np.asarray(model(samples[None]))[0]
    assert found.shape == expected.shape and not model.weights
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("mode", [Mode.STREAM_INTERNAL_STATE_INFERENCE, Mode.STREAM_EXTERNAL_STATE_INFERENCE])
@pytest.mark.parametrize(("name", "frames"), [("shipped", 8), ("usual", 1), ("telephone", 3)])
def test_samples_streamed_in_give_the_same_features(name: str, frames: int, mode: Mode):
    config, samples = CONFIGS[name], sound()
    expected, model = FeatureStream(config).feed(samples), model_of(config)
    stream = KerasStream(to_mode(model, mode, frames))
    chunk, delay = frames * config.hop_samples, stream_geometry(model).delay
    assert stream.chunk_shape == (1, chunk) and delay
    for _ in range(2):  # a reset forgets everything
        ends = range(chunk, len(samples) + 1, chunk)
        rows = np.concatenate([stream.step(samples[None, end - chunk : end])[0] for end in ends])[delay:]
        np.testing.assert_allclose(rows, expected[: len(rows)], atol=1e-4)
        assert len(rows) > len(expected) - delay - frames
        stream.reset()


@pytest.mark.parametrize(
    "config", [FeatureConfig("spectrogram", normalise="none"), FeatureConfig(normalise="utterance")]
)
def test_other_features_are_no_part_of_a_model(config: FeatureConfig):
    with pytest.raises(ConfigError, match="can't be part of a model"):
        model_of(config)
