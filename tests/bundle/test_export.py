"""Tests of bundles of tiny models: checks of every format, refused parts, the command line."""

import json
import re
import shutil
import subprocess
import sys
import wave
from dataclasses import asdict, replace
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers

from bundle.check import measuring as verification
from bundle.check.measuring import Outcome, verify_bundle
from bundle.export import artefact_writer, build
from bundle.export.artefact_writer import ArtefactWriter
from bundle.export.build import export_bundle
from bundle.export.keyword_source import keyword_source
from bundle.export.quantisation import layers_by_noise
from bundle.export.source import Clips, ExportSource
from bundle.folder import open_bundle
from bundle.runtimes.artefacts import open_artefact
from bundle.variants import Format, Precision, Variant, offered
from model_keyword.registry import MODELS, build_keyword_model
from streaming.conversion.modes import Mode
from tests.support.scripts import ROOT, load_script
from tests.support.tiny_words import write_keyword_run, write_tiny_words
from utils.errors import BundleError, ConfigError, RunError
from utils.features.keyword import KeywordFeatureConfig, features_hash
from utils.files import read_arrays, write_json
from utils.run_folder.bundle_files import write_metadata
from utils.run_folder.checksum_files import file_hash

FEATURES = KeywordFeatureConfig(mel_bins=12, coefficients=6)
LABELS = ("_silence_", "high", "low", "middle")
CLIPS = 6
MADE = (
    Variant(Format.SAVED_MODEL, Mode.STREAM_INTERNAL_STATE_INFERENCE, Precision.FLOAT),
    *(Variant(Format.LITERT, state, Precision.FLOAT) for state in Mode),
    Variant(Format.LITERT, Mode.STREAM_EXTERNAL_STATE_INFERENCE, Precision.INT8),
    Variant(Format.ONNX, Mode.STREAM_EXTERNAL_STATE_INFERENCE, Precision.FLOAT),
    Variant(Format.ONNX, Mode.NON_STREAM_INFERENCE, Precision.INT8),
)
PLAIN, INTERNAL, EXTERNAL, INT8 = MADE[1:5]


def residual(frames: int = 12, values: int = 6) -> keras.Model:
    """Causal and dilated convolutions, a sum of branches, a stride; its memory is longer than a clip."""
    keras.utils.set_random_seed(4)
    x = inputs = keras.Input((frames, values), name="features")
    x = layers.Conv1D(8, 3, padding="causal", activation="relu", name="conv_1")(x)
    y = layers.Conv1D(8, 3, dilation_rate=2, padding="causal", name="conv_2")(x)
    x = layers.Add(name="add")([x, layers.BatchNormalization(name="norm")(y)])
    x = layers.ZeroPadding1D((1, 0), name="pad")(x)
    x = layers.Conv1D(6, 3, strides=2, name="conv_3")(x)
    x = layers.Flatten(name="flatten")(x)
    return keras.Model(inputs, layers.Dense(len(LABELS), name="logits")(x), name="residual")


def source_of(model: keras.Model, seed: int = 0, **changes) -> ExportSource:
    rng = np.random.default_rng(seed)
    shape = model.inputs[0].shape[1:]

    def clips(count: int) -> Clips:
        inputs = rng.normal(size=(count, *shape)).astype(np.float32)
        # The references are the model's own outputs, so that its accuracy is 1.
        return Clips(inputs, keras.ops.convert_to_numpy(model(inputs)).argmax(axis=1).astype(np.int32))

    values = {
        "kind": "keyword", "model": model, "features": asdict(FEATURES),
        "features_hash": features_hash(FEATURES), "labels": LABELS, "decoding": {"threshold": 0.5},
        "config_hash": "0", "frame_seconds": 0.02,
        "calibration": clips(20), "tests": clips(30), "golden": clips(CLIPS),
    }  # fmt: skip
    return ExportSource(**{**values, **changes})


@pytest.fixture(scope="module")
def variants(nightly) -> tuple[Variant, ...]:
    """What is exported: without --nightly LiteRT of all modes, int8 and ONNX."""
    return MADE if nightly else MADE[1:-1]


@pytest.fixture(scope="module")
def exported(tmp_path_factory, variants) -> Path:
    folder = tmp_path_factory.mktemp("export") / "bundle"
    made = export_bundle(source_of(residual()), variants, folder)
    assert {artefact.variant.path: artefact.problems for artefact in made} == {
        variant.path: [] for variant in variants
    }
    return folder


@pytest.fixture
def copy(exported, tmp_path) -> Path:
    """A copy of the bundle, to be damaged."""
    return shutil.copytree(exported, tmp_path / "copy")


# --- files of an export ---


def test_every_artefact_has_its_accuracy_file_and_its_row(exported, variants):
    table = (exported / "export.md").read_text()
    assert "- the source model's accuracy on 30 test clips: " in table
    measured = json.loads((exported / "export.json").read_text())["artefacts"]
    for variant in variants:
        found = measured[variant.path]
        modes = ["reset1", "reset0"] if variant.is_streaming else ["non_stream"]
        lines = (exported / f"{variant.path}.accuracy.txt").read_text().splitlines()
        assert [line.split()[0] for line in lines] == modes and all("(N = 30)" in line for line in lines)
        assert re.search(rf"^\| {variant} \| yes \|", table, re.MULTILINE)
        assert found["latency_us"] > 0 and found["bytes"] > 1000 and found["operations"] > 3
        assert found["tensorflow_loaded"] == (variant.runtime == "tensorflow")


def test_the_golden_clips_detect_a_missing_reset(exported):
    """Otherwise a missing reset would not be noticed."""
    golden = read_arrays(exported / "golden" / "clips.npz")
    assert np.abs(golden["running"][1:] - golden["reset"][1:]).max() > 0.01
    assert np.allclose(golden["reset"][:, -1], golden["non_stream"], atol=1e-5)


def test_each_mode_has_a_summary_and_a_drawing_of_its_layers(exported):
    for state in Mode:
        for name in ("model_summary.txt", "graph.svg"):
            text = (exported / "models" / state / name).read_text()
            assert "conv_3" in text and ("History" in text) == (state is not Mode.NON_STREAM_INFERENCE)


def test_fewer_clips_are_from_all_over_the_split():
    """A split is sorted by id, so its first clips may be of one word and one speaker."""
    clips = Clips(np.arange(10.0, dtype=np.float32)[:, None], np.arange(10))
    assert clips.spread(4).references.tolist() == [0, 3, 6, 9]
    assert clips.spread(20).inputs.ravel().tolist() == list(range(10))


def wide_range_model(frames: int = 12, values: int = 6) -> keras.Model:
    """Two convolutions; between them one channel of eight has 500 times the range of the others."""
    keras.utils.set_random_seed(6)
    x = inputs = keras.Input((frames, values), name="features")
    x = layers.Conv1D(8, 3, activation="relu", name="wide")(x)
    x = layers.Conv1D(8, 3, activation="relu", name="narrow")(x)
    x = layers.Flatten(name="flatten")(x)
    model = keras.Model(inputs, layers.Dense(len(LABELS), name="logits")(x), name="wide_range")
    (made, bias), (taken, other) = (model.get_layer(name).get_weights() for name in ("wide", "narrow"))
    made[..., 0] *= 500
    taken[:, 0] /= 500
    model.get_layer("wide").set_weights([made, bias])
    model.get_layer("narrow").set_weights([taken, other])
    return model


WIDE_RANGE = (INT8, Variant(Format.LITERT, Mode.NON_STREAM_INFERENCE, Precision.INT8), MADE[-1])


@pytest.mark.parametrize(
    ("kind", "variants"),
    [
        ("keyword", (INT8,)),
        pytest.param("speech", (INT8,), marks=pytest.mark.nightly),
        *(pytest.param(kind, WIDE_RANGE, marks=pytest.mark.nightly) for kind in ("keyword", "speech")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} variants",
)
def test_int8_that_loses_accuracy_keeps_layers_in_float_and_names_them(tmp_path, kind, variants):
    source = source_of(wide_range_model(), kind=kind)
    assert layers_by_noise(source.model, source.calibration.inputs)[0] == ("wide", "narrow")
    for made in export_bundle(source, variants, tmp_path / "bundle"):
        assert not made.problems and made.measured["float_layers"] == ["wide", "narrow"]
    report = (tmp_path / "bundle" / "export.md").read_text(encoding="utf-8")
    assert "- litert stream_external int8: wide, narrow\n" in report


def test_the_test_clips_evaluate_int8_and_choose_no_layers(tmp_path):
    """Development clips on which 8 bits lose nothing, and test clips on which they are all wrong."""
    source, variant = (
        source_of(wide_range_model()),
        Variant(Format.LITERT, Mode.NON_STREAM_INFERENCE, Precision.INT8),
    )
    with ArtefactWriter(source) as writer:
        writer.write(variant, tmp_path / variant.path)
    answers = open_artefact(tmp_path / variant.path).run(source.tests.inputs)
    right = answers.argmax(axis=1) == source.tests.references
    good, bad = (Clips(source.tests.inputs[rows], source.tests.references[rows]) for rows in (right, ~right))
    assert len(good) and len(bad)
    (made,) = export_bundle(replace(source, development=good, tests=bad), [variant], tmp_path / "bundle")
    assert made.measured["float_layers"] == [] and "100.0 points below" in made.problems[0]
    (made,) = export_bundle(replace(source, development=bad, tests=good), [variant], tmp_path / "other")
    assert made.measured["float_layers"] == ["wide", "narrow"] and not made.problems


def test_int8_that_changes_labels_until_all_layers_are_in_float_is_not_made(tmp_path, monkeypatch):
    """A file of that name with all layers in float would be a float file, and pass every check."""
    quantised = Variant(Format.LITERT, Mode.NON_STREAM_INFERENCE, Precision.INT8)
    measure, write, attempts = build.measure, ArtefactWriter.write, []

    def lose(folder, variant, tests):
        measured = measure(folder, variant, tests)
        if tests and tests.name == build.DEVELOPMENT:
            measured["accuracy"] = {"non_stream": 0.8}
        return measured

    def note(self, variant, path, float_layers=()):
        if variant == quantised:
            attempts.append(set(float_layers))
        write(self, variant, path, float_layers)

    monkeypatch.setattr(build, "measure", lose)
    monkeypatch.setattr(ArtefactWriter, "write", note)
    source = source_of(wide_range_model())
    made, refused = export_bundle(source, [PLAIN, quantised], tmp_path / "bundle")
    assert attempts == [set(), {"wide", "narrow"}]
    assert not made.problems and not refused.measured
    (problem,) = refused.problems
    assert problem == (
        "not written: int8 changes too many results: with 2 of 3 layers in float, 20.0 % of the labels still "
        "differ from the source model's, allowed 5.0 % (use precision dynamic or float16)"
    )
    assert not (tmp_path / "bundle" / quantised.path).exists()
    assert list(open_bundle(tmp_path / "bundle").artefacts) == [PLAIN.path]
    with pytest.raises(BundleError, match=r"int8 changes too many results.*use precision dynamic"):
        export_bundle(source, [quantised], tmp_path / "alone")
    assert not (tmp_path / "alone").exists()


# --- parts of another bundle ---


def change_facts(bundle: Path, **changes) -> None:
    facts = json.loads((bundle / "bundle.json").read_text())
    write_metadata(bundle, {**facts, **changes})


def rehash(bundle: Path, name: str) -> None:
    files = json.loads((bundle / "bundle.json").read_text())["files"]
    change_facts(bundle, files={**files, name: file_hash(bundle / name)})


def test_a_changed_file_is_named(copy):
    content = bytearray((copy / INT8.path).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / INT8.path).write_bytes(content)
    with pytest.raises(BundleError, match=rf"{INT8.path} doesn't belong"):
        open_bundle(copy).open(INT8.path)
    open_bundle(copy).open(INTERNAL.path)  # the others are unchanged
    with pytest.raises(BundleError, match=INT8.path):
        open_bundle(copy).check()


def test_changed_features_are_named(copy):
    assert open_bundle(copy).features == FEATURES
    change_facts(copy, features=asdict(replace(FEATURES, coefficients=5)))
    with pytest.raises(BundleError, match=r"features in bundle\.json have changed"):
        open_bundle(copy)


def test_a_missing_and_an_added_part_are_named(copy):
    shutil.copy(copy / INT8.path, copy / "litert" / "other.tflite")
    with pytest.raises(BundleError, match=r"no artefact 'litert/other\.tflite'.*available"):
        open_bundle(copy).open("litert/other.tflite")
    (copy / "litert" / "other.tflite").unlink()
    (copy / "golden" / "clips.npz").unlink()
    with pytest.raises(BundleError, match=r"lacks golden/clips\.npz"):
        open_bundle(copy).check()


@pytest.mark.parametrize("content", ["", "[]", '{"format": 1}', '{"format": 99}'])
def test_a_damaged_bundle_file_is_named(tmp_path, content):
    with pytest.raises(BundleError, match=r"not a bundle.*bundle\.json"):
        open_bundle(tmp_path)
    (tmp_path / "bundle.json").write_text(content)
    with pytest.raises(BundleError, match=r"bundle\.json is"):
        open_bundle(tmp_path)


# --- verification ---


def keep_only(bundle: Path, names: list[str]) -> None:
    artefacts = json.loads((bundle / "bundle.json").read_text())["artefacts"]
    change_facts(bundle, artefacts={name: artefacts[name] for name in names})


def test_the_checks_pass_again_and_a_missing_runtime_is_reported(copy, monkeypatch, capsys):
    keep_only(copy, [INT8.path, "onnx/stream_external_float.onnx"])
    there = verification.runtime_version
    monkeypatch.setattr(
        verification, "runtime_version", lambda variant: None if variant.format == "onnx" else there(variant)
    )
    command = load_script("export.py")
    shutil.rmtree(copy / "saved_model", ignore_errors=True)
    assert [check.outcome for check in verify_bundle_without_check(copy, monkeypatch)] == [
        Outcome.PASSED,
        Outcome.NOT_RUN,
    ]
    assert command.main(["verify", str(copy)]) == command.INCOMPLETE
    assert (
        "NOT RUN  onnx/stream_external_float.onnx: onnxruntime isn't installed here"
        in capsys.readouterr().out
    )


def verify_bundle_without_check(bundle: Path, monkeypatch) -> list:
    monkeypatch.setattr("bundle.folder.Bundle.check", lambda self: None)
    return list(verify_bundle(bundle))


def test_the_checks_fail_where_outputs_differ_from_the_source_model(copy):
    keep_only(copy, [INTERNAL.path])
    golden = dict(read_arrays(copy / "golden" / "clips.npz"))
    golden["running"] = golden["running"] + 0.01
    np.savez(copy / "golden" / "clips.npz", **golden)
    rehash(copy, "golden/clips.npz")
    (checked,) = verify_bundle(copy)
    assert checked.outcome is Outcome.FAILED
    assert "differs from the source model by 0.01 (running)" in checked.detail


# --- conversions that are not supported ---


def test_recurrent_models_are_quantised_without_loops_and_loops_are_refused(tmp_path, monkeypatch):
    keras.utils.set_random_seed(5)
    x = inputs = keras.Input((4, 6), name="features")
    x = layers.GRU(6, return_sequences=True, name="gru")(x)
    model = keras.Model(
        inputs, layers.Dense(4, name="logits")(layers.Flatten(name="flatten")(x)), name="recurrent"
    )
    variant = Variant(Format.LITERT, Mode.NON_STREAM_INFERENCE, Precision.INT8)
    with ArtefactWriter(source_of(model)) as writer:
        writer.write(variant, tmp_path / "model.tflite")
        clips = writer.source.golden.inputs
        made, expected = (
            open_artefact(tmp_path / "model.tflite").run(clips),
            writer.outputs(clips, "non_stream"),
        )
    assert np.abs(made - expected).max() < 0.1 * np.abs(expected).max()
    monkeypatch.setattr("bundle.export.artefact_writer.MAX_UNROLLED", 3)
    with (
        ArtefactWriter(source_of(model)) as writer,
        pytest.raises(BundleError, match=r"can't quantise a loop.*dynamic"),
    ):
        writer.write(variant, tmp_path / "other.tflite")


@keras.saving.register_keras_serializable(package="test_export")
class ErrorFunction(keras.layers.Layer):
    """An operation that LiteRT doesn't have."""

    frame_wise = True

    def call(self, x):
        return keras.ops.erf(x)


def test_operations_that_need_tensorflow_on_the_device_are_named(tmp_path):
    inputs = keras.Input((4, 6), name="features")
    x = layers.Flatten(name="flatten")(ErrorFunction(name="strange")(inputs))
    model = keras.Model(inputs, layers.Dense(4, name="logits")(x), name="flexible")
    variant = Variant(Format.LITERT, Mode.NON_STREAM_INFERENCE, Precision.FLOAT)
    with (
        ArtefactWriter(source_of(model)) as writer,
        pytest.raises(BundleError, match=r"no operation for Erf.*--allow-flex"),
    ):
        writer.write(variant, tmp_path / "model.tflite")
    (made,) = export_bundle(source_of(model), [variant], tmp_path / "bundle", allow_flex=True)
    assert "not checked: it needs TensorFlow's operations" in made.problems[0]
    assert (tmp_path / "bundle" / variant.path).is_file()
    (checked,) = verify_bundle(tmp_path / "bundle")
    assert (checked.outcome, checked.detail) == (Outcome.NOT_RUN, "it needs TensorFlow's operations")


@keras.saving.register_keras_serializable(package="test_export")
class WithoutMean(keras.layers.Layer):
    """Subtracts the mean of the clip, and claims to compute each frame by itself."""

    frame_wise = True

    def call(self, x):
        return x - keras.ops.mean(x, axis=1, keepdims=True)


def test_a_stream_that_is_not_the_model_is_not_exported(tmp_path):
    """Every artefact would equal the wrong stream."""
    inputs = keras.Input((12, 6), name="features")
    x = layers.Flatten(name="flatten")(layers.Dense(3, name="frames")(WithoutMean(name="strange")(inputs)))
    model = keras.Model(inputs, layers.Dense(4, name="logits")(x), name="wrong")
    with pytest.raises(BundleError, match=r"the stream does not compute what the model computes.*'wrong'"):
        export_bundle(source_of(model), [EXTERNAL], tmp_path / "export")
    assert not list(tmp_path.iterdir())
    with ArtefactWriter(source_of(model)) as writer:
        assert set(writer.golden([Mode.NON_STREAM_INFERENCE])) == {"inputs", "references", "non_stream"}


def test_a_model_that_cannot_stream_is_refused_with_its_layers(tmp_path):
    inputs = keras.Input((8, 6), name="features")
    x = layers.Bidirectional(layers.GRU(4), name="both_ways")(inputs)
    model = keras.Model(inputs, layers.Dense(4, name="logits")(x), name="bidirectional")
    with pytest.raises(ConfigError, match="both_ways"):
        export_bundle(source_of(model), [EXTERNAL], tmp_path / "export")
    assert not list(tmp_path.iterdir())
    assert "both_ways" in build.can_stream(source_of(model))[0]


# --- the folder ---


def test_an_existing_folder_is_replaced_only_when_requested(tmp_path, monkeypatch):
    target = tmp_path / "export"
    target.mkdir()
    (target / "mine").write_text("precious")
    for force in (False, True):
        with pytest.raises(BundleError, match="is no bundle that could be replaced"):
            export_bundle(source_of(residual()), [PLAIN], target, force=force)
    (target / "bundle.json").write_text("{}")
    with pytest.raises(BundleError, match=r"exists already.*--force"):
        export_bundle(source_of(residual()), [PLAIN], target)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(artefact_writer.ArtefactWriter, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        export_bundle(source_of(residual()), [PLAIN], target, force=True)
    assert (target / "mine").read_text() == "precious" and list(tmp_path.iterdir()) == [target]


def test_a_run_is_never_replaced_by_a_bundle(tmp_path):
    (tmp_path / "run").mkdir()
    config = tmp_path / "run" / "config.yaml"
    config.write_text("task: keyword\n")
    with pytest.raises(BundleError, match="the folder is a run"):
        export_bundle(source_of(residual()), [PLAIN], tmp_path / "run", force=True)
    assert config.is_file()


def test_a_bundle_that_is_taken_for_a_run_is_named(tmp_path):
    (tmp_path / "run" / "export").mkdir(parents=True)
    bundle = tmp_path / "run" / "export"
    write_json(bundle / "bundle.json", {})
    with pytest.raises(RunError, match="a bundle of exported models, not a run, "):
        load_script("inspect_model.py").main(["weights", str(bundle)])
    (tmp_path / "run" / "config.yaml").write_text("task: keyword\n")
    with pytest.raises(RunError, match=f"exported from: {re.escape(str(tmp_path / 'run'))}; "):
        load_script("inspect_model.py").main(["weights", str(bundle)])


def failing(monkeypatch: pytest.MonkeyPatch, *variants: Variant) -> None:
    """Lets the conversion to these variants fail after a part of the artefact is written."""
    write = artefact_writer.ArtefactWriter.write

    def fail(self, variant, path, float_layers=()):
        if variant not in variants:
            return write(self, variant, path, float_layers)
        path.mkdir(parents=True)
        (path / "saved_model.pb").write_bytes(b"a part")
        raise BundleError("the converter fails: a reason", where=str(variant))

    monkeypatch.setattr(artefact_writer.ArtefactWriter, "write", fail)


def test_an_artefact_that_cannot_be_made_is_reported_beside_the_others(tmp_path, monkeypatch):
    failing(monkeypatch, MADE[0])
    made = export_bundle(source_of(residual()), [MADE[0], PLAIN], tmp_path / "export")
    assert [artefact.problems for artefact in made] == [["not written: the converter fails: a reason"], []]
    assert "**no**: not written" in (tmp_path / "export" / "export.md").read_text()
    assert not (tmp_path / "export" / MADE[0].path).exists()
    assert list(open_bundle(tmp_path / "export").artefacts) == [PLAIN.path]


# --- the command ---


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A keyword run of raw features, with its recordings."""
    folder = tmp_path_factory.mktemp("run")
    words = write_tiny_words(folder / "words")
    return write_keyword_run(folder / "run", words)


def test_the_clips_of_a_source_are_those_of_the_run(run, capsys):
    source = keyword_source(run)
    assert source.weights_hash == file_hash(run / "best.weights.h5")
    assert source.labels == ("_silence_", "high", "low") and not source.raw
    assert len(source.golden) <= 24 and len(source.tests) >= 6 and len(source.calibration) >= 12
    assert source.tests.inputs.shape[1:] == source.model.inputs[0].shape[1:]
    assert set(source.tests.references.tolist()) == {0, 1, 2}
    assert len(keyword_source(run, max_tests=5).tests) == 5
    # A word in a clip of 200 ms is detected once, until it has left the window and the average.
    assert source.decoding["refractory_ms"] == 200 + source.decoding["smoothing_ms"]
    assert keyword_source(run, smoothing_ms=50).decoding["refractory_ms"] == 250
    assert not capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"'model\.name=cnn' can't be changed"):
        keyword_source(run, overrides=["model.name=cnn"])
    with pytest.raises(ConfigError, match=r"another data\.clip_ms \(200 in training, 300 asked for\)"):
        keyword_source(run, overrides=["data.clip_ms=300"])
    alone = keyword_source(run, overrides=["data.folder=gone"])
    assert len(alone.tests) == 0 and len(alone.golden) == 24
    assert "no accuracy and no int8" in capsys.readouterr().err


def test_the_command_exports_and_verifies(run, tmp_path, capsys):
    command, output = load_script("export.py"), tmp_path / "bundle"
    arguments = [str(run), "--mode", "stream_external", "--precision", "float", "--output", str(output)]
    assert command.main(arguments) == 0
    printed = capsys.readouterr()
    assert "1 of 1 artefacts passed" in printed.out
    # Standard error is not a terminal here: a line for each artefact replaces the progress bar.
    assert command.main(["verify", str(output)]) == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"passed   litert/stream_external_float\.tflite: logits within \S+ of the source model's "
        r"\(\w+; allowed \S+\), \d+ µs per call",
        printed,
    )
    assert open_bundle(output).decoding["threshold"] > 0


def test_another_backend_than_tensorflow_is_refused_with_what_to_set(run, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ConfigError, match=r"TensorFlow backend, not 'jax'.*KERAS_BACKEND=tensorflow"):
        load_script("export.py").main([str(run)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "onnx", "--mode", "stream_internal"], r"ONNX has no variables.*onnx stream_external"),
        (["--format", "saved_model", "--precision", "int8"], r"float32.*litert or onnx"),
    ],
)
def test_the_command_refuses_with_a_reason_and_an_alternative(run, words, message):
    with pytest.raises(ConfigError, match=message):
        load_script("export.py").main([str(run), *words])


def test_an_impossible_stream_prevents_no_other_artefact(run, monkeypatch, tmp_path, capsys):
    exported = []
    monkeypatch.setattr(build, "can_stream", lambda _: ["'pad' needs 2 future frames"])
    monkeypatch.setattr(
        build, "export_bundle", lambda _, variants, *__, **___: exported.extend(variants) or []
    )
    assert load_script("export.py").main([str(run), "--output", str(tmp_path / "some")]) == 0
    assert exported and not any(variant.is_streaming for variant in exported)
    printed = capsys.readouterr().err
    assert printed.startswith(
        "note: not available for this model: litert stream_external float, litert stream_"
    )
    assert "'pad' needs 2 future frames" in printed


def test_all_artefacts_of_a_model_of_samples_are_those_without_int8(run, monkeypatch, tmp_path, capsys):
    requested = []
    monkeypatch.setattr(
        build, "export_bundle", lambda _, variants, *__, **___: requested.extend(variants) or []
    )
    monkeypatch.setattr(ExportSource, "raw", True)
    assert load_script("export.py").main([str(run), "--all", "--output", str(tmp_path / "all")]) == 0
    assert requested == [variant for variant in offered() if variant.precision is not Precision.INT8]
    (note,) = capsys.readouterr().err.splitlines()
    assert note.startswith("note: not available for this model: litert non_stream int8, ")
    assert "onnx stream_external int8: the input is samples" in note and "use this precision from" in note


# --- without TensorFlow ---

WITHOUT = """
import runpy, sys
for name in ("tensorflow", "keras", "scipy", "soundfile", "bundle", "utils"):
    sys.modules[name] = None
sys.argv = ["stream_keyword.py", {bundle!r}, {recording!r}]
runpy.run_path({script!r}, run_name="__main__")
"""


def test_the_example_detects_keywords_with_litert_and_numpy_only(tmp_path):
    """The model's logits follow the loudness: it must detect the loud second and nothing else."""
    features = KeywordFeatureConfig(kind="raw", window_ms=20, stride_ms=20, mel_bins=12, coefficients=0)
    config = MODELS["dnn"].config(
        frame_units=(4,), frame_activations=("linear",), units=(4,), unit_activations=("linear",)
    )
    model = build_keyword_model(config, features, 3200, 2)
    for layer in model.layers:
        if isinstance(layer, layers.Dense):  # sums of log energies, from layer to layer
            kernel, bias = (np.zeros(weight.shape) for weight in layer.get_weights())
            kernel[:, -1 if kernel.shape[1] == 2 else slice(None)] = 1 / kernel.shape[0]
            if kernel.shape[1] == 2:
                bias[1] = 3.0
            layer.set_weights([kernel, bias])
    detection = {"smoothing_ms": 60.0, "threshold": 0.8, "refractory_ms": 3000.0}
    source = source_of(
        model, labels=("_silence_", "loud"), features=asdict(features), features_hash=features_hash(features),
        decoding=detection, tests=Clips(np.zeros((0, 3200), np.float32), np.zeros(0, np.int32)),
    )  # fmt: skip
    export_bundle(source, [EXTERNAL], tmp_path / "bundle")
    noise = np.random.default_rng(0).normal(size=48000) * np.where(np.arange(48000) // 16000 == 1, 3000, 0)
    with wave.open(str(tmp_path / "loud.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(noise.astype("<i2").tobytes())
    code = WITHOUT.format(
        bundle=str(tmp_path / "bundle"),
        recording=str(tmp_path / "loud.wav"),
        script=str(ROOT / "examples" / "stream_keyword.py"),
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    assert 1.0 < float(line.split()[0]) < 1.3 and line.split()[2] == "loud"
