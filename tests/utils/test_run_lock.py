"""Tests of the lock of a run folder: one training at a time; a killed training releases it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from utils.errors import RunError
from utils.run_folder.run import RunFolder, locked

ROOT = Path(__file__).parents[2]
HOLD = """
import subprocess, sys
from pathlib import Path
from utils.run_folder.run import RunFolder
from utils.run_folder.run import locked
with locked(RunFolder(Path(sys.argv[1]))):
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


def start(code: str, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def held_elsewhere(run: RunFolder) -> Iterator[subprocess.Popen]:
    """Another process that holds the lock of the run and has a child process."""
    process = start(HOLD, run.path)
    try:
        assert process.stdout.readline().strip().isdigit()
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def run(tmp_path) -> RunFolder:
    return RunFolder(tmp_path / "runs" / "one")


def test_the_second_is_refused_by_the_process_id_of_the_first(run):
    with held_elsewhere(run) as first:
        message = re.escape(f"another process writes this folder (process {first.pid} on ")
        with pytest.raises(RunError, match=message) as caught, locked(run):
            pytest.fail("two hold the run")
        assert "another folder" in caught.value.hint and caught.value.where == run.path


def test_a_killed_process_leaves_no_lock_not_even_while_a_child_of_it_lives(run):
    with held_elsewhere(run) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        with locked(run):
            assert f"process {os.getpid()} " in run.lock.read_text(encoding="utf-8")


def test_an_error_inside_frees_the_run(run):
    with pytest.raises(ZeroDivisionError), locked(run):
        raise ZeroDivisionError
    with locked(run), pytest.raises(RunError, match=f"process {os.getpid()} on"), locked(run):
        pytest.fail("a thread of the same process would be let in")


def test_a_file_system_without_locks_is_reported(run, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr("utils.run_folder.run.log.propagate", True)
    with locked(run):
        assert "no file locks" in caplog.text


def test_a_refused_training_writes_nothing(run, tmp_path):
    from training.run import train_from_config  # not at the top, because it loads TensorFlow

    text, recipe = tmp_path / "text.tsv", tmp_path / "ngram.yaml"
    text.write_text("a\tni3 hao3\t你好\n", encoding="utf-8")
    recipe.write_text("model: {name: ngram, order: 2}\n", encoding="utf-8")
    data = [f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={tmp_path / 'texts'}"]
    with held_elsewhere(run) as first:
        before = run.lock.read_bytes()
        with pytest.raises(RunError, match=f"process {first.pid} on"):
            train_from_config("language", recipe, data, run.path)
        assert list(run.path.iterdir()) == [run.lock] and run.lock.read_bytes() == before
    train_from_config("language", recipe, data, run.path)
    assert run.metrics.is_file()
