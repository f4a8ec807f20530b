"""Tests of the differences between two weights files: by hand, both formats of Keras, runs, exit codes."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

import inspect_model
from tests.support.legacy_weights import write_legacy
from tests.support.tiny_runs import write_speech_run


def difference(capsys, *arguments: object) -> tuple[int, str]:
    code = inspect_model.main(["difference", *map(str, arguments)])
    return code, capsys.readouterr().out


def dense(name: str, kernel: np.ndarray, bias: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    return {name: {f"{name}/kernel:0": kernel, f"{name}/bias:0": bias}}


@pytest.fixture
def files(tmp_path) -> tuple[Path, Path]:
    """Two files: one equal array, one with two other values, one with another shape, two in one file only."""
    kernel = np.array([[1.0, -2.0], [4.0, np.nan]], np.float32)
    changed = np.array([[1.0, -2.5], [5.0, np.nan]], np.float32)
    a = dense("dense_1", kernel, np.zeros(2)) | {"old": {"old/kernel:0": np.ones((2, 2))}}
    b = dense("dense_1", changed, np.zeros(2)) | {"new": {"new/kernel:0": np.ones((2, 2))}}
    a |= {"dense_2": {"dense_2/kernel:0": np.ones((2, 3))}}
    b |= {"dense_2": {"dense_2/kernel:0": np.ones((2, 4))}}
    return write_legacy(tmp_path / "a.h5", a), write_legacy(tmp_path / "b.h5", b)


def test_every_state_by_hand(files, capsys):
    code, text = difference(capsys, *files, "--json")
    found = json.loads(text)
    assert (code, found["equal"]) == (1, False)
    rows = {array["name"]: array for array in found["arrays"]}
    assert {name: array["state"] for name, array in rows.items()} == {
        "dense_1/kernel": "different",
        "dense_1/bias": "equal",
        "old/kernel": "only in A",
        "dense_2/kernel": "other shape",
        "new/kernel": "only in B",
    }
    assert rows["dense_1/kernel"]["absolute"] == 1.0
    assert rows["dense_1/kernel"]["relative"] == pytest.approx(max(0.5 / 2.5, 1 / 5))
    assert rows["dense_2/kernel"]["shape_b"] == [2, 4]
    code, text = difference(capsys, *files)
    assert code == 1
    assert "1 equal, 1 different, 1 other shape, 1 only in A, 1 only in B" in text
    assert "dense_1/bias" not in text


def test_a_nan_in_one_file_is_an_infinite_difference(tmp_path, capsys):
    a = write_legacy(tmp_path / "a.h5", dense("d", np.zeros((1, 2)), np.zeros(2)))
    b = write_legacy(tmp_path / "b.h5", dense("d", np.array([[np.nan, 1.0]]), np.zeros(2)))
    _, text = difference(capsys, a, b, "--json")
    assert json.loads(text)["arrays"][0]["absolute"] == "inf"


def test_files_of_keras_2_and_3_and_runs(tmp_path, capsys):
    layer = keras.layers.Dense(3, name="front")
    model = keras.Sequential([keras.Input((2,)), layer])
    model.save_weights(tmp_path / "keras3.weights.h5")
    model.save(tmp_path / "model.keras")
    write_legacy(tmp_path / "keras2.h5", dense("front", *layer.get_weights()))
    assert difference(capsys, tmp_path / "keras2.h5", tmp_path / "keras3.weights.h5") == (0, "2 equal\n")
    assert difference(capsys, tmp_path / "model.keras", tmp_path / "keras3.weights.h5") == (0, "2 equal\n")
    run = write_speech_run(tmp_path / "run", Path("none.tsv"))
    code, text = difference(capsys, run, run / "best.weights.h5")
    assert code == 0
    assert text.endswith(" equal\n")
    assert difference(capsys, run, tmp_path / "keras2.h5")[0] == 1
