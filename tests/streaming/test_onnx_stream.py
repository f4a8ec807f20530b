"""Tests of packed runs on streams: without Keras they compute what Keras computes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bundle.pack import pack
from model_speech.acoustic_logits import load_acoustic_logits
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.layers.running_mean import MEMORY_FRAMES, PRIOR_FRAMES, RunningMean
from model_speech.models.compact import CompactConfig, build_compact
from model_speech.models.compact_streaming import CompactStreamingConfig, build_compact_streaming
from model_speech.onnx_streaming import OnnxStreaming
from model_speech.packed_weights import weight_variables
from recognition.live.loading import load_logit_stream
from streaming.speech.keras_stream import keras_stream
from streaming.speech.stream import LogitStream
from tests.streaming.test_speech import DEEP_FRONT, GATED, SMALL, causal, in_chunks, sound, tiny_acoustic
from tests.support.tiny_runs import save_speech_run
from training.initialise import take_weights
from utils.features.speech import extract_features


@pytest.fixture(scope="module")
def acoustic():
    return tiny_acoustic()


def packed(folder: Path, acoustic: AcousticModel, config: CompactStreamingConfig) -> Path:
    pack(save_speech_run(folder / "trained", acoustic, config), folder / "packed")
    return folder / "packed"


@pytest.fixture(scope="module")
def run(tmp_path_factory, acoustic):
    return packed(tmp_path_factory.mktemp("packed"), acoustic, SMALL)


@pytest.mark.parametrize(
    "config", [SMALL, replace(DEEP_FRONT, frame_stack=1), replace(GATED, frame_stack=3, look_ahead=48)]
)
def test_utterances_and_streams_are_those_of_keras(config, tmp_path):
    model = load_acoustic_logits(packed(tmp_path, tiny_acoustic(config), config))
    acoustic = load_acoustic_model(tmp_path / "packed")  # with the rounded weights
    keras, chunk = causal(acoustic, config), 2 * config.time_stride
    assert isinstance(model, OnnxStreaming)
    assert (model.delay, model.time_stride, model.look_ahead_seconds) == (
        keras.delay,
        keras.time_stride,
        keras.look_ahead_seconds,
    )
    for length in (500, 30_001):
        features = extract_features(sound(length), acoustic.features)
        (expected,), (rows,) = acoustic.logits([features])
        (found,), lengths = model.logits([features])
        assert lengths.tolist() == [rows]
        np.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-4)
    streams = LogitStream(model, model.stream(), chunk), LogitStream(keras, keras_stream(keras, chunk), chunk)
    for longest in (3_000, 30_000):  # the second time after a flush, with many chunks at once
        rows = [
            np.concatenate(
                [*(stream.feed(part) for part in in_chunks(sound(40_000), longest)), stream.flush()]
            )
            for stream in streams
        ]
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-5, atol=1e-4)


def test_any_time_between_frames_may_be_streamed(acoustic, tmp_path):
    features = replace(acoustic.features, hop_ms=9)  # 80 ms are no whole number of output frames
    trained = save_speech_run(tmp_path / "trained", replace(acoustic, features=features), SMALL)
    pack(trained, tmp_path / "packed")
    for run in (trained, tmp_path / "packed"):
        stream = load_logit_stream(run, load_acoustic_logits(run))
        assert len(np.concatenate([stream.feed(sound(20_000)), stream.flush()])) == -(-20_000 // (8 * 144))


def test_the_layer_of_running_means_computes_them_from_any_chunk():
    layer, frames = RunningMean(), np.random.default_rng(0).normal(size=(1, 700, 3)).astype(np.float32)
    layer.build(frames.shape)
    layer.prior.assign(prior := np.array([0.5, -1.0, 2.0], np.float32))
    expected, mean = [], prior
    for number, frame in enumerate(frames[0], start=1):
        mean = mean + (frame - mean) / min(number + PRIOR_FRAMES, MEMORY_FRAMES)
        expected.append(mean)
    np.testing.assert_allclose(layer(frames)[0].numpy(), expected, atol=1e-5)
    found, states = [], [np.zeros((1, 3), np.float32), np.zeros((1, 1), np.float32)]
    for chunk in np.split(frames, [1, 300, 500], axis=1):
        means, states = layer.streaming_chunk(chunk, states)
        found.append(means.numpy()[0])
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-5)


def test_the_streaming_recipe_begins_with_the_weights_of_the_whole_model():
    whole = build_compact(CompactConfig(front_filters=(4, 4), width=16, blocks=2, kernel=5, gate=3), 16, 6)
    model = build_compact_streaming(SMALL, 16, 6)
    take_weights(model, whole, "whole", {}, ["input_norm"])
    ours, theirs = (
        {path: variable.numpy() for path, variable in weight_variables(each).items()}
        for each in (model, whole)
    )
    assert {name for name in ours if name not in theirs} == {name for name in ours if "input_norm" in name}
    for name in ours.keys() & theirs.keys() - {"block_1_time/kernel"}:
        np.testing.assert_array_equal(ours[name].ravel(), theirs[name].ravel())
    # A window of two frames on each side becomes one of four earlier frames and a later one.
    around, seen = theirs["block_1_time/kernel"], ours["block_1_time/kernel"]
    assert not seen[:2].any()
    np.testing.assert_array_equal(seen[2:], around[:4])
