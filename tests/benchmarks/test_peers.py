"""Tests of the comparison with other libraries: paired runs, agreement, missing and failing peers."""

import dataclasses
import subprocess

import pytest

from benchmarks.peers import compare, environment, sequences, sound
from benchmarks.peers.entry import Peer


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(compare, "FOLDER", tmp_path / "peers")


def edits(*peers: Peer):
    (task,) = (task for task in sequences.TASKS if task.name == "edits")
    return dataclasses.replace(task, peers=peers)


def test_both_sides_run_in_turns_and_agree():
    ((name, peer, theirs, ours, ratio, results),) = compare._compared(
        edits(Peer("RapidFuzz", "edits_rapidfuzz")), rounds=2
    )
    assert (name, peer) == ("edits", "RapidFuzz")
    assert min(float(theirs), float(ours), float(ratio)) > 0
    assert results.startswith("same ") and results.endswith(" edits")


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: slow\nERROR: No matching distribution found\n")
    monkeypatch.setattr(environment.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(environment.subprocess, "run", lambda *_, **__: failed)
    ((_, peer, *figures, reason),) = compare._compared(edits(Peer("gone", "edits_jiwer", ("gone==1.0",))), 2)
    assert peer == "gone 1.0" and figures == ["–"] * 3
    assert reason == "can't be installed: ERROR: No matching distribution found"


def test_a_peer_that_fails_is_named_with_its_error():
    ((*_, reason),) = compare._compared(edits(Peer("broken", "no_such_function")), 2)
    assert "no_such_function" in reason


def test_the_tasks_describe_what_differs():
    inputs = sound.recordings()
    ours = sound.our_features(inputs)()
    theirs = sound.features_python_speech_features(inputs)()
    assert float(sound._same_features(inputs, ours, theirs).split()[-1]) < 1e-4
    speech = sound.speech_in_noise()
    assert "ours 1" in sound._found_speech(speech, {"spoken": speech["spoken"]}, sound.our_speech(speech)())
