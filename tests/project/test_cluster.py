"""Tests of corpus work on a Ray cluster of two local nodes, one of which is killed: equal to one machine.

Skipped without Ray: ``pip install -r requirements/cluster.txt``; then
 ``pytest tests/project/test_cluster.py``.
"""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import doctor
import transcribe
from data.corpora import kaldi
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.manifest import Utterance, read_manifest, write_manifest
from recognition import cluster_jobs
from tests.support.corpus_files import write
from tests.support.recordings import RECORDINGS
from tests.support.scripts import load_script
from tests.support.tiny_commands import bytes_of, without_timing
from tests.support.tiny_corpus import write_tiny_corpus
from utils import cluster
from utils.audio.properties import audio_seconds
from utils.cluster import on_cluster
from utils.errors import ConfigError, CorpusError
from utils.features.settings import FeatureConfig
from utils.processes import run_jobs
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH

NODES = 2


class TwoNodes:
    """A head without CPUs and two nodes of one CPU each, as processes of this machine."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        self.address = self._cluster.address
        self._nodes = [self._cluster.add_node(num_cpus=1) for _ in range(NODES)]
        self._cluster.wait_for_nodes()

    def kill_one(self) -> None:
        """End all processes of a node without notice."""
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)

    def replace_killed(self) -> None:
        """Add nodes for those that were killed. Ray allows it in the main thread only."""
        while len(self._nodes) < NODES:
            self._nodes.append(self._cluster.add_node(num_cpus=1))

    def shutdown(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements/cluster.txt")
    found = TwoNodes()
    yield found
    found.shutdown()


def test_without_ray_the_message_names_the_requirements(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install -r requirements/cluster\.txt"), on_cluster("local"):
        pass


def test_a_wrong_address_is_named(nodes):
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1\b.*ray start --head"), on_cluster("127.0.0.1:1"):
        pass


def record(folder: Path, number: int) -> int:
    """A short job that writes a line each time it ends."""
    time.sleep(0.5)
    with (folder / "done.txt").open("a") as file:
        file.write(f"{number} {os.getpid()}\n")
    return number * number


def test_a_lost_node_loses_no_job(nodes, tmp_path):
    lines = tmp_path / "done.txt"
    results = []
    with on_cluster(nodes.address):
        for result in run_jobs(partial(record, tmp_path), range(24), workers=1):
            results.append(result)
            if len(results) == 6:
                nodes.kill_one()
    nodes.replace_killed()
    assert sorted(results) == [number * number for number in range(24)]
    workers = {line.split()[1] for line in lines.read_text().splitlines()}
    assert len(workers) >= NODES, "one process did all the work"


def fail(number: int) -> int:
    if number == 3:
        raise CorpusError("no third one", where="here", hint="count again")
    if number == 4:
        os._exit(1)
    return number


def test_errors_of_jobs_are_raised_as_they_are(nodes, monkeypatch):
    monkeypatch.setattr(cluster, "_RETRIES", 0)  # each takes a new process
    with on_cluster(nodes.address):
        with pytest.raises(CorpusError, match="no third one, here, count again"):
            list(run_jobs(fail, [1, 2, 3], workers=1))
        with pytest.raises(BrokenExecutor):
            list(run_jobs(fail, [4], workers=1))
        assert sorted(run_jobs(fail, [1, 2], workers=1)) == [1, 2]
    assert list(run_jobs(fail, [1, 2], workers=1)) == [1, 2]


@contextmanager
def a_node_killed(nodes: TwoNodes, folder: Path, pattern: str, count: int) -> Iterator[None]:
    """Kill a node as soon as the block has written some files."""
    killed, ended = threading.Event(), threading.Event()

    def kill() -> None:
        while not ended.wait(0.01):
            if len(list(folder.rglob(pattern))) >= count:
                nodes.kill_one()
                killed.set()
                return

    thread = threading.Thread(target=kill)
    thread.start()
    yield
    ended.set()
    thread.join()
    nodes.replace_killed()
    assert killed.is_set(), "the work ended before a node could be killed"


def test_corpora_are_prepared_to_the_same_bytes(nodes, tmp_path, capsys):
    utterances = read_manifest(write_tiny_corpus(tmp_path / "tiny", utterances=24))
    root = tmp_path / "kaldi" / "train"
    write(root / "wav.scp", "".join(f"{u.id} {u.audio}\n" for u in utterances) + "gone gone.wav\n")
    lines = "".join(f"{u.id}-{n} {u.id} 0.{n} 0.{n + 3}\n" for u in utterances for n in range(4))
    write(root / "segments", lines + "gone-1 gone 0.0 0.5\n")
    write(root / "text", "".join(f"{u.id}-{n} 你好\n" for u in utterances for n in range(4)))
    output, reports = tmp_path / "out", []
    content = []
    for more in ([], ["--cluster", nodes.address]):
        assert kaldi.main(["prepare", str(root), "--output", str(output), *more]) == 0
        content.append(bytes_of(output))
        capsys.readouterr()
        doctor.main([str(output), "--json", *more])
        reports.append(capsys.readouterr().out)
        shutil.rmtree(output)
    assert content[0] == content[1] and len(content[0]) == 96 + 3
    assert reports[0] == reports[1]


def test_features_are_computed_to_the_same_bytes(nodes, tmp_path):
    recordings = read_manifest(write_tiny_corpus(tmp_path / "tiny", utterances=8))
    utterances = [replace(u, id=f"{u.id}-{n}") for u in recordings for n in range(40)]
    settings = {"feature_config": FeatureConfig(), "augment": AugmentConfig(copies=2), "workers": 2}
    prepare_features(utterances, folder=tmp_path / "here", **settings)
    with on_cluster(nodes.address), a_node_killed(nodes, tmp_path / "nodes", "*.index.npy", 3):
        prepare_features(utterances, folder=tmp_path / "nodes", **settings)
    expected = bytes_of(tmp_path / "here")
    assert bytes_of(tmp_path / "nodes") == expected and len(expected) == 2 * 32 + 1


@pytest.fixture(scope="module")
def talks(tmp_path_factory) -> Path:
    """A manifest of 40 recordings of speech."""
    folder = tmp_path_factory.mktemp("talks")
    utterances = []
    for number in range(40):
        path = folder / "wav" / f"talk_{number:02}.ogg"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(RECORDINGS[number % len(RECORDINGS)], path)
        utterances.append(Utterance(path.stem, path, audio_seconds(path), "s", ("ni3", "hao3"), "你好"))
    write_manifest(folder / "list.tsv", utterances)
    return folder / "list.tsv"


def test_recordings_are_transcribed_to_the_same_bytes(nodes, talks, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_jobs, "_JOB_RECORDINGS", 3)
    broken = write(talks.parent / "wav" / "broken.wav", "no sound")
    here, there = tmp_path / "here", tmp_path / "nodes"
    arguments = [str(talks.parent / "wav"), "--format", "json"]
    assert transcribe.main([*arguments, "--output", str(here)]) == 1
    with a_node_killed(nodes, there, "talk*.json", 4):
        assert transcribe.main([*arguments, "--output", str(there), "--cluster", nodes.address]) == 1
    broken.unlink()
    assert bytes_of(there) == bytes_of(here) and len(bytes_of(here)) == 40
    # All are marked as finished: a second run has nothing to do.
    assert transcribe.main([*arguments, "--output", str(there), "--cluster", nodes.address]) == 0


def test_test_sets_are_decoded_to_the_same_bytes(nodes, talks, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_jobs, "_JOB_RECORDINGS", 3)
    results = []
    for more in ([], ["--cluster", nodes.address]):
        output = tmp_path / str(len(results))
        runs = [str(PRETRAINED_SPEECH), str(PRETRAINED), "--beam", "4"]
        arguments = ["pipeline", *runs, "--manifest", str(talks), "--output", str(output)]
        assert load_script("test.py").main([*arguments, "--report", str(output / "report"), *more]) == 0
        figures = without_timing(json.loads((output / "results.json").read_text(encoding="utf-8")))
        results.append((figures, (output / "hypotheses.tsv").read_bytes()))
    assert results[0] == results[1]
