"""Tests of exported models of whole utterances: outputs, error rates, bundles, the example."""

import json
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from bundle.check.measure_artefact import accuracies, compare_with_source
from bundle.check.measuring import verdict
from bundle.check.scoring import label_count
from bundle.check.utterances import compare, without_padding
from bundle.export.artefact_writer import ArtefactWriter
from bundle.export.build import export_bundle
from bundle.export.language_source import language_source
from bundle.export.source import ExportSource
from bundle.export.speech_source import speech_source
from bundle.folder import open_bundle
from bundle.report import ArtefactResult
from bundle.runtimes.artefacts import open_artefact
from bundle.variants import Format, Precision, Variant
from data.evaluation_lists import read_test_transcripts
from data.manifest import read_manifest, write_manifest
from model_language.registry import MODELS as CONVERTERS
from model_language.registry import load_converter
from model_language.vocabulary.symbols import build_symbols
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.registry import MODELS
from recognition.recognizer import Recognizer
from streaming.conversion.modes import Mode
from tests.support.scripts import ROOT, load_script
from tests.support.tiny_corpus import SYLLABLES
from tests.support.tiny_runs import save_speech_run
from utils.config import save_yaml, to_plain
from utils.errors import ConfigError
from utils.features.settings import FeatureConfig, feature_bins
from utils.mandarin.output_units import HANZI
from utils.metrics import count_errors, total
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary, acoustic_vocabulary


def non_stream(format_: Format, precision: Precision = Precision.FLOAT) -> Variant:
    return Variant(format_, Mode.NON_STREAM_INFERENCE, precision)


ONNX, LITERT = non_stream(Format.ONNX), non_stream(Format.LITERT)
INT8 = non_stream(Format.LITERT, Precision.INT8)
EXAMPLE = ROOT / "examples" / "recognise_exported.py"


ACOUSTIC: dict[str, dict[str, Any]] = {
    "compact": {"width": 16, "blocks": 2, "gate": 4},
    "dfcnn": {"filters": (4, 8, 8), "dense": 16},
    "gru_ctc": {"width": 8, "recurrent": 1, "dense": 1},
    "dfsmn": {"blocks": 2, "hidden": 16, "projection": 8, "past": 3, "future": 3},
    "conformer": {"blocks": 1, "width": 8, "heads": 2, "kernel": 7},
    "whisper": {"blocks": 1, "width": 8, "heads": 2, "head_width": 8},
}
CONVERTER: dict[str, dict[str, Any]] = {
    "transformer": {"width": 16, "blocks": 1, "heads": 2},
    "cbhg": {"embedding": 8, "width": 8, "bank": 3, "highway": 1},
}


def write_acoustic_run(folder: Path, name: str, manifest: Path, vocabulary: Vocabulary | None = None) -> Path:
    """A speech run of one model with random weights and filter bank features."""
    features, vocabulary = FeatureConfig(bins=16), vocabulary or acoustic_vocabulary()
    config = MODELS[name].config(**ACOUSTIC[name])
    keras.utils.set_random_seed(1)
    model = MODELS[name].build(config, feature_bins(features), len(vocabulary))
    return save_speech_run(
        folder, AcousticModel(model, features, vocabulary, config.time_stride), config, manifest
    )


def write_converter_run(folder: Path, name: str, manifest: Path) -> Path:
    """A language run of one network with random weights."""
    run = RunFolder(folder)
    symbols = build_symbols([(list(SYLLABLES), "".join(SYLLABLES.values()))])
    config = CONVERTERS[name].config(**CONVERTER[name])
    lists = {split: [str(manifest)] for split in ("train", "dev", "test")}
    save_yaml(run.config_file, {"task": "language", "data": lists, "model": to_plain(config)})
    symbols.save(run.path)
    keras.utils.set_random_seed(1)
    CONVERTERS[name].build(config, symbols, run).save_weights(run.best_weights)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny_manifest):
    """Run folders by model name, each created when it is needed."""
    folder = tmp_path_factory.mktemp("runs")

    @cache
    def make(name: str) -> Path:
        write = write_acoustic_run if name in ACOUSTIC else write_converter_run
        return write(folder / name, name, tiny_manifest)

    return make


@pytest.fixture(scope="module")
def sources(runs):
    @cache
    def make(name: str) -> ExportSource:
        return (speech_source if name in ACOUSTIC else language_source)(runs(name))

    return make


def measurements(source: ExportSource, variant: Variant, folder: Path) -> dict:
    """Measurements, accuracy and problems of an artefact, in this process."""
    facts = {"row_stride": source.row_stride}
    with ArtefactWriter(source) as writer:
        path = folder / variant.path
        writer.write(variant, path)
        artefact, golden = open_artefact(path), writer.golden([Mode.NON_STREAM_INFERENCE])
        found = compare_with_source(artefact, facts, golden) | {
            "facts": artefact.info,
            "clips": len(source.tests),
        }
        found["labels"] = label_count(source.tests.references)
        found["accuracy"] = accuracies(artefact, facts, source.test_arrays(source.tests))
        return found | {"problems": verdict(variant, found, writer.accuracies(source.tests, streams=False))}


# --- artefacts ---


# TensorFlow's formats; with --nightly each model. ONNX and LiteRT of compact: by the command below; dfsmn: in
# int8 below.
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param("gru_ctc", ONNX, marks=pytest.mark.nightly),
        pytest.param("gru_ctc", LITERT, marks=pytest.mark.nightly),
        pytest.param("conformer", ONNX, marks=pytest.mark.nightly),
        pytest.param("conformer", LITERT, marks=pytest.mark.nightly),
        ("whisper", ONNX),
        pytest.param("whisper", LITERT, marks=pytest.mark.nightly),
        pytest.param("whisper", non_stream(Format.SAVED_MODEL), marks=pytest.mark.nightly),
        pytest.param("transformer", LITERT, marks=pytest.mark.nightly),
        ("transformer", non_stream(Format.SAVED_MODEL)),
        pytest.param("cbhg", LITERT, marks=pytest.mark.nightly),
        ("dfcnn", non_stream(Format.FROZEN_GRAPH)),
    ],
    ids=str,
)
def test_every_model_gives_the_outputs_of_the_source_alone_and_in_padded_batches(
    name, variant, sources, tmp_path
):
    source = sources(name)
    found = measurements(source, variant, tmp_path)
    assert found["problems"] == [] and set(found["difference"]) == {"batch", "alone", "padded"}
    facts = found["facts"]
    assert facts.takes_lengths == (name in ACOUSTIC) and facts.takes_tokens == (name in CONVERTER)
    assert facts.input_shape[0] == (1 if variant == LITERT else None) and facts.input_shape[1] is None
    assert len(set(source.golden.lengths.tolist())) > 2


def test_references_of_a_model_of_hanzi_are_hanzi(tmp_path, tiny_manifest):
    texts = [each.hanzi for each in read_manifest(tiny_manifest)]
    vocabulary = acoustic_vocabulary(set("".join(texts)), HANZI)
    source = speech_source(write_acoustic_run(tmp_path / "run", "dfcnn", tiny_manifest, vocabulary))
    found = {"".join(vocabulary.tokens[i] for i in row if i >= 0) for row in source.tests.references}
    assert found == set(texts)


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        pytest.param("dfsmn", Format.LITERT, marks=pytest.mark.nightly),
        ("transformer", Format.ONNX),
    ],
)
def test_int8_may_leave_layers_of_any_model_in_float(name, format_, sources, tmp_path):
    """With all layers with weights in float, the outputs are closer to the source model's than in 8 bits."""
    source, variant = sources(name), non_stream(format_, Precision.INT8)
    with ArtefactWriter(source) as writer:
        groups = writer.noisiest_layers
        names = {name for group in groups for name in group}
        assert len(groups) > 3 and names <= {layer.name for layer in source.model.layers}
        differences = []
        for left_in_float in ((), names):
            writer.write(variant, tmp_path / variant.path, left_in_float)
            artefact, golden = (
                open_artefact(tmp_path / variant.path),
                writer.golden([Mode.NON_STREAM_INFERENCE]),
            )
            found = compare_with_source(artefact, {"row_stride": source.row_stride}, golden)
            differences.append(found["difference"]["alone"])
            assert found["difference"]["padded"] < 2 * found["difference"]["alone"]
    assert differences[1] < differences[0] / 3


def test_onnxruntime_loads_int8_whose_loop_is_in_float(sources, tmp_path):
    """In a child process: onnxruntime 1.32 aborted if a transposition before the loop was in float alone."""
    path = tmp_path / "model.onnx"
    with ArtefactWriter(sources("cbhg")) as writer:
        writer.write(non_stream(Format.ONNX, Precision.INT8), path, ("gru",))
    program = "import onnxruntime, sys; onnxruntime.InferenceSession(sys.argv[1])"
    child = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr


# --- comparing and counting ---


def counting_model(inputs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Two positions a row; logits (N, rows, 3) that name the row's parity, and noise in the padding."""
    rows = np.arange(-(-inputs.shape[1] // 2))
    answers = np.tile(np.eye(3, dtype=np.float32)[rows % 2], (len(inputs), 1, 1))
    answers[rows >= -(-lengths[:, None] // 2)] = np.random.default_rng(0).normal()
    return answers


def golden_of_counting_model() -> dict[str, np.ndarray]:
    lengths = np.array([7, 4], np.int32)
    inputs = np.zeros((2, 7, 1), np.float32)
    answers = without_padding(counting_model(inputs, lengths), np.array([4, 2]))
    return {"inputs": inputs, "lengths": lengths, "non_stream": answers}


def test_a_model_that_depends_on_padding_fails_with_more_padding():
    def with_length(inputs, lengths):
        return counting_model(inputs, lengths) + np.float32(inputs.shape[1] > 7)

    found = compare(with_length, golden_of_counting_model(), row_stride=2)
    assert found["difference"] == {"batch": 0.0, "alone": 0.0, "padded": 1.0}


# --- error rates are those of test.py ---


def test_the_syllable_error_rate_is_that_of_the_test(sources, runs, tiny_manifest):
    with ArtefactWriter(source := sources("compact")) as writer:
        accuracy = writer.accuracies(source.tests, streams=False)["non_stream"]
    utterances = read_manifest(tiny_manifest)
    recognised = Recognizer(load_acoustic_model(runs("compact"))).recognise(
        (utterance.id, utterance.audio) for utterance in utterances
    )
    pairs = zip(utterances, recognised, strict=True)
    counts = total(count_errors(pair.pinyin, found.pinyin) for pair, found in pairs)
    assert 1 - accuracy == pytest.approx(counts.rate)


@pytest.mark.parametrize("name", ["transformer", pytest.param("cbhg", marks=pytest.mark.nightly)])
def test_the_character_error_rate_is_that_of_the_test(name, sources, runs, tiny_manifest):
    with ArtefactWriter(source := sources(name)) as writer:
        accuracy = writer.accuracies(source.tests, streams=False)["non_stream"]
    sentences = read_test_transcripts([tiny_manifest])
    converted = load_converter(runs(name)).convert([sentence.pinyin for sentence in sentences])
    counts = total(
        count_errors(sentence.hanzi, hanzi) for sentence, hanzi in zip(sentences, converted, strict=True)
    )
    assert 0 < 1 - accuracy == pytest.approx(counts.rate)


# --- sources ---


def test_without_recordings_the_utterances_are_noise(runs, capsys):
    source = speech_source(runs("compact"), overrides=["data.test=[gone.tsv]"])
    assert not len(source.tests) and len(set(source.golden.lengths.tolist())) == 6
    assert "no accuracy and no int8" in capsys.readouterr().err
    source = language_source(runs("transformer"), overrides=["data.test=[gone.tsv]"])
    assert not len(source.tests) and source.golden.lengths.tolist() == [1, 8, 16, 24, 32, 40]
    assert source.golden.inputs.min() == 0 and (source.golden.inputs[-1] > 1).all()


def test_utterances_and_sentences_that_are_too_long_are_counted(runs, tiny_manifest, monkeypatch, capsys):
    utterances = read_manifest(tiny_manifest)
    monkeypatch.setattr("bundle.export.speech_source.MAX_SECONDS", 0.7)
    long = sum(utterance.seconds > 0.7 for utterance in utterances)
    assert len(speech_source(runs("compact")).tests) == len(utterances) - long > 0
    notes = capsys.readouterr().err.splitlines()
    counted = f"{long} of {len(utterances)} left out, utterances longer than 0.7 s"
    assert notes == [f"note: {split} split: {counted}" for split in ("test", "dev", "train")]
    monkeypatch.setattr("bundle.export.language_source.MAX_SYLLABLES", 2)
    long = sum(len(utterance.pinyin) > 2 for utterance in utterances)
    assert len(language_source(runs("transformer")).tests) == len(utterances) - long > 0
    assert f"{long} of {len(utterances)} left out, sentences longer than 2" in capsys.readouterr().err


# --- bundles and the command ---


@pytest.fixture(scope="module")
def speech_bundle(runs, tiny_manifest, tmp_path_factory) -> Path:
    """A bundle made and verified by the command, each artefact in a separate process.

    All utterances of the test split have a syllable that the run's vocabulary lacks.
    """
    folder = tmp_path_factory.mktemp("bundles")
    unknown = [replace(each, pinyin=("mar1",), hanzi="妈") for each in read_manifest(tiny_manifest)]
    write_manifest(folder / "unknown.tsv", unknown)
    settings = [f"data.test=[{folder / 'unknown.tsv'}]", "--format", "onnx", "litert", "--precision", "float"]
    output = folder / "speech"
    assert load_script("export.py").main([str(runs("compact")), *settings, "--output", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def language_bundle(sources, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("bundles") / "language"
    assert [artefact.problems for artefact in export_bundle(sources("transformer"), [ONNX], output)] == [[]]
    return output


def test_the_command_exports_whole_utterances_and_verifies(speech_bundle, capsys):
    assert load_script("export.py").main(["verify", str(speech_bundle)]) == 0
    assert "2 passed" in capsys.readouterr().out
    found = json.loads((speech_bundle / "export.json").read_text())["artefacts"]
    assert not any(artefact["tensorflow_loaded"] for artefact in found.values())
    text = (speech_bundle / f"{ONNX.path}.accuracy.txt").read_text().splitlines()
    assert text[0].startswith("non_stream ") and text[0].endswith("(N = 8)")
    assert text[1].startswith("token error rate non_stream ")
    table = (speech_bundle / "export.md").read_text().splitlines()
    (row,) = [row for row in table if row.startswith(f"| {ONNX} ")]
    assert float(row.split("|")[-3]) > 0  # the real-time factor
    assert any(line.startswith("- the source model's accuracy on 8 dev clips: ") for line in table)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("compact", "non_stream, or a run of configs/speech/compact_streaming.yaml"),
        ("transformer", "use non_stream"),
    ],
)
def test_a_stream_of_a_model_of_whole_utterances_is_refused_with_what_to_take(name, instead, runs):
    with pytest.raises(ConfigError, match=rf"needs whole utterances.*{instead}"):
        load_script("export.py").main([str(runs(name)), "--mode", "stream_external"])


LOOP = "the converter can't quantise a loop: a recurrent layer over too many frames, or a custom one"


def test_a_recurrent_model_is_exported_without_litert_int8_which_is_listed(runs, tmp_path, capsys):
    output = tmp_path / "bundle"
    assert load_script("export.py").main([str(runs("gru_ctc")), "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert f"not available for this model: {INT8}: {LOOP} (use precision dynamic" in printed
    assert "1 of 1 artefacts passed" in printed and "FAILED" not in printed
    assert f"| {INT8} | not available for this model: {LOOP}" in (output / "export.md").read_text()
    found = json.loads((output / "export.json").read_text())["artefacts"]
    assert {path: (made["passed"], made["available"]) for path, made in found.items()} == {
        LITERT.path: (True, True),
        INT8.path: (False, False),
    }
    assert list(open_bundle(output).artefacts) == [LITERT.path]


PASSED = ArtefactResult(LITERT, {"float_layers": []}, [])
BROKEN = ArtefactResult(ONNX, {}, ["not written: the converter fails"])
UNAVAILABLE = ArtefactResult(INT8, {}, [f"not available for this model: {LOOP}"], unavailable=LOOP)


def test_an_artefact_that_fails_beside_one_that_cannot_be_had_is_a_failure(
    runs, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr("bundle.export.build.export_bundle", lambda *_, **__: [PASSED, BROKEN, UNAVAILABLE])
    words = [str(runs("gru_ctc")), "--all", "--output", str(tmp_path / "some")]
    assert load_script("export.py").main(words) == 1
    assert f"FAILED {ONNX}: not written: the converter fails" in capsys.readouterr().out


def test_the_tables_of_a_converter_are_those_of_its_symbols(language_bundle, sources):
    source = sources("transformer")
    tokens = (language_bundle / "pinyin.txt").read_text().split("\n")[:-1]
    rows = [line.split("\t") for line in (language_bundle / "lexicon.tsv").read_text().split("\n")[:-1]]
    assert [row[0] for row in rows] == tokens and len(tokens) == len(source.candidates)
    index = tokens.index("hao3")
    expected = {source.labels[hanzi] for hanzi in source.candidates[index] if hanzi > 1}
    assert set(rows[index][1]) == expected and "好" in expected


# --- the example ---

WITHOUT = """
import runpy, sys
for name in ("tensorflow", "keras", "bundle", "ai_edge_litert"):
    sys.modules[name] = None
sys.argv = {words!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_example_writes_the_text_of_transcribe(speech_bundle, language_bundle, runs, tiny_manifest):
    recording = read_manifest(tiny_manifest)[1].audio
    code = WITHOUT.format(words=[str(EXAMPLE), str(speech_bundle), str(recording), str(language_bundle)])
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    recogniser = Recognizer(load_acoustic_model(runs("compact")), load_converter(runs("transformer")))
    (expected,) = recogniser.recognise([("recording", recording)])
    assert expected.pinyin
    assert ended.stdout.splitlines() == [" ".join(expected.pinyin), expected.hanzi]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give two or three paths"),
        (["{speech}"], "give two or three paths"),
        (["{tmp}/none", "{recording}"], "not a bundle: there is no such folder"),
        (["{tmp}", "{recording}"], "not a bundle: the folder has no bundle.json"),
        (["{tmp}/text.wav", "{recording}"], "not a bundle: it is a file"),
        (["{speech}", "{tmp}/none.wav"], "no such audio file"),
        (["{speech}", "{tmp}/text.wav"], "this is text, not audio"),
        (["{language}", "{recording}"], "a bundle of a language model, not of a speech model"),
        (["{speech}", "{recording}", "{speech}"], "a bundle of a speech model, not of a language model"),
        (["{damaged}", "{recording}"], f"{ONNX.path} doesn't belong to this bundle"),
        (["{lacking}", "{recording}"], f"the bundle lacks {ONNX.path}"),
    ],
)
def test_wrong_arguments_of_the_example_are_named(
    words, message, speech_bundle, language_bundle, tiny_manifest, tmp_path, monkeypatch, capsys
):
    (tmp_path / "text.wav").write_text("no sound")
    for name in ("damaged", "lacking"):
        shutil.copytree(speech_bundle, tmp_path / name)
    (tmp_path / "damaged" / ONNX.path).write_bytes(b"no model")
    (tmp_path / "lacking" / ONNX.path).unlink()
    paths = {"speech": speech_bundle, "language": language_bundle, "tmp": tmp_path}
    paths |= {name: tmp_path / name for name in ("damaged", "lacking")}
    paths["recording"] = read_manifest(tiny_manifest)[1].audio
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *(word.format(**paths) for word in words)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"error: {message}") and lines[-1].startswith("hint: ")
