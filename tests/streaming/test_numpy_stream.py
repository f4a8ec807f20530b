"""Tests of model_speech/compact_streaming_numpy.py: a packed run streams without a framework, as in Keras."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from model_speech.acoustic_model import AcousticModel
from model_speech.compact_streaming_numpy import NumpyCompactStreaming, load_numpy_compact_streaming
from model_speech.int8_weights import weights_by_name
from model_speech.layers.running_mean import RunningMean
from model_speech.models.compact import CompactConfig, build_compact
from model_speech.models.compact_streaming import CompactStreamingConfig, build_compact_streaming
from model_speech.pack import pack
from model_speech.running_mean_numpy import MEMORY_FRAMES, PRIOR_FRAMES, frame_shares, running_means
from recognition.loading import load_acoustic_logits, load_live_stream, load_logit_stream
from recognition.partial_results import PartialResultDecoder
from recognition.recognizer import Recognizer
from streaming.speech.keras_stream import keras_stream
from streaming.speech.stream import LogitStream, SpeechStream
from tests.streaming.test_speech import DEEP_FRONT, GATED, SMALL, causal, in_chunks, sound, tiny_acoustic
from tests.support.tiny_runs import save_speech_run
from training.initialise import take_weights
from utils.audio.reading import write_wav
from utils.errors import RunError
from utils.features.speech import extract_features
from utils.hypotheses.recognition import Segment


@pytest.fixture(scope="module")
def acoustic():
    return tiny_acoustic()


def in_numpy(acoustic: AcousticModel, config: CompactStreamingConfig = SMALL) -> NumpyCompactStreaming:
    weights = weights_by_name(acoustic.model)
    return NumpyCompactStreaming.of_weights(
        weights, acoustic.features, acoustic.vocabulary, config.look_ahead, config.kernel, config.front_ahead
    )


@pytest.fixture(scope="module")
def model(acoustic) -> NumpyCompactStreaming:
    return in_numpy(acoustic)


@pytest.fixture(scope="module")
def run(tmp_path_factory, acoustic):
    folder = tmp_path_factory.mktemp("packed")
    pack(save_speech_run(folder / "trained", acoustic, SMALL), folder / "packed")
    return folder / "packed"


def test_whole_utterances_are_those_of_keras(acoustic, model):
    features = [extract_features(sound(length), acoustic.features) for length in (500, 5_000, 30_001)]
    for feature in features:
        (expected,), (rows,) = acoustic.logits([feature])
        (found,), lengths = model.logits([feature])
        assert lengths.tolist() == [rows]
        np.testing.assert_allclose(found, expected[:rows], atol=1e-4)


@pytest.mark.parametrize("frame_stack", [1, 3])
@pytest.mark.parametrize("config", [SMALL, DEEP_FRONT, GATED])
def test_the_front_joins_frames(frame_stack, config):
    config = dataclasses.replace(config, frame_stack=frame_stack, look_ahead=48 if config is GATED else 12)
    acoustic = tiny_acoustic(config)
    model = in_numpy(acoustic, config)
    assert model.time_stride == config.time_stride == 4 * frame_stack
    features = extract_features(sound(5_000), acoustic.features)
    (expected,), (rows,) = acoustic.logits([features])
    np.testing.assert_allclose(model.logits([features])[0][0], expected[:rows], atol=1e-4)


@pytest.mark.parametrize("config", [SMALL, DEEP_FRONT, GATED])
@pytest.mark.parametrize("chunk", [8, 24])
def test_the_stream_is_that_of_keras(config, chunk):
    acoustic, whole = tiny_acoustic(config), sound(40_000)
    keras, model = causal(acoustic, config), in_numpy(acoustic, config)
    assert (model.delay, model.time_stride, model.look_ahead_seconds) == (
        keras.delay,
        keras.time_stride,
        keras.look_ahead_seconds,
    )
    streams = LogitStream(model, model.stream(), chunk), LogitStream(keras, keras_stream(keras, chunk), chunk)
    for seed in (0, 1):  # the second time after a flush
        rows = [
            np.concatenate([*(stream.feed(part) for part in in_chunks(whole, 3000, seed)), stream.flush()])
            for stream in streams
        ]
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-5, atol=1e-4)


def test_two_streams_do_not_disturb_each_other(model):
    chunks = np.random.default_rng(0).normal(size=(4, 1, 16, 16)).astype(np.float32)
    alone = model.stream()
    expected = [alone.step(chunk) for chunk in chunks]
    first, second = model.stream(), model.stream()
    for chunk, rows in zip(chunks, expected, strict=True):
        second.step(-chunk)
        np.testing.assert_array_equal(first.step(chunk), rows)


def test_a_packed_run_is_a_live_stream(run, acoustic):
    recognizer = Recognizer(load_acoustic_logits(run))
    assert isinstance(recognizer.acoustic, NumpyCompactStreaming)
    stream = load_live_stream(run, recognizer)
    assert isinstance(stream, SpeechStream)
    keras = causal(acoustic)
    other = SpeechStream(keras, keras_stream(keras, 8), 8, PartialResultDecoder(Recognizer(acoustic)))
    found, expected = (speech.feed(sound(60_000)) + speech.flush() for speech in (stream, other))
    pinyin = [
        [event.best.pinyin for event in events if isinstance(event, Segment)] for events in (found, expected)
    ]
    assert pinyin[0] == pinyin[1] and pinyin[0]


def test_any_time_between_frames_may_be_streamed(acoustic, tmp_path):
    features = dataclasses.replace(acoustic.features, hop_ms=9)  # 80 ms are no whole number of output frames
    trained = save_speech_run(tmp_path / "trained", dataclasses.replace(acoustic, features=features), SMALL)
    pack(trained, tmp_path / "packed")
    for run in (trained, tmp_path / "packed"):
        stream = load_logit_stream(run, load_acoustic_logits(run))
        assert len(np.concatenate([stream.feed(sound(20_000)), stream.flush()])) == -(-20_000 // (8 * 144))


def test_streaming_needs_no_framework(run, tmp_path):
    write_wav(tmp_path / "a.wav", sound(40_000))
    code = (
        "import sys; from tests.support.scripts import load_script; "
        "load_script('transcribe.py').main(sys.argv[1:]); "
        "assert not {'keras', 'tensorflow'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.wav"), "--speech", str(run), "--stream"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "looking ahead 175 ms" in done.stderr


def test_a_damaged_run_is_named(run, tmp_path):
    (run / "vocabulary" / "acoustic.txt").rename(tmp_path / "acoustic.txt")
    try:
        with pytest.raises(RunError):
            load_numpy_compact_streaming(run)
    finally:
        (tmp_path / "acoustic.txt").rename(run / "vocabulary" / "acoustic.txt")


def test_blocks_on_joined_frames_change_nothing_in_a_trained_stream():
    trained, deeper = tiny_acoustic(SMALL).model, build_compact_streaming(DEEP_FRONT, 16, 6)
    take_weights(deeper, trained, "trained", {}, ["front_*_block_*"])
    features = np.random.default_rng(0).normal(size=(1, 45, 16)).astype(np.float32)
    batch = {"features": features, "lengths": np.array([45], np.int32)}
    np.testing.assert_allclose(deeper(batch), trained(batch), atol=1e-5)


def test_a_stream_that_sees_as_far_as_a_model_of_whole_utterances_computes_the_same():
    front = {"front_filters": (4, 4), "front_blocks": (1, 2), "stacked_blocks": 2}
    whole = build_compact(CompactConfig(**front, width=16, blocks=2, kernel=3, gate=0), 16, 6)
    for weight in whole.weights:
        if "norm" in weight.path:
            weight.assign(np.random.default_rng(0).uniform(0.5, 1.5, weight.shape))
    # In front the blocks see 2 + 2 * 4 + 2 * 8 frames ahead, the others 2 * 8.
    config = CompactStreamingConfig(
        **front, width=16, blocks=2, kernel=3, ahead_blocks=2, front_ahead=True, look_ahead=48
    )
    stream = build_compact_streaming(config, 16, 6)
    take_weights(stream, whole, "whole", {}, ["input_norm"])
    frames = np.random.default_rng(1).normal(size=(1, 240, 16)).astype(np.float32)
    # The two strided convolutions are late by 1 and 2 frames: with 42 frames of blocks, 45 of 48.
    late = np.concatenate([np.zeros((1, 3, 16), np.float32), frames[:, :-3]], axis=1)
    late *= np.sqrt(np.float32(1.001))  # the normalisation of the input divides by it
    lengths = np.array([240], np.int32)
    expected = whole({"features": frames, "lengths": lengths}).numpy()
    found = stream({"features": late, "lengths": lengths}).numpy()
    middle = slice(8, -8)  # padding differs at both ends
    np.testing.assert_allclose(found[:, middle], expected[:, middle], atol=1e-4)


@pytest.mark.parametrize("ahead", [0, 3])
def test_running_means_are_those_of_their_definition(ahead):
    rng = np.random.default_rng(0)
    frames, mean = rng.normal(size=(700, 3)), rng.normal(size=3)
    expected, before = [], mean
    for number, frame in enumerate(frames, start=ahead + 1):
        before = before + (frame - before) / min(number + PRIOR_FRAMES, MEMORY_FRAMES)
        expected.append(before)
    np.testing.assert_allclose(running_means(frames, mean, *frame_shares(ahead, 700)), expected, atol=1e-9)


def test_the_layer_of_running_means_computes_them():
    layer, frames = RunningMean(), np.random.default_rng(0).normal(size=(2, 700, 3)).astype(np.float32)
    layer.build(frames.shape)
    layer.prior.assign(prior := np.array([0.5, -1.0, 2.0], np.float32))
    for row, means in zip(frames, layer(frames).numpy(), strict=True):
        expected = prior + running_means(row - prior, np.zeros(3), *frame_shares(0, 700))
        np.testing.assert_allclose(means, expected, atol=1e-5)


def test_the_streaming_recipe_begins_with_the_weights_of_the_whole_model():
    whole = build_compact(CompactConfig(front_filters=(4, 4), width=16, blocks=2, kernel=5, gate=3), 16, 6)
    model = build_compact_streaming(SMALL, 16, 6)
    take_weights(model, whole, "whole", {}, ["input_norm"])
    ours, theirs = weights_by_name(model), weights_by_name(whole)
    assert {name for name in ours if name not in theirs} == {name for name in ours if "input_norm" in name}
    for name in ours.keys() & theirs.keys() - {"block_1_time/kernel"}:
        np.testing.assert_array_equal(ours[name].ravel(), theirs[name].ravel())
    # A window of two frames on each side becomes one of four earlier frames and a later one.
    around, seen = theirs["block_1_time/kernel"], ours["block_1_time/kernel"]
    assert not seen[:2].any()
    np.testing.assert_array_equal(seen[2:], around[:4])
