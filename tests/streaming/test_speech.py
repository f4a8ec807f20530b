"""Tests of the acoustic model on a stream: features, logits and pinyin equal those of the whole recording."""

import dataclasses
import json
import re
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from bundle.export.build import export_bundle
from bundle.export.speech_source import speech_source
from bundle.folder import open_bundle
from bundle.variants import Format, Precision, Variant
from model_speech.acoustic_model import AcousticModel
from model_speech.causal import CausalModel
from model_speech.ctc.decoder import greedy_decode
from model_speech.models.compact_streaming import (
    CompactStreamingConfig,
    build_compact_streaming,
    causal_network,
)
from recognition.live.partial_results import PartialResultDecoder
from recognition.recognizer import Recognizer
from streaming.conversion.modes import Mode
from streaming.speech.keras_stream import keras_stream
from streaming.speech.recognizer import StreamRecognizer
from streaming.speech.stream import LogitStream, SpeechStream
from streaming.speech.utterances import MAX_SECONDS, UtteranceSegmenter
from tests.support.tiny_runs import save_speech_run, write_language_run
from transcribe import main
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import AudioError, ConfigError
from utils.features.running_normalisation import RunningNormalisation
from utils.features.settings import FeatureConfig, feature_bins
from utils.features.speech import extract_features
from utils.features.stream import FeatureStream
from utils.hypotheses.recognition import Ending, Recognition
from utils.vocabulary import Vocabulary

STREAMABLE = {
    "filter_bank": FeatureConfig(bins=16, normalise="running_ltass"),
    "filter_bank_none": FeatureConfig(bins=16, normalise="none", frame_ms=50, window="hamming"),
    "spectrogram": FeatureConfig("spectrogram", bins=20, normalise="none"),
}
SMALL = CompactStreamingConfig(
    front_filters=(4, 4), width=16, blocks=2, kernel=5, look_ahead=16, ahead_blocks=1
)
DEEP_FRONT = dataclasses.replace(SMALL, front_blocks=(1, 2), stacked_blocks=2)
GATED = dataclasses.replace(DEEP_FRONT, gate=6, front_ahead=True, look_ahead=40)
TOKENS = ("ma1", "ma2", "ma3", "ma4", " ", "_")


def sound(samples: int, seed: int = 0) -> np.ndarray:
    """Noise of varying loudness with silent intervals."""
    rng = np.random.default_rng(seed)
    loudness = np.maximum(np.sin(np.arange(samples) / 3000.0 + seed), 0.0)
    return np.clip(rng.normal(size=samples) * 0.2 * loudness, -1, 1).astype(np.float32)


def in_chunks(samples: np.ndarray, longest: int, seed: int = 0):
    """The same samples in chunks of up to ``longest``, some of them empty."""
    rng = np.random.default_rng(seed)
    while len(samples):
        size = int(rng.integers(0, longest + 1))
        yield samples[:size]
        samples = samples[size:]


def tiny_acoustic(config: CompactStreamingConfig = SMALL, seed: int = 0) -> AcousticModel:
    """A model with random weights and statistics, more extreme than after any training."""
    features = STREAMABLE["filter_bank"]
    keras.utils.set_random_seed(seed)
    model = build_compact_streaming(config, feature_bins(features), len(TOKENS))
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        if "norm" in weight.path or "prior" in weight.path:
            weight.assign(rng.uniform(0.5, 1.5, weight.shape))
    return AcousticModel(model, features, Vocabulary(TOKENS), config.time_stride)


def causal(acoustic: AcousticModel, config: CompactStreamingConfig = SMALL) -> CausalModel:
    network = causal_network(acoustic.model, config)
    timing = (acoustic.features, acoustic.vocabulary, acoustic.time_stride, config.look_ahead)
    return CausalModel(*timing, network=network)


@pytest.fixture(scope="module")
def acoustic():
    return tiny_acoustic()


@pytest.fixture(scope="module")
def streams(acoustic):
    """One streamed network for each chunk size, built once."""
    model = causal(acoustic)
    return model, {chunk: keras_stream(model, chunk) for chunk in (8, 24)}


# Features


@pytest.mark.parametrize("name", STREAMABLE)
@pytest.mark.parametrize("samples", [1, 200, 400, 401, 560, 561, 900, 30_000])
def test_features_of_any_chunks_are_those_of_the_whole(name, samples):
    config, whole = STREAMABLE[name], sound(samples, seed=samples)
    stream = FeatureStream(config)
    for seed in (0, 1):  # the second time after a flush, which must clear everything
        frames = [stream.feed(chunk) for chunk in in_chunks(whole, 2500 if seed else 90, seed)]
        frames.append(stream.flush())
        np.testing.assert_array_equal(np.concatenate(frames), extract_features(whole, config))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (FeatureConfig(), r"normalise is 'utterance'.*features\.normalise=running"),
        (FeatureConfig("mfcc", normalise="none"), r"kind is 'mfcc'.*features\.kind=filter_bank"),
        (FeatureConfig(normalise="none", hop_ms=30), r"hop_ms is longer than frame_ms"),
    ],
)
def test_settings_that_cannot_stream_are_refused_with_an_alternative(config, message):
    with pytest.raises(ConfigError, match=message):
        FeatureStream(config)


def test_running_mean_against_its_definition():
    rng = np.random.default_rng(0)
    frames = rng.normal(10.0, 2.0, (60, 3))
    frames[20:30] = 0.0  # a pause, 30 dB lower, is not part of the mean
    keep, expected = np.exp(-0.01 / 5.0), []
    level, level_weight = 50 * 10.0, 50.0
    shape, shape_weight = 200 * np.array([-1.0, 2.0, -1.0]), 200.0
    for i, frame in enumerate(frames):
        if not 20 <= i < 30:
            level, level_weight = keep * level + frame.mean(), keep * level_weight + 1.0
            shape, shape_weight = keep * shape + frame - frame.mean(), keep * shape_weight + 1.0
        expected.append(frame - level / level_weight - shape / shape_weight)
    normalise = RunningNormalisation(np.array([9.0, 12.0, 9.0]), 0.01)
    np.testing.assert_allclose(np.concatenate([normalise(frames[:7]), normalise(frames[7:])]), expected)


# The model


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"look_ahead": 12}, r"look_ahead is 12.*time stride 8: 8 or 16"),
        ({"look_ahead": -8}, r"look_ahead is -8, at least 0"),
        ({"look_ahead": 16, "ahead_blocks": 3}, r"ahead_blocks is 3, at most 2: .*look_ahead is 2 output"),
        (
            {"look_ahead": 32, "ahead_blocks": 3, "front_ahead": True, "stacked_blocks": 2},
            r"ahead_blocks is 3, at most 2: .* with those of model\.front_ahead",
        ),
        ({"kernel": 0}, r"kernel is 0, at least 1"),
        ({"dropout": 1.0}, r"dropout is 1"),
    ],
)
def test_an_impossible_setting_is_named(values, message):
    with pytest.raises(ConfigError, match=message):
        CompactStreamingConfig(**values)


def test_an_output_depends_on_its_look_ahead_and_nothing_beyond(acoustic):
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(1, 120, 16)).astype(np.float32)
    batch = {"features": frames, "lengths": np.array([120], np.int32)}
    before = acoustic.model(batch).numpy()
    for changed in (39, 40):  # output 2 depends on the frames 16 to 23 and on 16 future frames: up to 39
        other = frames.copy()
        other[:, changed:] += 1.0
        after = acoustic.model({**batch, "features": other}).numpy()
        assert (np.abs(after - before)[0, 2].max() > 1e-6) == (changed == 39)
        np.testing.assert_array_equal(after[0, :2], before[0, :2])


@pytest.mark.parametrize("config", [SMALL, DEEP_FRONT, GATED])
@pytest.mark.parametrize("frames", [1, 8, 45])
def test_the_causal_network_is_the_trained_model(config, frames):
    acoustic = tiny_acoustic(config)
    model = causal(acoustic, config)
    features = np.random.default_rng(frames).normal(size=(1, frames, 16)).astype(np.float32)
    expected = acoustic.model({"features": features, "lengths": np.array([frames], np.int32)})
    end = -frames % 8 + model.look_ahead
    late = model.network(np.pad(features, ((0, 0), (0, end), (0, 0)))).numpy()
    np.testing.assert_allclose(late[:, model.delay :], expected, atol=1e-5)


# Streams of logits and syllables


@pytest.mark.parametrize("chunk", [8, 24])
@pytest.mark.parametrize("samples", [300, 5_000, 40_321])
def test_logits_of_any_chunks_are_those_of_the_whole(acoustic, streams, chunk, samples):
    model, networks = streams
    whole = sound(samples, seed=samples)
    (expected,), (rows,) = acoustic.logits([extract_features(whole, acoustic.features)])
    stream = LogitStream(model, networks[chunk], chunk)
    for seed in (0, 1):
        got = [stream.feed(chunk) for chunk in in_chunks(whole, 6000 if seed else 700, seed)]
        got = np.concatenate([*got, stream.flush()])
        assert got.shape == (rows, len(TOKENS))
        np.testing.assert_allclose(got, expected[:rows], atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_pinyin_and_times_are_those_of_the_whole(acoustic, streams, beam):
    model, networks = streams
    stream = SpeechStream(model, networks[24], 24, PartialResultDecoder(Recognizer(acoustic, beam=beam)))
    for seed in range(3):
        whole = sound(60_000 + 777 * seed, seed)
        logits, lengths = acoustic.logits([extract_features(whole, acoustic.features)])
        (expected,) = greedy_decode(logits, lengths, len(TOKENS) - 1)
        events = [event for chunk in in_chunks(whole, 9000, seed) for event in stream.feed(chunk)]
        events += stream.flush()
        spoken = [(t, f) for t, f in zip(expected.tokens, expected.frames, strict=True) if TOKENS[t] != " "]
        segments = [event for event in events if event.is_final]
        assert segments, "the test needs recognised syllables"
        assert all(0 <= segment.start < segment.end for segment in segments)
        if beam == 1:
            pinyin = [syllable for segment in segments for syllable in segment.best.pinyin]
            middles = [middle for segment in segments for middle in segment.times]
            assert pinyin == [TOKENS[token] for token, _ in spoken]
            assert all(
                start <= (row + 0.5) * 0.08 <= end
                for (_, row), (start, end) in zip(spoken, middles, strict=True)
            )
            assert all(len(segment.confidence) == 0 for segment in segments)


def test_partial_results_grow_into_their_segment(acoustic, streams):
    model, networks = streams
    stream = SpeechStream(model, networks[8], 8, PartialResultDecoder(Recognizer(acoustic)))
    events = [
        event for chunk in in_chunks(sound(90_000), 900) for event in stream.feed(chunk)
    ] + stream.flush()
    partials: list[Recognition] = []
    for event in events:
        if not event.is_final:
            assert all(event.pinyin[: len(partial.pinyin)] == partial.pinyin for partial in partials)
            assert event.stable == len(event.pinyin) == len(event.times)
            partials.append(event)
        else:
            assert partials[-1].pinyin == event.best.pinyin
            partials = []
    assert len(events) > 5


# Tokens and utterances


def rows_of(classes: list[int], certainty: float = 5.0) -> np.ndarray:
    rows = np.zeros((len(classes), len(TOKENS)), np.float32)
    rows[np.arange(len(classes)), classes] = certainty
    return rows


def segmenter_of_rows() -> UtteranceSegmenter:
    acoustic = SimpleNamespace(
        features=FeatureConfig(), vocabulary=Vocabulary(TOKENS), frame_seconds=0.08, logits=None
    )
    return UtteranceSegmenter(
        acoustic.vocabulary, PartialResultDecoder(Recognizer(acoustic)), row_seconds=0.08
    )


def utterances(classes: list[int]) -> list[Recognition]:
    segmenter = segmenter_of_rows()
    return [event for row in rows_of(classes) for event in segmenter.feed(row[None])] + segmenter.flush()


def test_a_pause_ends_an_utterance_and_a_short_one_does_not():
    blank, short, long = 5, [5] * 9, [5] * 10
    events = utterances([blank] * 50 + [0, 0, *short, 1, 4, 2, *long, *long, 3])
    shown = [event.pinyin if not event.is_final else list(event.best.pinyin) for event in events]
    assert shown == [
        ("ma1",),
        ("ma1", "ma2"),
        ("ma1", "ma2", "ma3"),
        ["ma1", "ma2", "ma3"],
        ("ma4",),
        ["ma4"],
    ]
    first, second = (event for event in events if event.is_final)
    # Three blanks before, three after: 0.24 s.
    assert (first.start, first.end) == pytest.approx((47 * 0.08, (64 + 3) * 0.08))
    assert second.end == pytest.approx(85 * 0.08)
    middles = [sum(times) / 2 for times in first.times]
    assert middles[1] == pytest.approx(61.5 * 0.08, abs=0.15)


def test_speech_without_a_pause_is_cut_between_syllables():
    classes = [0, 5, 1, 1, 5] * 300
    longest = round(MAX_SECONDS / 0.08)
    events = utterances(classes)
    segments = [event for event in events if event.is_final]
    assert len(segments) == len(classes) // longest
    assert all(segment.end - segment.start < MAX_SECONDS + 1 for segment in segments)
    assert [syllable for segment in segments for syllable in segment.best.pinyin] == ["ma1", "ma2"] * 300


# Runs


def test_the_export_of_a_run_is_verified(tmp_path):
    """Utterances of any length with CTC rows; the model is called with a clip of 8 s or with a chunk."""
    source = speech_source(save_speech_run(tmp_path / "run", tiny_acoustic(DEEP_FRONT), DEEP_FRONT))
    states = (Mode.NON_STREAM_INFERENCE, Mode.STREAM_EXTERNAL_STATE_INFERENCE)
    made = export_bundle(
        source, [Variant(Format.LITERT, state, Precision.FLOAT) for state in states], tmp_path / "export"
    )
    assert [artefact.problems for artefact in made] == [[], []]
    bundle = open_bundle(tmp_path / "export")
    assert (bundle.metadata["kind"], bundle.labels) == ("speech", TOKENS)
    whole, chunk = json.loads((tmp_path / "export/export.json").read_text())["multiply_accumulates"].values()
    assert 95 * chunk < whole < 105 * chunk  # 800 frames and the look-ahead, 8 a chunk


# The command line


@pytest.fixture(scope="module")
def command(tmp_path_factory, acoustic):
    """A recording and two runs, as arguments of transcribe.py."""
    folder = tmp_path_factory.mktemp("transcribe")
    run = save_speech_run(folder / "speech", acoustic, SMALL)
    language = write_language_run(folder / "language", folder / "manifest.tsv")
    write_wav(folder / "a.wav", sound(50_000))
    return [str(folder / "a.wav"), "--speech", str(run), "--language", str(language), "--stream"]


def test_transcribe_prints_while_the_sound_arrives(command, acoustic, capsys):
    code = main([*command, "--format", "json"])
    out, err = capsys.readouterr()
    shown = json.loads(out)
    logits, lengths = acoustic.logits([extract_features(read_audio(command[0]), acoustic.features)])
    (expected,) = greedy_decode(logits, lengths, len(TOKENS) - 1)
    pinyin = " ".join(TOKENS[token] for token in expected.tokens if TOKENS[token] != " ")
    assert code == 0
    assert shown["pinyin"] == pinyin
    assert len(shown["hanzi"]) == len(pinyin.split())
    assert shown["seconds"] == pytest.approx(3.125)
    *pieces, speed = err.strip().splitlines()
    assert " ".join(" ".join(pieces).split()) == pinyin
    assert re.fullmatch(
        r"3\.1 s of audio processed in .* s, looking ahead 175 ms, real-time factor \d\.\d{3}", speed
    )


@pytest.mark.parametrize("option", [["--joint"], ["--beam", "4", "--n-best", "2"]])
def test_all_searches_work_on_a_stream(command, option, capsys):
    assert main([*command, *option, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["segments"]


def test_a_truncated_recording_is_recognised_up_to_its_end(acoustic, streams):
    def broken():
        yield sound(20_000)
        raise AudioError("cut off", where="a.wav")

    model, networks = streams
    recognizer = StreamRecognizer(
        SpeechStream(model, networks[8], 8, PartialResultDecoder(Recognizer(acoustic)))
    )
    ((name, events),) = ((name, list(events)) for name, events in recognizer.segments([("a", broken())]))
    assert name == "a"
    assert isinstance(events[-1], Ending)
    assert (events[-1].seconds, events[-1].error.message) == (1.25, "cut off")
    assert any(isinstance(event, Recognition) for event in events)
    ((_, [ending]),) = ((name, list(events)) for name, events in recognizer.segments([("b", iter([]))]))
    assert "no samples" in str(ending.error)
