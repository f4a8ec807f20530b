"""Tests of training on several devices and processes: equal to a single one; lost ones are named."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import keras
import numpy as np
import pytest

import train
from tests.support.logged_losses import logged_losses
from tests.support.spread_task import TRAINING, train_over
from tests.support.tiny_corpus import write_tiny_corpus
from training.distributed.cluster import Cluster, read_cluster, wait_for_workers
from training.distributed.distribution import SINGLE_PROCESS, Distribution, distributed, run_path_of
from utils.errors import ConfigError, TrainingError
from utils.files import write_text
from utils.run_folder.run import RunFolder

ROOT = Path(__file__).parents[2]
WAIT = 600  # seconds, on a busy machine


def loss_curve(run: RunFolder) -> np.ndarray:
    """Loss of each optimiser step; where a run was resumed, the last one."""
    losses = dict(logged_losses(run))
    assert sorted(losses) == list(range(1, len(losses) + 1))
    return np.array([losses[step] for step in sorted(losses)])


def weights(run: RunFolder) -> dict[str, np.ndarray]:
    with np.load(run.checkpoint) as saved:
        return {name: saved[name] for name in saved.files if name != "state"}


@pytest.mark.timeout(2 * WAIT)
def test_four_virtual_devices_give_the_training_of_one(tmp_path):
    alone, spread = RunFolder(tmp_path / "alone"), RunFolder(tmp_path / "spread")
    train_over(SINGLE_PROCESS, alone.path)
    command = [sys.executable, "-m", "tests.support.spread_task", str(spread.path), "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 0, done.stderr
    expected, found = loss_curve(alone), loss_curve(spread)
    assert len(expected) >= 50 and expected[-5:].mean() < expected[:5].mean() / 2
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    for name, value in weights(alone).items():
        np.testing.assert_allclose(weights(spread)[name], value, atol=1e-3, err_msg=name)
    seeds = [int(seed) for seed in done.stdout.split()[-4:]]
    assert len(set(seeds)) == 4, "all devices would drop the same units"


@pytest.mark.timeout(2 * WAIT)
def test_two_devices_with_xla_give_the_training_of_one(tmp_path, nightly):
    epochs = TRAINING.epochs if nightly else 1
    alone, spread, dump = RunFolder(tmp_path / "alone"), RunFolder(tmp_path / "spread"), tmp_path / "dump"
    train_over(SINGLE_PROCESS, alone.path, epochs)
    command = [sys.executable, "-m", "tests.support.spread_task", str(spread.path), "2", str(epochs)]
    environment = {**os.environ, "XLA_FLAGS": f"--xla_dump_to={dump}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WAIT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(dump.glob("*cluster*")), "nothing was compiled with XLA"
    np.testing.assert_allclose(loss_curve(spread), loss_curve(alone), atol=1e-4, rtol=0)
    for name, value in weights(alone).items():
        np.testing.assert_allclose(weights(spread)[name], value, atol=1e-3, err_msg=name)


OVERRIDES = (
    "model.width=8",
    "model.front_filters=[4]",
    "model.blocks=1",
    "model.dropout=0",
    "optimiser.learning_rate=0.003",
    "training.epochs=10",
    "training.checkpoint_steps=5",
    "data.batch_utterances=5",
    "data.workers=1",
)


@pytest.mark.timeout(4 * WAIT)
def test_two_processes_train_as_one_and_resume_after_one_is_killed(tmp_path):
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=16)
    config = tmp_path / "tiny.yaml"
    config.write_text("model: {name: compact}\n", encoding="utf-8")
    data = [f"data.train=[{manifest}]", f"data.dev=[{manifest}]", f"data.cache={tmp_path / 'features'}"]

    def arguments(run):
        return ["speech", "--config", str(config), "--no-checks", "--run", str(run.path), *OVERRIDES, *data]

    alone, spread = RunFolder(tmp_path / "alone"), RunFolder(tmp_path / "spread")
    train.main(arguments(alone))
    chief, other = _start_workers([*arguments(spread), "--distribute", "multi_worker"], tmp_path)
    try:
        _wait_for(lambda: _evaluations(spread) >= 3, chief, other)
        assert other.poll() is None, "training ended before it could be killed"
        other.kill()
        assert chief.wait(timeout=WAIT) == 2, _printed(tmp_path)
    finally:
        chief.kill()
        other.kill()
    assert re.search(r"error: lost worker 1 \(127\.0\.0\.1:\d+\)", _printed(tmp_path)), _printed(tmp_path)
    assert "oneDNN supports" not in _printed(tmp_path), "TensorFlow prints it if booleans are transposed"
    assert not spread.metrics.is_file()

    train.main(arguments(spread))
    assert "resumed at epoch" in spread.log.read_text(encoding="utf-8")
    expected = loss_curve(alone)
    assert len(expected) == 4 * 10
    np.testing.assert_allclose(loss_curve(spread), expected, rtol=1e-4)


@pytest.mark.nightly
@pytest.mark.timeout(2 * WAIT)
def test_a_stop_signal_to_one_process_stops_both_with_a_checkpoint(tmp_path):
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=16)
    config = tmp_path / "tiny.yaml"
    config.write_text("model: {name: compact}\n", encoding="utf-8")
    run = RunFolder(tmp_path / "run")
    data = [f"data.train=[{manifest}]", f"data.dev=[{manifest}]", f"data.cache={tmp_path / 'features'}"]
    settings = [*OVERRIDES, *data, "training.epochs=1000", "--distribute", "multi_worker"]
    workers = _start_workers(
        ["speech", "--config", str(config), "--no-checks", "--run", str(run.path), *settings], tmp_path
    )
    try:
        _wait_for(lambda: _evaluations(run) >= 3, *workers)
        workers[1].send_signal(signal.SIGTERM)
        assert [worker.wait(timeout=WAIT) for worker in workers] == [128 + signal.SIGTERM] * 2
    finally:
        for worker in workers:
            worker.kill()
    assert "SIGTERM: a checkpoint is written at epoch" in run.log.read_text(encoding="utf-8")
    assert len(weights(run)) > 0


def _start_workers(arguments: list[str], folder: Path) -> list[subprocess.Popen]:
    """Two processes of one cluster on the loopback; their output goes to ``worker0.txt`` …"""
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(2)]
    started = []
    for index in range(2):
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CONFIG": json.dumps(cluster)}
        with (folder / f"worker{index}.txt").open("w") as output:
            started.append(
                subprocess.Popen(
                    [sys.executable, "train.py", *arguments],
                    cwd=ROOT,
                    env=environment,
                    stdout=output,
                    stderr=output,
                )
            )
    return started


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_for(condition, *processes: subprocess.Popen) -> None:
    deadline = time.monotonic() + WAIT
    while not condition() and all(process.poll() is None for process in processes):
        assert time.monotonic() < deadline, "the workers make no progress"
        time.sleep(0.02)


def _evaluations(run: RunFolder) -> int:
    return len(run.history.read_bytes().splitlines()) - 1 if run.history.is_file() else 0


def _printed(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("worker?.txt")))


TWO = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{'cluster'", "Expecting property name"),
        ('{"cluster": {"worker": ["a:1"]}}', "'task'"),
        (json.dumps(TWO | {"task": {"type": "worker", "index": 2}}), ""),
        (json.dumps(TWO | {"cluster": {"worker": ["a", "b:2"]}}), "'a' is not host:port"),
    ],
)
def test_a_wrong_tf_config_is_refused(value, message):
    with pytest.raises(ConfigError, match=rf"TF_CONFIG: it is missing or wrong \(.*{message}"):
        read_cluster({"TF_CONFIG": value})


def test_processes_are_counted_as_tensorflow_does():
    cluster = {"worker": ["b:2", "c:3"], "chief": ["a:1"]}
    config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    found = read_cluster({"TF_CONFIG": config})
    assert found == Cluster(("chief 0", "worker 0", "worker 1"), ("a:1", "b:2", "c:3"), index=1)
    assert found.describe(2) == "worker 1 (c:3)"


def _local_cluster(index: int, ports: list[int]) -> Cluster:
    names = tuple(f"worker {number}" for number in range(len(ports)))
    return Cluster(names, tuple(f"127.0.0.1:{port}" for port in ports), index)


def test_a_missing_process_is_named():
    ports = _free_ports(3)
    missing = rf"no answer from worker 1 \(127\.0\.0\.1:{ports[1]}\) in 0 s"
    with socket.create_server(("", ports[2])), pytest.raises(TrainingError, match=missing):
        wait_for_workers(_local_cluster(0, ports), wait_seconds=0.1)
    with (
        socket.create_server(("", ports[0])),
        pytest.raises(ConfigError, match=rf"port {ports[0]} of worker 0 .* can't be opened"),
    ):
        wait_for_workers(_local_cluster(0, ports), wait_seconds=0.1)


def test_tasks_that_cannot_be_distributed_are_refused(monkeypatch):
    with pytest.raises(ConfigError, match="--virtual-devices 4, above 0, with --distribute mirrored"):
        distributed(None, 4).__enter__()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ConfigError, match="TF_CONFIG: it is missing"):
        distributed("multi_worker").__enter__()
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ConfigError, match="works on TensorFlow only, not on 'jax'"):
        distributed("mirrored").__enter__()


def in_two_processes(function) -> list:
    """The results of ``function(distribution)`` in two threads that stand for processes."""
    meeting, given, results = threading.Barrier(2, timeout=WAIT), {}, {}

    def broadcast(index):
        def broadcast_from_here(data, source):
            given[index] = data
            meeting.wait()
            found = given[source]
            meeting.wait()  # no new value before all have received this one
            return found

        return broadcast_from_here

    def run(index):
        results[index] = function(Distribution(index=index, count=2, broadcast=broadcast(index)))

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=WAIT)
    return [results[0], results[1]]


def test_different_processes_are_detected():
    def compare(distribution):
        distribution.check_same("vocabulary", ["a", "b"])
        try:
            distribution.check_same("config", {"seed": distribution.index})
        except TrainingError as error:
            return str(error)

    for message in in_two_processes(compare):
        assert message.startswith("process 1 has another config than the chief, the same code, command")


def test_the_chiefs_run_is_copied_to_the_others(tmp_path):
    chief = RunFolder(tmp_path / "chief")
    write_text(chief.vocabulary("acoustic.txt"), "妈\n")
    write_text(chief.checkpoint, "step 5")
    write_text(chief.history, "epoch\n")

    def copy(distribution):
        with run_path_of(distribution, chief.path) as path:
            distribution.copy_run(RunFolder(path))
            names = [each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()]
            return path, sorted(names), RunFolder(path).vocabulary("acoustic.txt").read_text(encoding="utf-8")

    (own, _, _), (other, names, text) = in_two_processes(copy)
    assert own == chief.path and chief.history.is_file()
    assert names == ["checkpoint/state.npz", "vocabulary/acoustic.txt"] and text == "妈\n"
    assert other != own and not other.exists()
