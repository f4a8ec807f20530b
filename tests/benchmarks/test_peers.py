"""Tests of the comparison with other libraries: paired runs, agreement, missing and failing peers."""

import dataclasses

import pytest

from benchmarks.peers import compare, environment, human_speech, sequences
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


def test_a_peer_that_fails_is_named_with_its_error():
    ((*_, reason),) = compare._compared(search(Peer("broken", "no_such_function")), 2)
    assert "no_such_function" in reason


def test_texts_of_all_recognisers_are_scored_alike():
    assert human_speech.scored_hanzi("2024年，他說：「3.5%」OK。") == "二零二四年他说百分之三点五"


def test_human_speech_of_ours(tmp_path, capsys):
    rows = ["id\taudio\tseconds\tspeaker\tpinyin\thanzi"]
    rows += [f"{path.stem}\t{path}\t5.0\ts\tru2 guo3\t如果" for path in RECORDINGS[:2]]
    (tmp_path / "two.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    human_speech.main(["--manifest", str(tmp_path / "two.tsv"), "--limit", "1", "--only", "greedy"])
    (row,) = capsys.readouterr().out.splitlines()[1:2]
    assert "two, 1  ours, greedy search, in batches" in row and row.count("%") == 2
