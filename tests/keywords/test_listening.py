"""Tests of listen.py: a model of two tones detects them in files, pipes and a microphone at their times."""

import hashlib
import io
import json
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import layers

from bundle.export.build import export_bundle
from bundle.export.source import Clips, ExportSource
from bundle.folder import write_decoding
from bundle.variants import Format, Mode, Precision, Variant
from keywords import listening
from keywords.recording_results import recording_results
from model_keyword.layers.time_layers import clip_mean
from streaming.keyword import DetectionConfig
from tests.support.microphone import Microphone
from tests.support.scripts import load_script
from utils.audio import microphone as microphone_module
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.audio.samples import write_wav
from utils.errors import AudioError, BundleError, ConfigError, CorpusError, PhraseError
from utils.features.keyword import KeywordFeatureConfig, feature_frames, features_hash, keyword_features

listen = load_script("listen.py")
FEATURES = KeywordFeatureConfig(mel_bins=10, coefficients=0)
TELEPHONE = KeywordFeatureConfig(mel_bins=10, coefficients=0, sample_rate=8000)
LABELS = ("_silence_", "high", "low")
CLIP_SECONDS, CONTEXT_SECONDS, WORD_SECONDS = 0.5, 0.6, 0.3
TONES = {"high": 3000.0, "low": 500.0}
WEIGHTS = b"weights of the run"
SPOKEN = (("low", 1.0, 1.6), ("high", 3.0, 3.6), ("low", 5.5, 6.1))


def tone(hertz: float, samples: int, rate: int) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * hertz * np.arange(samples) / rate).astype(np.float32)


def recording(rate: int = SAMPLE_RATE) -> np.ndarray:
    """Eight seconds with three words in faint noise."""
    samples = 0.001 * np.random.default_rng(0).standard_normal(8 * rate).astype(np.float32)
    for word, start, end in SPOKEN:
        begins, ends = round(start * rate), round(end * rate)
        samples[begins:ends] += tone(TONES[word], ends - begins, rate)
    return samples


def knowing_model(settings: KeywordFeatureConfig, context: float = 0.0) -> tuple[keras.Model, Clips]:
    """An untrained network whose weights are a least-squares fit to the mean features of three sounds.

    Args:
        settings: of the features.
        context: seconds of silence before each sound, which the network gets and does not average.
    """
    rng, length = np.random.default_rng(1), round(CLIP_SECONDS * settings.sample_rate)
    noise = 0.001 * rng.standard_normal((30, length)).astype(np.float32)
    references = np.arange(30, dtype=np.int32) % 3
    for row, label in enumerate(references):
        noise[row] += tone(TONES[LABELS[label]], length, settings.sample_rate) if label else 0
    features = keyword_features(noise, settings)
    clip_frames = feature_frames(length, settings)
    silence = np.zeros((30, round(context * settings.sample_rate)), np.float32)
    features = keyword_features(np.concatenate([silence, noise], axis=1), settings)
    means = np.concatenate([features[:, -clip_frames:].mean(axis=1), np.ones((30, 1))], axis=1)
    weights = np.linalg.lstsq(means, 12 * np.eye(3)[references], rcond=None)[0]
    inputs = keras.Input(features.shape[1:], name="features")
    x = clip_mean(inputs, clip_frames / features.shape[1])
    model = keras.Model(inputs, layers.Dense(3, name="logits")(x), name="knowing")
    model.get_layer("logits").set_weights([weights[:-1].astype(np.float32), weights[-1].astype(np.float32)])
    return model, Clips(features, references)


def write_bundle(folder: Path, settings: KeywordFeatureConfig, context: float = 0.0) -> Path:
    model, clips = knowing_model(settings, context)
    source = ExportSource(
        kind="keyword",
        model=model,
        features=asdict(settings),
        features_hash=features_hash(settings),
        labels=LABELS,
        decoding=asdict(DetectionConfig(smoothing_ms=100, threshold=0.9, refractory_ms=800)),
        config_hash="0",
        frame_seconds=0.02,
        calibration=clips,
        tests=clips,
        golden=Clips(clips.inputs[:4], clips.references[:4]),
        weights_hash=hashlib.sha256(WEIGHTS).hexdigest(),
    )
    made = [
        Variant(Format.LITERT, state, Precision.FLOAT)
        for state in (Mode.STREAM_EXTERNAL_STATE_INFERENCE, Mode.NON_STREAM_INFERENCE)
    ]
    assert not any(artefact.problems for artefact in export_bundle(source, made, folder))
    return folder


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model takes sound before the clip."""
    return write_bundle(tmp_path_factory.mktemp("bundle") / "export", FEATURES, CONTEXT_SECONDS)


@pytest.fixture(scope="module")
def telephone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("telephone") / "export", TELEPHONE)


@pytest.fixture(scope="module")
def wav(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "three.wav"
    write_wav(path, recording())
    return path


def check_lines(lines: list[str]) -> None:
    """The three words, each detected while it is spoken or still in the window; no beginning is known."""
    assert all(line.split("\t")[3:] == ["threshold 0.900"] for line in lines)
    assert [line.split("\t")[1] for line in lines] == [word for word, _, _ in SPOKEN]
    for line, (_, start, end) in zip(lines, SPOKEN, strict=True):
        assert start < float(line.split("\t")[0]) < end + 0.5


def test_a_file(bundle: Path, wav: Path, capsys: pytest.CaptureFixture[str]):
    assert listen.main(["--model", str(bundle), str(wav)]) == 0
    check_lines(capsys.readouterr().out.splitlines())


def test_the_beginning_of_a_word_where_the_bundle_knows_it(bundle: Path, wav: Path, tmp_path: Path, capsys):
    shutil.copytree(bundle, tmp_path / "export")
    write_decoding(
        tmp_path / "export",
        DetectionConfig(smoothing_ms=100, threshold=0.9, refractory_ms=800, onset_ms=1500),
    )
    assert listen.main(["--model", str(tmp_path / "export"), str(wav)]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    expected = [f"began {max(0.0, float(line[0]) - 1.5):.2f}" for line in lines]
    assert [line[4] for line in lines] == expected and expected[0] == "began 0.00"
    assert listen.main(["--model", str(tmp_path / "export"), "--json", str(wav)]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (first["start"], first["threshold"]) == (0.0, 0.9)


def test_a_recording_that_ends_with_its_only_word(bundle: Path, tmp_path: Path, capsys):
    """It is shorter than the window of the model."""
    word, start, end = SPOKEN[0]
    write_wav(tmp_path / "word.wav", recording()[round(start * SAMPLE_RATE) : round(end * SAMPLE_RATE)])
    assert listen.main(["--model", str(bundle), "--json", str(tmp_path / "word.wav")]) == 0
    (line,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert line["keyword"] == word
    ((seconds, found, _),) = load_script("examples/stream_keyword.py").keywords(bundle, tmp_path / "word.wav")
    assert (round(seconds, 3), found) == (line["seconds"], word)


def short_recording(begin: float, end: float) -> np.ndarray:
    """A word that is detected just after its end, with faint noise for some seconds before and after."""
    word = tone(TONES["high"], round(WORD_SECONDS * SAMPLE_RATE), SAMPLE_RATE)
    samples = np.pad(word, (round(begin * SAMPLE_RATE), round(end * SAMPLE_RATE)))
    noise = np.random.default_rng(2).standard_normal(len(samples)).astype(np.float32)
    return samples + 0.001 * noise


@pytest.mark.parametrize("begin", [0.0, 0.2, 1.5])
def test_a_word_at_the_start_for_a_model_with_context(bundle: Path, begin: float, tmp_path: Path):
    """It is no longer in the clip when the recording has filled the context: silence before it does."""
    write_wav(tmp_path / "word.wav", short_recording(begin, end=1.5))
    listener = listening.open_listener(bundle)
    (detection,) = listening.detect_keywords(listener, [read_audio(tmp_path / "word.wav")])
    assert detection.keyword == "high" and begin + 0.3 < detection.seconds < begin + 0.6
    ((seconds, found, score),) = load_script("examples/stream_keyword.py").keywords(
        bundle, tmp_path / "word.wav"
    )
    assert (seconds, found, score) == pytest.approx(
        (detection.seconds, detection.keyword, detection.score), abs=1e-6
    )


@pytest.mark.parametrize(("begin", "end"), [(0.0, 2.0), (2.0, 0.0)])
def test_a_keyword_at_the_edge_of_a_recording_is_no_miss(bundle: Path, begin, end, tmp_path: Path):
    """The evaluation counts what listen.py detects. The silence around a recording adds no time to it."""
    write_wav(tmp_path / "word.wav", short_recording(begin, end))
    rows = f"start\tend\tkeyword\n{begin}\t{begin + WORD_SECONDS}\thigh\n"
    (tmp_path / "spoken.tsv").write_text(rows, encoding="utf-8")
    results = recording_results(bundle, tmp_path / "word.wav", tmp_path / "spoken.tsv", tmp_path / "report")
    assert (results["spoken"], results["missed"], results["false_alarms"]) == (1, 0, 0)
    assert results["hours"] == pytest.approx((2 + WORD_SECONDS) / 3600)


def test_json_and_two_files(bundle: Path, wav: Path, capsys: pytest.CaptureFixture[str]):
    artefact = bundle / "litert/stream_external_float.tflite"
    assert listen.main(["--model", str(artefact), "--json", str(wav), str(wav)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["keyword"] for line in lines] == [word for word, _, _ in SPOKEN] * 2
    # The second file is a separate stream with the same times and scores.
    assert lines[:3] == lines[3:] and lines[0]["source"] == str(wav) and 0.9 <= lines[0]["score"] <= 1


def test_a_threshold_wins_over_the_bundles(bundle: Path, wav: Path, capsys: pytest.CaptureFixture[str]):
    assert listen.main(["--model", str(bundle), "--threshold", "0.9999999", str(wav)]) == 0
    assert not capsys.readouterr().out


@pytest.mark.parametrize(("model", "rate"), [("bundle", SAMPLE_RATE), ("telephone", 8000)])
def test_a_pipe_has_the_sample_rate_of_the_model(model, rate, request, capsys, monkeypatch):
    pcm = (recording(rate) * 32767).astype("<i2").tobytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pcm)))
    assert listen.main(["--model", str(request.getfixturevalue(model)), "-"]) == 0
    check_lines(capsys.readouterr().out.splitlines())


def test_a_pipe_with_a_sound_file_or_text(
    bundle: Path, wav: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(wav.read_bytes())))
    assert listen.main(["--model", str(bundle), "--rate", "8000", "-"]) == 0  # the header has precedence
    check_lines(capsys.readouterr().out.splitlines())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"hello, this is text")))
    with pytest.raises(AudioError, match="this is text, not audio"):
        listen.main(["--model", str(bundle), "-"])


def test_a_recording_that_cannot_be_read_does_not_end_the_others(bundle: Path, wav: Path, tmp_path, capsys):
    damaged = tmp_path / "damaged.wav"
    damaged.write_bytes(wav.read_bytes()[:-1000])
    assert listen.main(["--model", str(bundle), str(damaged), str(wav)]) == 1
    printed = capsys.readouterr()
    for path in (damaged, wav):  # also what can be decoded of the damaged one
        begin = f"{path}\t"
        check_lines([line.removeprefix(begin) for line in printed.out.splitlines() if line.startswith(begin)])
    assert f"where: {damaged}\n" in printed.err
    assert printed.err.endswith(f"1 of 2 recordings could not be read: {damaged}\n")


@pytest.mark.parametrize("rate", [8000, SAMPLE_RATE])
def test_the_example_gives_the_answers_of_listen(
    rate: int, bundle: Path, telephone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """At the model's own sample rate: the same keywords, times and scores. Another rate is refused."""
    example, folder = load_script("examples/stream_keyword.py"), telephone if rate == 8000 else bundle
    write_wav(tmp_path / "own.wav", recording(rate), rate)
    assert listen.main(["--model", str(folder), "--json", str(tmp_path / "own.wav")]) == 0
    expected = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = list(example.keywords(folder, tmp_path / "own.wav"))
    assert len(found) == len(SPOKEN)
    assert [(round(seconds, 3), word, round(score, 4)) for seconds, word, score in found] == [
        (line["seconds"], line["keyword"], line["score"]) for line in expected
    ]
    write_wav(tmp_path / "other.wav", recording(24_000 - rate), 24_000 - rate)
    with pytest.raises(SystemExit, match="2"):
        list(example.keywords(folder, tmp_path / "other.wav"))
    assert capsys.readouterr().err == (
        f"error: channels, sample bytes, Hz: (1, 2, {24_000 - rate})\nwhere: {tmp_path / 'other.wav'}\n"
        f"hint: the model takes (1, 2, {rate}), mono 16-bit WAV\n"
    )


def test_a_microphone(bundle: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    microphone = Microphone(recording(), SAMPLE_RATE)
    monkeypatch.setitem(sys.modules, "sounddevice", microphone)
    monkeypatch.setattr(microphone_module, "_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(AudioError, match="no more audio"):
        listen.main(["--model", str(bundle), "--microphone"])
    check_lines(capsys.readouterr().out.splitlines())


def test_models_that_cannot_stream_are_refused(bundle: Path, wav: Path, tmp_path: Path):
    with pytest.raises(BundleError, match="whole clips"):
        listening.open_listener(bundle / "litert/non_stream_float.tflite")
    with pytest.raises(BundleError, match="no such file"):
        listening.open_listener(tmp_path / "model.tflite")
    (tmp_path / "model.tflite").write_bytes(b"alone")
    with pytest.raises(BundleError, match="not in a bundle"):
        listening.open_listener(tmp_path / "model.tflite")
    with pytest.raises(BundleError, match="is not a bundle, but contains one") as caught:
        listening.open_listener(bundle.parent)  # as wake_word.py makes it
    assert caught.value.hint == f"give {bundle}"


def test_inputs_and_options_that_would_be_ignored_are_refused(bundle: Path, wav: Path, capsys):
    model = ["--model", str(bundle)]
    for arguments, message in (
        ([], "no input"),
        (["--microphone", str(wav)], "give recordings or --microphone, not both"),
        (["--rate", "8000", str(wav)], "--rate is the sample rate of a pipe"),
    ):
        with pytest.raises(SystemExit):
            listen.main([*model, *arguments])
        assert message in capsys.readouterr().err
    for option, value in (("--speech", "runs/compact"), ("--alarms-per-hour", "2")):
        with pytest.raises(ConfigError, match=f"{option} is for typed words"):
            listen.main([*model, option, value, str(wav)])
    with pytest.raises(ConfigError, match=r"threshold is 1\.0.*export with threshold=1"):
        listen.main([*model, "--threshold", "1", str(wav)])


def test_a_typed_word_without_a_pronunciation_gets_one_as_another_word(wav: Path):
    with pytest.raises(PhraseError, match=r"Foobar = … \(each --word is a line\)"):
        listen.main(["--word", "Foobar", str(wav)])
    with pytest.raises(AudioError, match="no such audio file"):  # the words are right
        listen.main(["--word", "Foobar", "--word", "Foobar = fu1 ba1", "none.wav"])


def test_misses_and_false_alarms_of_a_recording(bundle: Path, wav: Path, tmp_path: Path):
    spoken = tmp_path / "spoken.tsv"
    rows = [f"{start}\t{end}\t{word}" for word, start, end in SPOKEN[:2]] + ["7.0\t7.5\thigh"]
    spoken.write_text("\n".join(["start\tend\tkeyword", *rows, ""]), encoding="utf-8")
    results = recording_results(bundle, wav, spoken, tmp_path / "report")
    # The third word is detected and not in the list; the last one is in the list and not detected.
    assert (results["spoken"], results["missed"], results["false_alarms"]) == (3, 1, 1)
    assert results["false_alarms_per_hour"] == pytest.approx(3600 / 8)
    table = (tmp_path / "report/trade_off.tsv").read_text(encoding="utf-8").splitlines()
    assert len(table) == 101 and (tmp_path / "report/trade_off.png").is_file()


def test_a_late_detection_of_a_model_of_long_clips_is_no_false_alarm(bundle: Path, wav: Path, tmp_path: Path):
    """A keyword stays in the window and in the average for the refractory time."""
    patient, spoken = shutil.copytree(bundle, tmp_path / "export"), tmp_path / "spoken.tsv"
    spoken.write_text("start\tend\tkeyword\n0.0\t0.2\tlow\n", encoding="utf-8")  # detected 1.2 s later
    detection = listening.open_listener(bundle).detection
    for refractory_ms, expected in ((800, (1, 3)), (1800, (0, 2))):
        write_decoding(patient, replace(detection, refractory_ms=refractory_ms))
        results = recording_results(patient, wav, spoken, tmp_path / "report")
        assert (results["missed"], results["false_alarms"]) == expected


def test_listed_words_that_the_model_cannot_detect_are_not_misses(bundle, wav, tmp_path):
    spoken = tmp_path / "spoken.tsv"
    rows = [f"{start}\t{end}\t{word}" for word, start, end in SPOKEN[:2]]
    others = ["4.0\t4.5\tmiddle", "7.0\t7.5\tmiddle"]
    spoken.write_text("\n".join(["start\tend\tkeyword", *rows, *others, ""]), encoding="utf-8")
    results = recording_results(bundle, wav, spoken, tmp_path / "report")
    assert (results["spoken"], results["missed"], results["false_alarms"]) == (2, 0, 1)
    spoken.write_text("\n".join(["start\tend\tkeyword", *others, ""]), encoding="utf-8")
    with pytest.raises(CorpusError, match="can't detect any of the listed words") as caught:
        recording_results(bundle, wav, spoken, tmp_path / "report")
    assert caught.value.where == spoken and caught.value.hint == "the words of this model: high, low"


def test_an_export_of_other_weights_is_named(bundle: Path, wav: Path, tmp_path: Path, capsys):
    """The run was trained again after its export."""
    run = tmp_path / "my run"
    shutil.copytree(bundle, run / "export")
    for weights in (WEIGHTS, b"trained again"):
        (run / "best.weights.h5").write_bytes(weights)
        recording_results(run / "export", wav, None, tmp_path / "report")
        note = "was not made of the present best.weights.h5 of its run"
        printed = capsys.readouterr().err
        assert (note in printed) == (weights != WEIGHTS)
    assert f"python export.py '{run}' --force" in printed


def test_the_command(bundle: Path, wav: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = bundle.parent
    (run / "config.yaml").write_text("task: keyword\n", encoding="utf-8")
    arguments = ["keyword", str(run), "--recording", str(wav), "--report", str(tmp_path / "report")]
    assert load_script("test.py").main(arguments) == 0
    # Without a list of spoken words every detection is a false alarm.
    assert "false alarms    3" in capsys.readouterr().out
