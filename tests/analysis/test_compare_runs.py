"""Tests of compare_runs.py: differing settings and results, sorted, with unfinished and broken runs."""

import csv
import io
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import compare_runs
from analysis.runs import FINISHED, differing, find_runs, read_run, run_columns
from utils.config import save_yaml
from utils.errors import ConfigError, RunError
from utils.files import write_json, write_text
from utils.run_folder.run import RunFolder

HISTORY = """\
epoch,step,learning_rate,train_loss,dev_loss,dev_syllable_error_rate,seconds
1,10,0.001,9.0,8.0,0.9,30.0
2,20,0.001,7.0,6.0,0.4,20.0
3,30,0.001,5.0,6.5,0.5,22.0
"""


def write_run(
    path: Path, width: int, rate: float | None = None, task: str = "speech", **training: Any
) -> RunFolder:
    """Write a run, which is finished if it has a dev error rate."""
    run = RunFolder(path)
    config = {
        "task": task,
        "model": {"name": "compact", "width": width},
        "data": {
            "train": ["datasets/a/train.tsv", "datasets/b/learn.tsv"],
            "workers": width,
        },
        "training": {"epochs": 3, **training},
        "environment": {"cores": width},
    }
    save_yaml(run.config_file, config)
    with h5py.File(run.best_weights, "w") as file:
        file.create_dataset("layers/dense/vars/0", data=np.zeros((width, 10)))
        file.create_dataset("optimizer/vars/0", data=np.zeros(1000))
    write_text(run.history, HISTORY)
    if rate is not None:
        best = {"epoch": 2, "dev_syllable_error_rate": rate, "dev_loss": 6.0}
        write_json(run.metrics, {"best": best, "last": {}, "metric": "dev_syllable_error_rate"})
    return run


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch) -> None:
    """Each table has all its columns."""
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with two finished runs, one of them tested, an unfinished run and a language model."""
    write_run(tmp_path / "wide", 64, 0.25)
    tested = write_run(tmp_path / "a_group" / "narrow", 8, 0.5)
    rates = {"cer": 0.125, "syllable_error_rate": 0.5, "seconds": 2.0, "audio_seconds": 500.0}
    write_json(tested.path / "test" / "test-with-trigram" / "results.json", rates)
    write_json(tested.path / "test" / "other.json", {"cer": 0.75})
    write_run(tmp_path / "going_on", 16, precision="float32")
    language = RunFolder(tmp_path / "trigram")
    save_yaml(language.config_file, {"task": "language", "model": {"name": "ngram", "order": 3}})
    write_json(language.metrics, {"best": {"dev_character_error_rate": 0.0625}})
    write_text(language.path / "model_summary.txt", "interpolated Kneser-Ney, 1,000 1-grams, 234 2-grams\n")
    return tmp_path


def table(folder: Path, capsys, *arguments: str) -> list[dict[str, str]]:
    compare_runs.main([str(folder), "--csv", *arguments])
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_all_facts_of_a_run(folder, capsys):
    narrow, going_on, trigram, wide = table(folder, capsys)
    assert narrow == {
        "run": "a_group/narrow",
        "state": FINISHED,
        "task": "speech",
        "model.name": "compact",
        "model.width": "8",
        "data.train": "datasets/a/train.tsv, datasets/b/learn.tsv",
        "parameters": "80",  # without those of the optimiser
        "best_epoch": "2",
        "dev_loss": "6.0",
        "dev_syllable_error_rate": "0.5",
        "dev_character_error_rate": "",
        "other cer": "0.75",
        "test-with-trigram cer": "0.125",
        "test-with-trigram syllable_error_rate": "0.5",
        "seconds_per_epoch": "22.0",
        "training_seconds": "72.0",
        "speed": "250.0",
    }
    assert (trigram["parameters"], trigram["dev_character_error_rate"]) == ("1234", "0.0625")
    assert (going_on["state"], wide["state"]) == ("unfinished, epoch 3 of 3", FINISHED)


def test_a_table_that_is_too_wide_names_the_settings_below_it(tmp_path, capsys, monkeypatch):
    for number, width in enumerate((64, 8, 64)):
        write_run(tmp_path / f"run{number}", width, 0.25, precision=f"float{width}")
    compare_runs.main([str(tmp_path)])
    assert "precision" in capsys.readouterr().out.splitlines()[0]
    monkeypatch.setenv("COLUMNS", "110")
    compare_runs.main([str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["#", "run", "state"] and "precision" not in lines[0]
    assert lines[3].split()[:2] == ["3", "run2"]
    assert lines[5:] == [
        "width      64 (1, 3) · 8 (2)",
        "precision  float64 (1, 3) · float8 (2)",
        "data       a/train, b/learn (1, 2, 3)",
    ]
    assert max(map(len, lines)) <= 110


def test_the_accuracy_of_a_keyword_test_is_shown(tmp_path, capsys):
    run = write_run(tmp_path / "words", 8, task="keyword")
    write_json(run.path / "test" / "test" / "results.json", {"accuracy": 0.9375, "macro_f1": 0.9})
    (words,) = table(tmp_path, capsys)
    assert words["test accuracy"] == "0.9375"
    compare_runs.main([str(tmp_path)])
    assert "93.75 %" in capsys.readouterr().out


def test_the_best_epoch_of_an_unfinished_run_is_that_of_the_lowest_error(folder):
    figures = read_run(folder / "going_on").figures
    assert (figures["best_epoch"], figures["dev_syllable_error_rate"], figures["dev_loss"]) == (2, 0.4, 6.0)


def test_only_differing_hyper_parameters_are_columns(folder):
    runs = [read_run(path) for path in find_runs(folder)]
    assert differing(runs) == ["model.width"]  # not precision (only one run has it), workers, or the machine
    assert differing(runs[:1]) == []
    columns = run_columns(runs[:1], folder)
    assert "model.width" not in [column.key for column in columns]


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        (["--sort", "parameters"], ["narrow", "going_on", "wide"]),
        (["--sort", "model.width", "--descending"], ["wide", "going_on", "narrow"]),
        (["--sort", "dev_syllable"], ["wide", "going_on", "narrow"]),
        (["--sort", "speed"], ["narrow", "going_on", "wide"]),  # then runs without a value, in their order
        (["--sort", "speed", "--descending"], ["narrow", "going_on", "wide"]),
        (["--sort", "run", "--descending"], ["wide", "going_on", "narrow"]),
    ],
)
def test_sorting(folder, capsys, arguments, order):
    found = table(folder, capsys, "--task", "speech", *arguments)
    assert [row["run"].rpartition("/")[2] for row in found] == order


def test_a_missing_or_ambiguous_column_is_refused(folder):
    with pytest.raises(ConfigError, match=r"no such column.*'model\.width'"):
        compare_runs.main([str(folder), "--task", "speech", "--sort", "accuracy"])
    with pytest.raises(ConfigError, match=r"more than one column.*'other cer', 'test-with-trigram cer'"):
        compare_runs.main([str(folder), "--task", "speech", "--sort", "cer"])


def test_the_terminal_shows_a_table_for_each_task(folder, capsys):
    compare_runs.main([str(folder), "--sort", "run"])
    speech, language = capsys.readouterr().out.split("\n\n")
    head, narrow, *_ = speech.splitlines()
    assert head.split("  ")[0] == "run" and "dev syllable error" in head and "other CER" in head
    for text in ("a/train, b/learn", "50.00 %", "75.00 %", "0:01:12", "250"):
        assert text in narrow
    assert "1,234" in language and "6.25 %" in language


def test_a_table_without_the_column_to_sort_by_keeps_its_order(folder, capsys):
    compare_runs.main([str(folder), "--sort", "speed"])  # a language run has no speed
    speech, language = capsys.readouterr().out.split("\n\n")
    names = [line.split()[0] for line in speech.splitlines()[1:]]
    assert [name.rpartition("/")[2] for name in names] == ["narrow", "going_on", "wide"]
    assert language.splitlines()[1].startswith("trigram")
    with pytest.raises(ConfigError, match="--sort height: no such column"):
        compare_runs.main([str(folder), "--sort", "height"])


@pytest.mark.parametrize(
    ("file", "content", "state"),
    [
        ("config.yaml", "model: [", "broken: config.yaml is damaged"),
        ("config.yaml", None, "broken: not a run folder: it has no config.yaml"),
        ("history.csv", "epoch,seconds\none,two\n", "broken: not a valid training history"),
        ("metrics.json", "{", "broken: metrics.json is damaged"),
        ("metrics.json", "[]", "broken: metrics.json is damaged"),
        ("metrics.json", '{"best": {"dev_loss": "low"}}', "broken: could not convert"),
        ("best.weights.h5", "cut off", "broken: not an HDF5 file"),
        ("test/one/results.json", "{", "broken: results.json is damaged"),
        ("test/one/results.json", '{"cer": []}', "broken: "),
    ],
)
def test_a_broken_run_is_listed_with_the_reason_beside_the_others(folder, capsys, file, content, state):
    path = folder / "wide" / file
    path.unlink(missing_ok=True)
    if content is not None:
        write_text(path, content)
    rows = {row["run"]: row for row in table(folder, capsys)}
    assert rows["wide"]["state"].startswith(state)
    assert rows["a_group/narrow"]["state"] == FINISHED and rows["a_group/narrow"]["speed"] == "250.0"
    compare_runs.main([str(folder), "--sort", "parameters"])
    assert state in capsys.readouterr().out


def test_the_states_of_runs_without_a_finished_epoch(tmp_path):
    run = RunFolder(tmp_path / "new")
    save_yaml(run.config_file, {"task": "speech", "model": {"name": "compact"}})
    assert read_run(run.path).state == "not begun"
    run.checkpoint.parent.mkdir()
    run.checkpoint.touch()
    assert read_run(run.path).state == "in its first epoch"
    write_text(run.log, "computed on CPU\nthe training has diverged: weights not finite after step 3\n")
    assert read_run(run.path).state == "diverged"
    write_text(run.log, "weights not finite after step 3\nresumed at epoch 1, step 2\n")
    assert read_run(run.path).state == "in its first epoch"
    run.checkpoint.unlink()
    with h5py.File(run.best_weights, "w") as file:
        file.create_dataset("layers/dense/vars/0", data=np.zeros(3))
    assert read_run(run.path).state == "not trained here"
    run.best_weights.rename(run.packed_network)
    assert read_run(run.path).state == "not trained here"


def test_a_folder_without_runs_is_reported(tmp_path):
    with pytest.raises(RunError, match="no run below"):
        compare_runs.main([str(tmp_path)])
    with pytest.raises(RunError, match="no such folder"):
        compare_runs.main([str(tmp_path / "runs")])
    save_yaml(RunFolder(tmp_path / "one").config_file, {"task": "speech"})
    with pytest.raises(RunError, match="no run of task 'keyword'"):
        compare_runs.main([str(tmp_path), "--task", "keyword"])
