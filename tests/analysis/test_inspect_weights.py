"""Tests of inspect_model.py weights: files of Keras 2, 3 and others, damage, vocabulary; no TensorFlow."""

import io
import json
import math
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

import inspect_model
from analysis.weights.layer_statistics import Output, find_output, statistics
from analysis.weights.weight_file import KERAS_3, LEGACY, OTHER, read_weight_file
from tests.support.legacy_weights import write_legacy
from utils.config import save_yaml
from utils.errors import RunError, VocabularyError
from utils.run_folder.run import RunFolder
from utils.text_table import csv_table, markdown_table, text_table
from utils.vocabulary import BLANK, SPACE, Vocabulary, acoustic_vocabulary

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(1)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def dfcnn(classes: int) -> dict[str, dict[str, np.ndarray]]:
    """A small copy of the reference model with the names of Keras 2.3: the last layer is dense_2."""
    norm = {
        f"batch_normalization_1/{name}:0": normal(4)
        for name in ("gamma", "beta", "moving_mean", "moving_variance")
    }
    return {
        "the_inputs": {},
        "conv2d_1": {"conv2d_1/kernel:0": normal(3, 3, 1, 4), "conv2d_1/bias:0": normal(4)},
        "batch_normalization_1": norm,
        "bidirectional_1": {
            "bidirectional_1/forward_gru_1/kernel:0": normal(4, 6),
            "bidirectional_1/backward_gru_1/kernel:0": normal(4, 6),
        },
        "dropout_1": {},
        "dense_1": {"dense_1/kernel:0": normal(8, 16), "dense_1/bias:0": normal(16)},
        "dense_2": {"dense_2/kernel:0": normal(16, classes), "dense_2/bias:0": normal(classes)},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def legacy(folder) -> Path:
    return write_legacy(folder / "model.h5", dfcnn(887))


def write_keras_3(
    path: Path | io.BytesIO, classes: int, names: tuple[str, str] = ("front", "logits")
) -> None:
    """Groups as Keras 3 writes them: numbered by class, the layer's own name as an attribute."""
    with h5py.File(path, "w") as file:
        arrays = {
            "layers/attention/query/vars": {"0": normal(4, 4), "1": normal(4)},
            "layers/attention/vars": {"0": normal(9, 2)},
            "layers/batch_normalization/vars": {str(n): normal(4) for n in range(4)},
            "layers/dense/vars": {"0": normal(4, 8)},
            "layers/dense_10/vars": {"0": normal(8, classes), "1": normal(classes)},
            "layers/dropout/seed_generator/vars": {"0": np.zeros(2, np.uint32)},
            "layers/encoder/layers/gru/cell/vars": {
                "0": normal(8, 12),
                "1": normal(4, 12),
                "2": normal(2, 12),
            },
            "optimizer/vars": {"0": np.zeros(3, np.float32)},
        }
        for group, values in arrays.items():
            for name, array in values.items():
                file.create_dataset(f"{group}/{name}", data=array)
        file.create_group("layers/re_lu/vars")
        for group, name in zip(("dense", "dense_10"), names, strict=True):
            file[f"layers/{group}/vars"].attrs["name"] = name


def write_run(path: Path, vocabulary: Vocabulary, classes: int, task: str = "speech") -> Path:
    run = RunFolder(path)
    save_yaml(run.config_file, {"task": task, "model": {"name": "compact"}})
    vocabulary.save(run.vocabulary("acoustic.txt" if task == "speech" else "hanzi.txt"))
    write_keras_3(run.best_weights, classes)
    return path


# The layouts


def test_a_file_of_keras_2_is_read_by_its_attributes(legacy):
    file, expected = read_weight_file(legacy), dfcnn(887)
    assert (file.format, file.ordered, file.state_values) == (LEGACY, True, 0)
    assert file.attributes["keras_version"] == "2.3.1" and file.attributes["backend"] == "tensorflow"
    assert [layer.name for layer in file.layers] == [name for name, weights in expected.items() if weights]
    assert file.parameters == sum(array.size for weights in expected.values() for array in weights.values())
    names = {layer.name: [weight.name for weight in layer.weights] for layer in file.layers}
    assert names["dense_2"] == ["kernel", "bias"]
    assert names["batch_normalization_1"] == ["gamma", "beta", "moving_mean", "moving_variance"]
    assert names["bidirectional_1"] == ["forward_gru_1/kernel", "backward_gru_1/kernel"]
    assert find_output(file) == Output("dense_2", 887, guessed=False)


def test_a_whole_model_of_keras_2_keeps_its_weights_one_group_deeper(folder, legacy):
    whole = read_weight_file(write_legacy(folder / "whole.h5", dfcnn(887), whole_model=True))
    assert [layer.name for layer in whole.layers] == [layer.name for layer in read_weight_file(legacy).layers]
    assert whole.parameters == read_weight_file(legacy).parameters
    assert whole.state_values == 1 + 5
    assert json.loads(whole.attributes["model_config"])["class_name"] == "Model"


def test_a_file_of_keras_3_is_read_by_its_groups(folder):
    write_keras_3(folder / "new.weights.h5", 230)
    file = read_weight_file(folder / "new.weights.h5")
    assert (file.format, file.ordered, file.state_values) == (KERAS_3, False, 3 + 2)
    assert {layer.name: [weight.name for weight in layer.weights] for layer in file.layers} == {
        "attention": ["query/kernel", "query/bias", "0"],
        "batch_normalization": ["gamma", "beta", "moving_mean", "moving_variance"],
        "front": ["kernel"],
        "logits": ["kernel", "bias"],
        "encoder/gru": ["cell/kernel", "cell/recurrent_kernel", "cell/bias"],
    }
    assert find_output(file) == Output("logits", 230, guessed=False)


def test_a_guessed_output_layer_is_marked_as_a_guess(folder):
    write_keras_3(folder / "plain.weights.h5", 230, names=("dense_2", "dense_10"))
    file = read_weight_file(folder / "plain.weights.h5")
    assert find_output(file) == Output("dense_10", 230, guessed=True)
    outer = [layer.name.removesuffix("/gru") for layer in file.layers]
    assert find_output(file.in_order_of([*outer[::-1], "re_lu"])) == Output("dense_2", 8, guessed=False)
    assert file.in_order_of(outer[1:]) is file


def test_a_keras_zip_has_the_order_of_its_config(folder):
    buffer, names = io.BytesIO(), ["attention", "batch_normalization", "encoder/gru", "front", "logits"]
    write_keras_3(buffer, 230)
    config = {"config": {"layers": [{"config": {"name": name.removesuffix("/gru")}} for name in names]}}
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        archive.writestr("model.weights.h5", buffer.getvalue())
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
    file = read_weight_file(folder / "model.keras")
    assert file.ordered and [layer.name for layer in file.layers] == names
    assert file.attributes == {"keras_version": "3.15.1"}


def test_any_other_hdf5_file_is_a_tree_of_groups(folder):
    with h5py.File(folder / "other.h5", "w") as file:
        file.create_dataset("net/block_10/w", data=normal(2, 2))
        file.create_dataset("net/block_9/w", data=normal(2, 2))
        file.create_dataset("note", data="text is no weight")
    file = read_weight_file(folder / "other.h5")
    assert file.format == OTHER and [layer.name for layer in file.layers] == ["net/block_9", "net/block_10"]


def test_bfloat16_which_hdf5_does_not_know(folder):
    values = np.array([1.0, -2.5, 0.15625], np.float32)  # 8 significant bits: nothing is lost
    with h5py.File(folder / "half.weights.h5", "w") as file:
        bits = (values.view(np.uint32) >> 16).astype(np.uint16).view("V2")
        file.create_dataset("layers/dense/vars/0", data=bits).attrs["dtype"] = "bfloat16"
    np.testing.assert_array_equal(
        read_weight_file(folder / "half.weights.h5").layers[0].weights[0].array, values
    )


# Damage


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_file_is_a_user_error(folder, legacy, share):
    whole = legacy.read_bytes()
    path = folder / "cut.h5"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(RunError, match=r"cut off|is empty|not an HDF5 file") as caught:
        read_weight_file(path)
    assert caught.value.where == path and caught.value.hint


def test_missing_arrays_are_named(folder, legacy):
    for name, lost in (("dense_2", "dense_2"), ("dense_1/bias:0", "dense_1/dense_1/bias:0")):
        path = folder / "lost.h5"
        path.write_bytes(legacy.read_bytes())
        with h5py.File(path, "a") as file:
            del file[lost]
        with pytest.raises(RunError, match=f"'{name}', which does not exist"):
            read_weight_file(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.h5", b"layer_names: dense_2", "not an HDF5 file"),
        ("broken.keras", b"PK\x03\x04" + bytes(50), "not an HDF5 file"),
        ("absent.h5", None, "no such weights file"),
    ],
)
def test_other_files_are_rejected(folder, name, content, message):
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(RunError, match=message):
        read_weight_file(folder / name)


def test_another_zip_is_rejected(folder):
    with zipfile.ZipFile(folder / "photos.keras", "w") as archive:
        archive.writestr("one.jpg", b"")
    with pytest.raises(RunError, match=r"has no model\.weights\.h5"):
        read_weight_file(folder / "photos.keras")


# The figures


def test_statistics_by_hand():
    found = statistics(np.array([[0.0, 1.0, -3.0], [0.0, np.nan, np.inf]], np.float32))
    assert (found.mean, found.min, found.max) == (-2 / 4, -3.0, 1.0)
    assert found.deviation == pytest.approx(math.sqrt((0.25 + 2.25 + 6.25 + 0.25) / 4))
    assert (found.zeros, found.nan, found.infinite) == (2 / 6, 1, 1)
    assert statistics(np.full(2, np.nan)).mean is None


def test_the_tree_shows_layers_shapes_attributes_and_what_is_not_finite(folder, capsys):
    layers = dfcnn(887)
    layers["dense_1"]["dense_1/bias:0"][:3] = [np.nan, np.inf, 0.0]
    inspect_model.main(["weights", str(write_legacy(folder / "nan.h5", layers))])
    lines = capsys.readouterr().out.splitlines()
    assert "attribute keras_version: 2.3.1" in lines
    conv = lines[next(number for number, line in enumerate(lines) if line.startswith("conv2d_1 ")) + 1]
    assert conv.split()[:4] == ["kernel", "3×3×1×4", "float32", "36"]
    bias = next(line for line in lines if line.startswith("  bias") and "1/1" in line)
    assert bias.split()[:4] == ["bias", "16", "float32", "16"] and "6.2 %" in bias
    assert lines[-2:] == ["output layer: dense_2, 887 classes", "NaN or infinite values in 1 layers: dense_1"]


def test_values_of_one_layer(legacy, capsys):
    inspect_model.main(["weights", str(legacy), "--values", "dense_1"])
    assert "dense_1 bias (16,) float32\n[" in capsys.readouterr().out
    with pytest.raises(RunError, match=r"no layer 'dense_3' with weights.*there are: dense_2, dense_1"):
        inspect_model.main(["weights", str(legacy), "--values", "dense_3"])


def test_everything_that_a_file_contains(folder, capsys):
    path = write_legacy(folder / "audit.h5", dfcnn(887), whole_model=True)
    inspect_model.main(["weights", str(path), "--datasets"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{path}: 14 datasets, 2 of them of an optimiser or of random generators"
    assert {
        "attribute keras_version: 2.3.1",
        "attribute model_weights/backend: tensorflow",
        f"attribute model_weights/layer_names: {' '.join(dfcnn(887))}",
        "attribute model_weights/conv2d_1/weight_names: conv2d_1/kernel:0 conv2d_1/bias:0",
    } <= set(lines)
    assert {
        ("model_weights/conv2d_1/conv2d_1/kernel:0", "weights", "float32", "3×3×1×4", "36"),
        ("optimizer_weights/Adam/iterations:0", "state", "int64", "scalar", "1"),
        ("optimizer_weights/training/Adam/m_0:0", "state", "float32", "5", "5"),
    } <= {tuple(line.split()) for line in lines}


def test_the_state_of_the_optimiser_of_a_run_is_in_its_checkpoint(folder, capsys):
    run = RunFolder(write_run(folder / "audited", SMALL, 230))
    run.checkpoint.parent.mkdir()
    np.savez(run.checkpoint, model_0000=normal(4, 8), optimizer_0000=np.int64(3))
    inspect_model.main(["weights", str(run.path), "--datasets"])
    lines = capsys.readouterr().out.splitlines()
    assert "attribute layers/dense_10/vars/name: logits" in lines
    checkpoint = lines[
        lines.index(f"{run.checkpoint}: 2 datasets, 1 of them of an optimiser or of random generators") :
    ]
    assert [line.split() for line in checkpoint[-2:]] == [
        ["model_0000", "weights", "float32", "4×8", "32"],
        ["optimizer_0000", "state", "int64", "scalar", "1"],
    ]


def test_the_differences_of_two_files_by_layer(folder, capsys):
    before, after = dfcnn(4), dfcnn(4)
    after |= {name: dict(before[name]) for name in before}
    before["dense_1"] = {"dense_1/kernel:0": np.array([[3.0, 0.0]]), "dense_1/bias:0": np.array([4.0, 0.0])}
    after["dense_1"] = {"dense_1/kernel:0": np.array([[3.0, 0.3]]), "dense_1/bias:0": np.array([3.6, 0.0])}
    after["dense_2"]["dense_2/bias:0"] = normal(5)
    after["dense_3"] = after.pop("batch_normalization_1")
    paths = [write_legacy(folder / f"{n}.h5", layers) for n, layers in enumerate((before, after))]
    inspect_model.main(["differences", *map(str, paths)])
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    at = lines.index(["dense_1", "10", "%", "0.4"])  # √(0.3² + 0.4²) of √(3² + 4²)
    assert lines[at + 1 : at + 3] == [["kernel", "1×2", "10", "%", "0.3"], ["bias", "2", "10", "%", "0.4"]]
    assert ["conv2d_1", "0", "0"] in lines and ["kernel", "3×3×1×4", "0", "0"] in lines
    assert "other shapes: dense_2/bias 4, 5" in text
    assert f"only in {paths[0]}: batch_normalization_1/gamma, " in text
    assert (
        f"only in {paths[1]}: batch_normalization_1/gamma" not in text
        and f"only in {paths[1]}: dense_3/" in text
    )
    with h5py.File(folder / "stranger.h5", "w") as file:
        file.create_dataset("net/w", data=normal(2, 2))
    with pytest.raises(RunError, match="has the same layer, name and shape"):
        inspect_model.main(["differences", str(paths[0]), str(folder / "stranger.h5")])


# The vocabulary

FULL = acoustic_vocabulary()
SMALL = Vocabulary((*FULL.tokens[:228], SPACE, BLANK))
LARGE = Vocabulary((*FULL.tokens[:885], SPACE, BLANK))


def test_a_vocabulary_of_230_against_887_outputs_is_explained(folder, capsys):
    """The command that it ends with is run in tests/model_speech/test_vocabulary_transfer.py."""
    run = write_run(folder / "large run", LARGE, 887)
    SMALL.save(folder / "small.txt")
    with pytest.raises(VocabularyError) as caught:
        inspect_model.main(["weights", str(run), "--vocabulary", str(folder / "small.txt")])
    lines = str(caught.value).splitlines()
    assert lines[0] == f"the output layer 'logits' has 887 classes, {folder / 'small.txt'} has 230 tokens"
    assert "230 tokens are in both" in lines[1] and "(657)" in lines[3]
    expected = ["transfer", str(run), f"{run}_transferred", "--vocabulary", str(folder / "small.txt")]
    assert shlex.split(lines[-1]) == ["python", "inspect_model.py", *expected]
    assert "output layer: logits, 887 classes" in capsys.readouterr().out  # the tree is printed nevertheless


def test_a_file_without_tokens_is_reported_with_where_to_find_them(folder, legacy):
    SMALL.save(folder / "small.txt")
    with pytest.raises(VocabularyError) as caught:
        inspect_model.main(["weights", str(legacy), "--vocabulary", str(folder / "small.txt")])
    assert "'dense_2' has 887 classes" in str(caught.value)
    assert "give the whole run folder" in str(caught.value)


def test_a_run_fits_its_own_vocabulary_and_the_same_one_elsewhere(folder, capsys):
    run = write_run(folder / "fitting", SMALL, 230)
    for arguments in ([], ["--vocabulary", str(run / "vocabulary" / "acoustic.txt")]):
        inspect_model.main(["weights", str(run), *arguments])
        assert "230 tokens: it fits" in capsys.readouterr().out


def test_a_run_with_the_vocabulary_of_another_run_is_reported(folder):
    run = write_run(folder / "mixed_up", SMALL, 887)
    with pytest.raises(
        VocabularyError, match="beside the weights has 230 tokens: it is not that of their training"
    ):
        inspect_model.main(["weights", str(run)])


def test_a_language_run_is_compared_with_its_hanzi(folder):
    run = write_run(folder / "language", Vocabulary(("<pad>", "<unk>", "一", "乙")), 4, task="language")
    Vocabulary(("<pad>", "<unk>", "一")).save(folder / "hanzi.txt")
    with pytest.raises(VocabularyError, match=r"initialise_from=.*language"):
        inspect_model.main(["weights", str(run), "--vocabulary", str(folder / "hanzi.txt")])


# How it is set


def test_tables_as_text_csv_and_markdown():
    headings, rows = ["run", "note"], [["一号", "a|b"], ["two", 'say "x", y']]
    text = 'run         note\n一号         a|b\ntwo   say "x", y\n'
    assert text_table(headings, rows) == text
    assert csv_table(headings, rows) == 'run,note\n一号,a|b\ntwo,"say ""x"", y"\n'
    ruler, first = markdown_table(headings, rows).splitlines()[1:3]
    assert (ruler, first) == ("| :-- | --: |", "| 一号 | a\\|b |")


def test_the_command_starts_without_tensorflow(legacy):
    code = (
        "import sys, inspect_model; inspect_model.main(['weights', sys.argv[1]]); "
        "sys.exit(any(name in sys.modules for name in ('tensorflow', 'keras', 'matplotlib')))"
    )
    subprocess.run([sys.executable, "-c", code, str(legacy)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_a_dataset_without_values_is_listed(tmp_path, capsys):
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file["none"] = h5py.Empty("f")
    inspect_model.main(["weights", str(tmp_path / "odd.h5"), "--datasets"])
    assert "empty" in capsys.readouterr().out.splitlines()[-1]
