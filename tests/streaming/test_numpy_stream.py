"""Tests of model_speech/compact_streaming_numpy.py: a packed run streams without a framework, as in Keras."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from model_speech.acoustic_model import AcousticModel
from model_speech.compact_streaming_numpy import NumpyCompactStreaming, load_numpy_compact_streaming
from model_speech.int8_weights import weights_by_name
from model_speech.models.compact import CompactConfig, build_compact
from model_speech.models.compact_streaming import CompactStreamingConfig, build_compact_streaming
from model_speech.pack import pack
from recognition.drafts import DraftReader
from recognition.loading import load_acoustic_logits, load_live_stream
from recognition.recognizer import Recognizer
from streaming.speech.keras_stream import keras_stream
from streaming.speech.stream import LogitStream, SpeechStream
from tests.streaming.test_speech import DEEP_FRONT, SMALL, causal, in_chunks, sound, tiny_acoustic
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
        weights, acoustic.features, acoustic.vocabulary, config.look_ahead, config.kernel
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
@pytest.mark.parametrize("config", [SMALL, DEEP_FRONT])
def test_the_front_joins_frames(frame_stack, config):
    config = dataclasses.replace(config, frame_stack=frame_stack, look_ahead=12)
    acoustic = tiny_acoustic(config)
    model = in_numpy(acoustic, config)
    assert model.time_stride == config.time_stride == 4 * frame_stack
    features = extract_features(sound(5_000), acoustic.features)
    (expected,), (rows,) = acoustic.logits([features])
    np.testing.assert_allclose(model.logits([features])[0][0], expected[:rows], atol=1e-4)


@pytest.mark.parametrize(("config", "chunk"), [(SMALL, 8), (SMALL, 24), (DEEP_FRONT, 8), (DEEP_FRONT, 24)])
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
        np.testing.assert_allclose(rows[0], rows[1], atol=1e-4)


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
    other = SpeechStream(keras, keras_stream(keras, 8), 8, DraftReader(Recognizer(acoustic)))
    found, expected = (speech.feed(sound(60_000)) + speech.flush() for speech in (stream, other))
    pinyin = [
        [event.best.pinyin for event in events if isinstance(event, Segment)] for events in (found, expected)
    ]
    assert pinyin[0] == pinyin[1] and pinyin[0]


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


def test_the_streaming_recipe_begins_with_the_weights_of_its_twin():
    twin = build_compact(CompactConfig(front_filters=(4, 4), width=16, blocks=2, kernel=5, gate=3), 16, 6)
    model = build_compact_streaming(SMALL, 16, 6)
    take_weights(model, twin, "twin", {}, ["input_norm"])
    ours, theirs = weights_by_name(model), weights_by_name(twin)
    assert {name for name in ours if name not in theirs} == {name for name in ours if "input_norm" in name}
    for name in ours.keys() & theirs.keys():
        size = theirs[name].size
        np.testing.assert_array_equal(ours[name].ravel()[:size], theirs[name].ravel())
        more = ours[name].ravel()[size:]  # the new tap of the block that looks ahead begins at zero
        assert not len(more) or (name == "block_1_time/kernel" and not more.any())
