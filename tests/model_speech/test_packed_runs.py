"""Tests of packed speech runs: ONNX Runtime against Keras, and files that do not fit are named."""

import shutil
from pathlib import Path

import h5py
import keras
import numpy as np
import onnx
import pytest

from analysis.weights.layer_statistics import find_output
from analysis.weights.significance import significances
from bundle.pack import main
from model_language.language_model import RESCORING
from model_speech.acoustic_logits import load_acoustic_logits
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.models.compact import CompactConfig, build_compact
from model_speech.models.conformer import ConformerConfig
from model_speech.models.dfcnn import DfcnnConfig
from model_speech.models.dfsmn import DfsmnConfig
from model_speech.models.gru_ctc import GruCtcConfig
from model_speech.models.whisper import WhisperConfig
from model_speech.onnx_acoustic import OnnxAcoustic, load_onnx_acoustic
from model_speech.packed_weights import assign_weights, read_packed_weights, weight_variables
from model_speech.registry import MODELS
from recognition import loading
from tests.support.scripts import load_script
from tests.support.tiny_runs import save_speech_run
from utils.backend.weights import save_weights
from utils.config import save_yaml
from utils.errors import RunError
from utils.features.settings import FeatureConfig, feature_bins
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary, acoustic_vocabulary

LENGTHS = (1, 7, 8, 9, 63, 64, 131)


def keras_model(bins: int, **changes) -> AcousticModel:
    config = CompactConfig(**{"front_filters": (4, 6), "width": 24, "blocks": 2, "gate": 5, **changes})
    features, vocabulary = FeatureConfig(bins=bins), acoustic_vocabulary({"ma1", "ma2", "hao3"})
    model = with_random_weights(build_compact(config, feature_bins(features), len(vocabulary)))
    return AcousticModel(model, features, vocabulary, config.time_stride)


def wide_model(config: CompactConfig) -> AcousticModel:
    """A model whose output layer is large enough for a product in int8."""
    features, vocabulary = FeatureConfig(bins=20), acoustic_vocabulary()
    model = with_random_weights(build_compact(config, feature_bins(features), len(vocabulary)))
    return AcousticModel(model, features, vocabulary, config.time_stride)


def with_random_weights(model: keras.Model) -> keras.Model:
    """The model with all weights random: a new model has trivial statistics and offsets."""
    rng = np.random.default_rng(3)
    for variable in model.variables:
        if "seed_generator" not in variable.path:
            values = rng.normal(0.0, 0.3, variable.shape)
            variable.assign(np.abs(values) + 0.5 if "variance" in variable.path else values)
    return model


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


@pytest.fixture(scope="module")
def packed_once(run, tmp_path_factory) -> Path:
    """The packed run; a test that changes files copies it."""
    folder = tmp_path_factory.mktemp("packed") / "packed"
    main([str(run.path), str(folder)])
    return folder


@pytest.fixture
def packed(packed_once, tmp_path) -> Path:
    return Path(shutil.copytree(packed_once, tmp_path / "packed"))


@pytest.mark.parametrize("kind", ["itself", "another run", "recordings"])
def test_a_run_is_not_packed_over_other_files(run, tmp_path, kind):
    target = run.path / ".." / run.path.name if kind == "itself" else tmp_path / "folder"
    if kind == "another run":
        shutil.copytree(run.path, target)
    elif kind == "recordings":
        target.mkdir()
        (target / "a.wav").write_bytes(b"RIFF")
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="not a folder of a packed model"):
        main([str(run.path), str(target)])
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before


def test_the_weights_of_a_packed_run_are_those_that_it_computes_with(run, packed):
    file, _ = load_script("inspect_model.py")._read_weights(packed)
    weights = read_packed_weights(packed / "network.onnx")
    inspected = {weight.path: weight.array for layer in file.layers for weight in layer.weights}
    assert list(inspected) == list(weights)
    np.testing.assert_array_equal(inspected["logits/kernel"], weights["logits/kernel"])
    assert find_output(file).classes == len(Vocabulary.load(run.vocabulary("acoustic.txt")))
    kernels = {each.layer: each for each in significances(file)}
    assert len(kernels["block_1_time"].values) == 80, "a depthwise convolution of 80 channels"


MODELS_OF_EVERY_KIND = {
    "compact": CompactConfig(front_filters=(4, 6), front_blocks=(0, 1), width=24, blocks=2, gate=5),
    "conformer": ConformerConfig(width=16, heads=2, blocks=1, kernel=4),
    "dfcnn": DfcnnConfig(filters=(4, 4, 6), dense=16),
    "dfsmn": DfsmnConfig(blocks=2, hidden=32, projection=16, top=1),
    "gru_ctc": GruCtcConfig(width=24, dense=1, recurrent=2),
    "whisper": WhisperConfig(width=16, heads=2, blocks=2, head_width=24),
}


@pytest.mark.parametrize("name", MODELS_OF_EVERY_KIND)
def test_every_acoustic_model_is_packed(name, tmp_path):
    config, features = MODELS_OF_EVERY_KIND[name], FeatureConfig(bins=24)
    vocabulary = acoustic_vocabulary({"ma1", "ma2", "hao3"})
    model = with_random_weights(MODELS[name].build(config, feature_bins(features), len(vocabulary)))
    trained = AcousticModel(model, features, vocabulary, config.time_stride)
    main([str(save_speech_run(tmp_path / "trained", trained, config)), str(tmp_path / "packed")])
    packed, whole = load_acoustic_logits(tmp_path / "packed"), load_acoustic_model(tmp_path / "packed")
    assert isinstance(packed, OnnxAcoustic) and packed.frame_seconds == trained.frame_seconds
    (expected, frames), (logits, lengths) = whole.logits(clips(24)), packed.logits(clips(24))
    np.testing.assert_array_equal(lengths, frames)
    spread = np.std(expected)
    for row, ours, length in zip(expected, logits, lengths, strict=True):
        np.testing.assert_allclose(ours[:length], row[:length], atol=0.03 * spread)


def test_an_utterance_has_the_same_logits_alone_and_with_others(tmp_path):
    """Also where a product is computed in int8, with the range of its inputs."""
    config = CompactConfig(front_filters=(4, 6), width=128, blocks=1)
    trained = save_speech_run(tmp_path / "trained", wide_model(config), config)
    main([str(trained), str(tmp_path / "packed")])
    packed = load_acoustic_logits(tmp_path / "packed")
    stored = onnx.load(tmp_path / "packed" / "network.onnx").graph
    assert {"MatMulInteger", "DynamicQuantizeLinear"} <= {node.op_type for node in stored.node}
    louder = [(1 + 8 * (number % 2)) * frames for number, frames in enumerate(clips(20))]
    logits, lengths = packed.logits(louder)
    for index, frames in enumerate(clips(20)[::2]):
        (alone,), (length,) = packed.logits([frames])
        np.testing.assert_array_equal(logits[2 * index, : lengths[2 * index]], alone[:length])
    expected = load_acoustic_model(trained).logits([clips(20)[-1]])[0][0]
    assert np.abs(alone - expected[: len(alone)]).max() < 0.05 * np.abs(expected).max()


def test_a_weight_takes_a_byte_and_half_a_step_of_error(run, packed):
    stored = read_packed_weights(packed / "network.onnx")
    trained = {v.path: v.numpy() for v in weight_variables(load_acoustic_model(run.path).model).values()}
    assert list(stored) == list(trained)
    for name, values in stored.items():
        if values.size < 4096:
            np.testing.assert_array_equal(values, trained[name])
        else:
            step = np.abs(trained[name]).max(axis=tuple(range(values.ndim - 1))) / 127
            assert (np.abs(values - trained[name]) <= step * 0.5001).all(), name
            assert np.abs(values - trained[name]).max() > 0, name
    size = sum(values.nbytes // (4 if values.size >= 4096 else 1) for values in stored.values())
    assert (packed / "network.onnx").stat().st_size < 1.5 * size


def test_a_packed_run_is_loaded_with_and_without_keras(run, tmp_path, capsys):
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "README.md").write_text("card")
    assert main([str(run.path), str(packed)]) == 0
    assert "MB" in capsys.readouterr().out and (packed / "README.md").read_text() == "card"
    config = (packed / "config.yaml").read_text()
    assert "somewhere" not in config and "copies: 3" in config
    assert not (packed / "best.weights.h5").exists()
    whole, small = load_acoustic_model(packed), load_acoustic_logits(packed)
    assert isinstance(small, OnnxAcoustic) and isinstance(load_acoustic_logits(run.path), AcousticModel)
    ours, lengths = small.logits(clips(20))
    expected, original = whole.logits(clips(20))[0], load_acoustic_model(run.path).logits(clips(20))[0]
    for index, length in enumerate(lengths):
        np.testing.assert_allclose(ours[index, :length], expected[index, :length], atol=1e-3)
        assert np.abs(ours[index, :length] - original[index, :length]).max() < 0.05 * np.abs(original).max()


def test_nothing_of_an_earlier_model_stays_in_the_folder(run, tmp_path, capsys):
    packed = tmp_path / "packed"
    main([str(run.path), str(packed)])
    earlier = ("confidence.json", "phrase_thresholds.json", "metrics.json", "last.weights.h5")
    for name in (*earlier, "README.md"):
        (packed / name).write_text("of the earlier model")
    checksums.accept(packed)
    main([str(run.path), str(packed)])
    assert f"python -m recognition.calibrate {packed} --manifest" in capsys.readouterr().out
    assert {path.name for path in packed.iterdir()} == {
        "README.md", "checksums", "config.yaml", "network.onnx", "vocabulary"
    }  # fmt: skip
    assert load_acoustic_logits(packed).features == load_acoustic_model(run.path).features


def change_network(packed: Path, change) -> None:
    network = onnx.load(packed / "network.onnx")
    change(network)
    onnx.save(network, packed / "network.onnx")
    checksums.accept(packed)


def test_files_that_do_not_fit_are_named(packed):
    weights = read_packed_weights(packed / "network.onnx")
    with pytest.raises(RunError, match=r"another model.*logits"):
        assign_weights(keras_model(20, width=80).model, {**weights, "logits/bias": np.ones(2)}, "x")
    whole = (packed / "network.onnx").read_bytes()
    (packed / "network.onnx").write_bytes(whole[:-9] + b"123456789")
    for load in (load_onnx_acoustic, load_acoustic_model):
        with pytest.raises(RunError, match="SHA-256"):
            load(packed)
    (packed / "network.onnx").write_bytes(whole[: len(whole) // 2])
    checksums.accept(packed)
    for load in (load_onnx_acoustic, load_acoustic_model):
        with pytest.raises(RunError, match="cannot read the network"):
            load(packed)
    (packed / "network.onnx").write_bytes(whole)
    Vocabulary(("ma1", " ", "_")).save(RunFolder(packed).vocabulary("acoustic.txt"))
    checksums.accept(packed)
    with pytest.raises(RunError, match=r"the network takes 20 bins and has \d+ classes"):
        load_onnx_acoustic(packed)


def test_weights_of_a_training_that_diverged_are_refused(run, packed, tmp_path):
    diverged = RunFolder(shutil.copytree(run.path, tmp_path / "run"))

    def make_infinite(network: onnx.ModelProto) -> None:
        bias = next(tensor for tensor in network.graph.initializer if tensor.name == "logits/bias")
        values = np.array(onnx.numpy_helper.to_array(bias))
        values[0] = np.inf
        bias.CopyFrom(onnx.numpy_helper.from_array(values, bias.name))

    change_network(packed, make_infinite)
    with h5py.File(diverged.best_weights, "r+") as file:
        file["layers/masked_batch_normalization/vars/0"][0] = np.nan
    checksums.accept(diverged.path)
    with pytest.raises(RunError, match=r"not finite: 1 of \d+ arrays, e\.g\. logits/bias") as refused:
        load_acoustic_model(packed)
    assert str(refused.value.where) == str(packed / "network.onnx")
    for refuse in (load_acoustic_model, lambda path: main([str(path), str(packed)])):
        with pytest.raises(RunError, match=r"not finite: 1 of \d+ arrays, e\.g\. \w+/gamma") as refused:
            refuse(diverged.path)
        assert str(refused.value.where) == str(diverged.best_weights)


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
