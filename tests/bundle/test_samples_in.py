"""Tests of exports that take samples: equal to the Python features and model; run by the C++ examples."""

import importlib.util
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import keras
import numpy as np
import pytest

from bundle.export import speech_source as speech_module
from bundle.export.build import export_bundle
from bundle.export.source import Clips, ExportSource
from bundle.folder import Bundle, open_bundle
from bundle.variants import Format, Precision, Variant
from examples.stream_speech import stream
from keywords.listening import detect_keywords, open_listener, probabilities_of
from model_keyword.layers.front_end import front_end, settings_inside
from model_speech.acoustic_model import load_acoustic_model
from model_speech.causal import causal_model
from streaming.conversion.modes import Mode
from streaming.keyword import DetectionConfig
from tests.keywords.test_listening import FEATURES, LABELS, knowing_model, recording
from tests.support.scripts import ROOT, load_script
from tests.support.tiny_words import write_keyword_run, write_tiny_words
from utils.arrays import softmax
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.audio.samples import write_wav
from utils.errors import BundleError, ConfigError
from utils.features.keyword import features_hash
from utils.features.stream import FeatureStream
from utils.run_folder.run import PRETRAINED_STREAMING, RunFolder

RECORDING = ROOT / "examples/recordings/common_voice_18776500.ogg"
LITERT, ONNX = "litert/stream_external_float.tflite", "onnx/stream_external_float.onnx"
OPTIONS = ("--mode", "stream_external", "--precision", "float", "--format", "litert", "onnx")
export = load_script("export.py")


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The shipped model for streams. Its golden clips are shorter than usual, to save time."""
    folder = tmp_path_factory.mktemp("speech") / "export"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speech_module, "MAX_SECONDS", 1.0)
        run = str(PRETRAINED_STREAMING)
        assert export.main([run, "--input", "samples", *OPTIONS, "--output", str(folder)]) == 0
    return open_bundle(folder)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a keyword run of random weights and its two bundles: features, samples."""
    folder = tmp_path_factory.mktemp("words")
    run = write_keyword_run(folder / "run", write_tiny_words(folder / "recordings"))
    for kind in ("features", "samples"):
        assert export.main([str(run), "--input", kind, *OPTIONS, "--output", str(folder / kind)]) == 0
    return folder


@pytest.fixture(scope="module")
def sound() -> np.ndarray:
    """A recorded sentence, and silence until its last syllable is known."""
    return np.pad(read_audio(RECORDING, SAMPLE_RATE), (0, 20_000))


@pytest.mark.parametrize("artefact", [LITERT, ONNX])
def test_samples_give_the_logits_of_the_python_features(speech: Bundle, sound: np.ndarray, artefact: str):
    """Within a ten-thousandth of the largest logit, and of a probability."""
    acoustic, model = load_acoustic_model(PRETRAINED_STREAMING), speech.open(artefact)
    causal = causal_model(acoustic, RunFolder(PRETRAINED_STREAMING))
    chunk, delay = int(speech.stream["chunk"]), int(speech.stream["delay"])
    ends = range(chunk, len(sound) + 1, chunk)
    found = np.concatenate([model.step(sound[end - chunk : end])[0] for end in ends])[delay:]
    frames = FeatureStream(causal.features).feed(sound)
    expected = np.asarray(causal.network(frames[None, : len(frames) // 8 * 8]))[0, : len(found)]
    assert len(found) == len(expected) == len(sound) // chunk - 1 > 50
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max(), rtol=0)
    np.testing.assert_allclose(softmax(found), softmax(expected), atol=1e-4)


@pytest.mark.parametrize("artefact", [LITERT, ONNX])
def test_samples_give_the_probabilities_of_the_python_features(words: Path, sound: np.ndarray, artefact: str):
    inside, outside = open_listener(words / "samples" / artefact), open_listener(words / "features" / LITERT)
    found, expected = (
        np.concatenate(list(probabilities_of(listener, [sound]))) for listener in (inside, outside)
    )
    # Inside, the first call has no whole window yet, so that silence of one more call fills the model.
    assert len(found) == len(expected) + 3 and np.ptp(expected, axis=0).max() > 0.1
    full = outside.window_calls
    np.testing.assert_allclose(found[full + 2 : -1], expected[full:], atol=1e-4)


def test_the_model_of_samples_has_an_ordinary_bundle(speech: Bundle, sound: np.ndarray, words: Path):
    assert [each["input_shape"] for each in speech.artefacts.values()] == [[1, 1088], [1, 1088]]
    assert speech.stream["seconds"] == 0.068
    with pytest.raises(BundleError, match=r"(?s)\(1088\) per call, not \(1088, 80\).*feed samples"):
        list(stream(sound, speech.path, LITERT))
    bundle = open_bundle(words / "samples")
    assert bundle.metadata["features"]["kind"] == "raw" and bundle.metadata["features"]["mel_bins"] == 12


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("pretrained/audio_to_pinyin", "a model of whole utterances can't take samples.*compact_streaming"),
        ("pretrained/pinyin_to_hanzi", "a converter takes syllables.*leave out --input samples"),
    ],
)
def test_models_that_cannot_take_samples_are_refused(run: str, message: str, tmp_path: Path):
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        export.main([str(ROOT / run), "--input", "samples", "--output", str(tmp_path / "export")])


# --- examples/cpp ---


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library of ONNX Runtime's Python package, under the names that a linker looks for."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler: install g++")
    package = importlib.util.find_spec("onnxruntime").submodule_search_locations[0]
    found = sorted(Path(package, "capi").glob("libonnxruntime.so.*"))
    if not found:
        pytest.skip("this onnxruntime package has no shared library with the C interface")
    folder = tmp_path_factory.mktemp("libraries")
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (folder / name).symlink_to(found[0])
    return folder


def run_example(name: str, libraries: Path, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Compile one of the C++ examples with all warnings as errors, once, and run it."""
    program = libraries / name
    if not program.exists():
        options = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-lonnxruntime", "-o", str(program)]
        folders = [f"-I{ROOT / 'tests/support/onnxruntime'}", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
        subprocess.run(["g++", str(ROOT / f"examples/cpp/{name}.cc"), *folders, *options], check=True)
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_the_example_in_c_detects_keywords_as_listen_does(libraries: Path, tmp_path: Path):
    model, _ = knowing_model(FEATURES)
    samples = keras.Input((SAMPLE_RATE // 2,), name="samples")
    features = settings_inside(FEATURES)
    source = ExportSource(
        kind="keyword",
        model=keras.Model(samples, model(front_end(samples, features)), name="knowing"),
        features=asdict(features),
        features_hash=features_hash(features),
        labels=LABELS,
        decoding=asdict(DetectionConfig(smoothing_ms=50, threshold=0.9, refractory_ms=800)),
        config_hash="0",
        frame_seconds=0.02,
        calibration=(none := Clips(np.zeros((0, SAMPLE_RATE // 2), np.float32), np.zeros(0, np.int32))),
        tests=none,
        golden=Clips(recording()[: SAMPLE_RATE * 4].reshape(8, -1), np.zeros(8, np.int32)),
    )
    made = Variant(Format.ONNX, Mode.STREAM_EXTERNAL_STATE_INFERENCE, Precision.FLOAT)
    assert [artefact.problems for artefact in export_bundle(source, [made], tmp_path / "export")] == [[]]
    write_wav(tmp_path / "three.wav", recording())
    listener = open_listener(tmp_path / "export" / made.path)
    expected = list(detect_keywords(listener, [read_audio(tmp_path / "three.wav", SAMPLE_RATE)]))
    content, tag = (tmp_path / "three.wav").read_bytes(), b"LIST\x0e\0\0\0INFOmy data 12"
    (tmp_path / "three.wav").write_bytes(content[:12] + tag + content[12:] + tag)
    ended = run_example("keywords", libraries, tmp_path / "export", tmp_path / "three.wav")
    assert ended.returncode == 0, ended.stderr
    found = [line.split("\t") for line in ended.stdout.splitlines()]
    assert [(float(seconds), word) for seconds, word, _ in found] == [
        (round(each.seconds, 2), each.keyword) for each in expected
    ]
    np.testing.assert_allclose(
        [float(line[2]) for line in found], [each.score for each in expected], atol=1e-3
    )
    (tmp_path / "cut_off.wav").write_bytes(content[:-1000])
    for refused, problem in [(RECORDING, "takes mono 16-bit WAV of 16000 Hz"), ("cut_off.wav", "is cut off")]:
        ended = run_example("keywords", libraries, tmp_path / "export", tmp_path / refused)
        assert ended.returncode == 2 and problem in ended.stderr


def test_the_example_in_c_writes_the_syllables_of_the_example_in_python(
    speech: Bundle, sound: np.ndarray, libraries: Path, tmp_path: Path
):
    write_wav(tmp_path / "sentence.wav", sound[:-20_000])
    ended = run_example("syllables", libraries, speech.path, tmp_path / "sentence.wav")
    assert ended.returncode == 0, ended.stderr
    found = [line.split("\t")[1] for line in ended.stdout.splitlines()]
    # The shipped bundle takes features, and has 8-bit weights.
    assert found == [syllable for _, syllable in stream(sound[:-20_000])] and len(found) > 5
