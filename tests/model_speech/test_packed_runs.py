"""Tests of packed speech runs: NumPy against Keras, and files that do not fit are named."""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from model_language.search.second_pass import RESCORING
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.compact_numpy import NumpyCompact, load_numpy_compact
from model_speech.int8_weights import assign_weights, read_int8_weights, save_int8_weights, weights_by_name
from model_speech.models.compact import CompactConfig, build_compact
from model_speech.pack import main
from recognition import loading
from recognition.loading import load_acoustic_logits, load_members
from tests.support.scripts import load_script
from utils.backend.weights import save_weights
from utils.config import save_yaml
from utils.errors import ConfigError, RunError
from utils.features.speech import FeatureConfig, feature_bins
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary, acoustic_vocabulary

LENGTHS = (1, 7, 8, 9, 63, 64, 131)


def keras_model(bins: int, **changes) -> AcousticModel:
    """A model with all weights random: a new model has trivial statistics and offsets."""
    config = CompactConfig(**{"front_filters": (4, 6), "width": 24, "blocks": 2, "gate": 5, **changes})
    features, vocabulary = FeatureConfig(bins=bins), acoustic_vocabulary({"ma1", "ma2", "hao3"})
    model = build_compact(config, feature_bins(features), len(vocabulary))
    rng = np.random.default_rng(3)
    for variable in model.variables:
        if "seed_generator" not in variable.path:
            values = rng.normal(0.0, 0.3, variable.shape)
            variable.assign(np.abs(values) + 0.5 if "variance" in variable.path else values)
    return AcousticModel(model, features, vocabulary, config.time_stride)


def clips(bins: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.normal(size=(length, bins)).astype(np.float32) for length in LENGTHS]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    """A finished run of a model large enough that its matrices are packed."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "trained")
    acoustic = keras_model(20, width=80)
    folder.path.mkdir()
    model = {"name": "compact", "front_filters": [4, 6], "width": 80, "blocks": 2, "gate": 5}
    paths = {
        "data": {"train": ["/somewhere/train.tsv"]},
        "environment": {"folder": "/somewhere"},
        "augment": {"copies": 3, "noise_folder": "/somewhere/noise", "room_folder": "/somewhere/rooms"},
        "distillation": {"teacher": "/somewhere/teacher"},
        "transfer": {"source_run": "/somewhere/large"},
        "imported": {"weights": "/somewhere/model.h5"},
    }
    save_yaml(folder.config_file, {"task": "speech", "features": {"bins": 20}, "model": model, **paths})
    acoustic.vocabulary.save(folder.vocabulary("acoustic.txt"))
    save_weights(acoustic.model, folder.best_weights)
    return folder


def test_a_run_is_not_packed_into_itself(run):
    before = run.config_file.read_text(encoding="utf-8")
    with pytest.raises(RunError, match="can't be packed into itself"):
        main([str(run.path), str(run.path / "..") + f"/{run.path.name}"])
    assert run.config_file.read_text(encoding="utf-8") == before


def test_the_weights_of_a_packed_run_are_those_that_it_computes_with(run, tmp_path, capsys):
    packed, inspect = tmp_path / "packed", load_script("inspect_model.py").main
    main([str(run.path), str(packed)])
    capsys.readouterr()
    inspect(["weights", str(packed), "--json"])
    shown = json.loads(capsys.readouterr().out)
    weights = read_int8_weights(packed / "network.npz")
    inspected = {
        f"{layer['name']}/{weight['name']}": weight
        for layer in shown["layers"]
        for weight in layer["weights"]
    }
    assert {name: weight["shape"] for name, weight in inspected.items()} == {
        name: list(array.shape) for name, array in weights.items()
    }
    assert inspected["logits/kernel"]["max"] == pytest.approx(float(weights["logits/kernel"].max()))
    assert shown["output"]["classes"] == len(Vocabulary.load(run.vocabulary("acoustic.txt")))
    assert shown["vocabulary_problem"] is None
    # Rounding changes matrices by half a step of their scales at most, and no other array.
    assert inspect(["difference", str(run.path), str(packed), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["arrays"]
    assert {each["state"] for each in found} == {"equal", "different"}
    assert max(each["absolute"] for each in found) < 0.01
    inspect(["significance", str(packed), "--json"])
    kernels = {each["layer"]: each for each in json.loads(capsys.readouterr().out)["kernels"]}
    assert len(kernels["block_1_time"]["significance"]) == 80, "a depthwise convolution of 80 channels"


@pytest.mark.parametrize(
    ("bins", "changes"),
    [
        (20, {}),
        (19, {}),
        (20, {"gate": 0}),
        (20, {"kernel": 4}),
        (20, {"front_filters": (4,)}),
        (20, {"front_filters": (4, 6, 8), "front_blocks": (0, 1, 2), "frame_stack": 1}),
        (19, {"front_blocks": (1, 0), "frame_stack": 3}),
        (24, {"front_blocks": (0, 1), "stacked_blocks": 2}),
        (24, {"frame_stack": 3, "stacked_blocks": 1}),
        (16, {"blocks": 0}),
    ],
)
def test_numpy_gives_the_logits_of_keras(bins, changes):
    model = keras_model(bins, **changes)
    numpy = NumpyCompact(weights_by_name(model.model), model.features, model.vocabulary)
    (expected, frames), (logits, lengths) = model.logits(clips(bins)), numpy.logits(clips(bins))
    np.testing.assert_array_equal(lengths, frames)
    assert numpy.frame_seconds == model.frame_seconds
    for row, ours, length in zip(expected, logits, lengths, strict=True):
        np.testing.assert_allclose(ours[:length], row[:length], atol=2e-4)


def test_a_matrix_takes_a_byte_per_weight_and_half_a_step_of_error_or_two_bytes(tmp_path):
    rng = np.random.default_rng(1)
    weights = {
        "a/kernel": rng.normal(size=(3, 3, 64, 64)),
        "b/kernel": rng.normal(size=(7, 32)),
        "b/bias": np.ones(9),
        "front/kernel": rng.normal(size=(64, 100)),
    }
    weights["a/kernel"][..., 5] = 0.0  # a channel without weights has no scale
    save_int8_weights(tmp_path / "network.npz", weights, half_precision="front")
    read = read_int8_weights(tmp_path / "network.npz")
    step = np.abs(weights["a/kernel"]).max(axis=(0, 1, 2)) / 127
    assert (np.abs(read["a/kernel"] - weights["a/kernel"]) <= step * 0.5001).all()
    for name in ("b/kernel", "b/bias"):
        np.testing.assert_array_equal(read[name], weights[name].astype(np.float32))
    np.testing.assert_allclose(read["front/kernel"], weights["front/kernel"], rtol=2**-11)
    assert {array.dtype for array in read.values()} == {np.dtype("float32")}
    size = weights["a/kernel"].size + 2 * weights["front/kernel"].size
    assert (tmp_path / "network.npz").stat().st_size < 1.15 * size


def test_a_packed_run_is_loaded_by_keras_and_numpy(run, tmp_path, capsys):
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "README.md").write_text("card")
    assert main([str(run.path), str(packed)]) == 0
    assert "MB" in capsys.readouterr().out and (packed / "README.md").read_text() == "card"
    config = (packed / "config.yaml").read_text()
    assert "somewhere" not in config and "copies: 3" in config
    assert not (packed / "best.weights.h5").exists()
    keras, numpy = load_acoustic_model(packed), load_acoustic_logits(packed)
    assert isinstance(numpy, NumpyCompact) and isinstance(load_acoustic_logits(run.path), AcousticModel)
    ours, lengths = numpy.logits(clips(20))
    expected, original = keras.logits(clips(20))[0], load_acoustic_model(run.path).logits(clips(20))[0]
    for index, length in enumerate(lengths):
        np.testing.assert_allclose(ours[index, :length], expected[index, :length], atol=1e-3)
        assert np.abs(ours[index, :length] - original[index, :length]).max() < 0.05 * np.abs(original).max()


def test_nothing_of_an_earlier_model_stays_in_the_folder(run, tmp_path):
    packed = tmp_path / "packed"
    shutil.copytree(run.path, packed)
    earlier = ("confidence.json", "phrase_thresholds.json", "metrics.json", "last.weights.h5")
    for name in (*earlier, "README.md"):
        (packed / name).write_text("of the earlier model")
    main([str(run.path), str(packed)])
    assert {path.name for path in packed.iterdir()} == {
        "README.md", "checksums", "config.yaml", "network.npz", "vocabulary"
    }  # fmt: skip
    assert load_acoustic_logits(packed).features == load_acoustic_model(run.path).features


def test_a_packed_run_may_have_another_time_between_frames(run, tmp_path, capsys):
    assert main([str(run.path), str(tmp_path / "packed"), "--hop-ms", "9"]) == 0
    packed, trained = load_acoustic_logits(tmp_path / "packed"), load_acoustic_model(run.path)
    assert packed.features == dataclasses.replace(trained.features, hop_ms=9)
    assert packed.frame_seconds == pytest.approx(0.9 * trained.frame_seconds)
    for impossible in ("-1", "0"):
        with pytest.raises(ConfigError, match="hop_ms must be above 0"):
            main([str(run.path), str(tmp_path / "impossible"), "--hop-ms", impossible])
        assert not (tmp_path / "impossible").exists()


def test_packed_runs_need_no_framework(run, tmp_path):
    main([str(run.path), str(tmp_path / "packed")])
    code = (
        "import json, sys; import numpy as np; from recognition.loading import load_acoustic_logits;"
        "model = load_acoustic_logits(__import__('pathlib').Path(sys.argv[1]));"
        "shape = model.logits([np.zeros((80, 20), np.float32)])[0].shape;"
        "print(json.dumps([shape, sorted({'keras', 'tensorflow', 'h5py'} & set(sys.modules))]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "packed")]
    result = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert json.loads(result.stdout) == [[1, 10, 2165], []]


def test_files_that_do_not_fit_are_named(run, tmp_path):
    packed = tmp_path / "packed"
    main([str(run.path), str(packed)])
    weights = read_int8_weights(packed / "network.npz")
    with pytest.raises(RunError, match=r"another model.*logits"):
        assign_weights(keras_model(20, width=80).model, {**weights, "logits/bias": np.ones(2)}, "x")
    other = dict(weights)
    other.pop("block_1_mix/kernel")
    save_int8_weights(packed / "network.npz", {**other, "block_1_mix": np.ones(1)})
    for load in (load_numpy_compact, load_acoustic_model):
        with pytest.raises(RunError, match="weights"):
            load(packed)
    (packed / "network.npz").write_bytes((packed / "network.npz").read_bytes()[:-9] + b"123456789")
    for load in (load_numpy_compact, load_acoustic_model):
        with pytest.raises(RunError, match="SHA-256"):
            load(packed)


def test_weights_of_a_training_that_diverged_are_refused(run, tmp_path):
    diverged, packed = (RunFolder(shutil.copytree(run.path, tmp_path / name)) for name in ("run", "packed"))
    packed.best_weights.unlink()
    save_int8_weights(packed.path / "network.npz", {"front/kernel": np.ones((1, 2)), "bias": [1.0, np.inf]})
    with h5py.File(diverged.best_weights, "r+") as file:
        file["layers/masked_batch_normalization/vars/0"][0] = np.nan
    checksums.accept(diverged.path)
    for load in (load_numpy_compact, load_acoustic_model):
        with pytest.raises(RunError, match=r"not finite: 1 of 2 arrays, e\.g\. bias") as refused:
            load(packed.path)
        assert str(refused.value.where) == str(packed.path / "network.npz")
    with pytest.raises(RunError, match=r"not finite: 1 of \d+ arrays, e\.g\. \w+/gamma") as refused:
        load_acoustic_model(diverged.path)
    assert str(refused.value.where) == str(diverged.best_weights)


def test_only_compact_is_packed(run, tmp_path):
    other = RunFolder(tmp_path / "other")
    other.path.mkdir()
    save_yaml(other.config_file, {"task": "speech", "features": {}, "model": {"name": "dfcnn"}})
    with pytest.raises(RunError, match="'dfcnn'"):
        main([str(other.path), str(tmp_path / "packed")])


def test_the_weights_of_the_search_come_with_the_model(run, tmp_path, monkeypatch):
    packed = tmp_path / "packed"
    weights = ["--language-weight", "0.25", "--joint-bonus", "1.5", "--rescoring-weight", "0.5"]
    assert main([str(run.path), str(packed), *weights]) == 0
    seen = []
    monkeypatch.setattr(loading, "load_joint_search", lambda *arguments: seen.append(arguments))
    monkeypatch.setattr(loading, "load_hanzi_model", lambda path: path.name)
    loading.load_joint_search_for(packed, "converter")
    loading.load_joint_search_for(packed, "converter", language=0.75)
    needs = []
    monkeypatch.setattr(loading, "needs_syllable_ngram", lambda converter: needs.pop())
    for needed in (True, False):
        needs.append(needed)
        loading.load_joint_search_for(packed, "converter", syllables="ngram")
    loading.load_joint_search_for(run.path, "converter")
    loading.load_joint_search_for(packed, "converter", rescoring=0.0)
    loading.load_joint_search_for(run.path, "converter", language_model=tmp_path / "mine")
    shipped = "hanzi_language_model"
    assert [arguments[2:] for arguments in seen] == [
        (0.25, 1.5, 0.5, shipped),
        (0.75, 1.5, 0.5, shipped),
        (None, None, None, None),  # another search, other weights
        (0.25, 1.5, 0.5, shipped),
        (None, None, None, None),
        (0.25, 1.5, 0.0, None),
        (None, None, RESCORING, "mine"),
    ]
    assert loading.load_language_model_for(packed) == shipped
    assert loading.load_language_model_for(run.path) is None


def test_members_of_an_ensemble_come_with_the_model(run, tmp_path):
    packed, other = tmp_path / "packed", tmp_path / "other"
    members = ["--member", "weight=0.25", "hop_ms=8", "--member", "weight=0.5", "run=../other"]
    for folder, options in ((other, []), (packed, members)):
        assert main([str(run.path), str(folder), *options]) == 0
    acoustic = load_acoustic_logits(packed)
    same, second = load_members(packed, acoustic)
    assert same.acoustic is acoustic and (same.weight, same.features.hop_ms) == (0.25, 8.0)
    assert second.acoustic is not acoustic and (second.weight, second.features) == (0.5, acoustic.features)
    assert load_members(other, acoustic) == load_members(run.path, acoustic) == []


def test_an_ensemble_that_does_not_fit_is_refused(run, tmp_path):
    packed, other = tmp_path / "packed", tmp_path / "other"
    assert main([str(run.path), str(other)]) == 0
    acoustic = load_acoustic_logits(other)
    for weight, setting in (("1.5", []), ("0.5", ["weigth=1"])):
        with pytest.raises(ConfigError, match=r"weight|weigth"):
            main([str(run.path), str(packed), "--member", f"weight={weight}", *setting])
    assert not packed.exists()
    first, second, *rest = acoustic.vocabulary.tokens
    Vocabulary((second, first, *rest)).save(RunFolder(other).vocabulary("acoustic.txt"))
    checksums.accept(other)
    refused = (
        ("run=../missing", "member of the ensemble .* is missing"),
        ("run=../other", "another vocabulary"),
    )
    for member, message in refused:
        main([str(run.path), str(packed), "--member", "weight=0.5", member])
        with pytest.raises(RunError, match=message):
            load_members(packed, acoustic)
    main([str(run.path), str(packed), *2 * ["--member", "weight=0.5", "hop_ms=8"]])
    with pytest.raises(ConfigError, match="add up to 1 or more"):
        load_members(packed, acoustic)
