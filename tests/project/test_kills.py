"""Tests that prepare and train, killed at random moments and resumed, give the same result.

Moments are of three kinds: a share of the time that the command takes; the nth change that it makes to its
files (before a file is opened for writing, renamed, removed …), so that what lies between two changes is met
however short it is; and the middle of writing a file, when it has reached some size. After each kill no file
is half-written. 21 kills by default, some 140 with ``--nightly``; the summary of pytest counts them.
Other kills: ``tests/serving/test_ends.py`` (workers of the service, 12 nightly),
``tests/project/test_cluster.py`` (nodes of a cluster), ``tests/data/test_feature_cache.py``.
"""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from data.manifest import read_manifest
from tests.support.corpus_files import write
from tests.support.fork_server import Ended, ForkServer
from tests.support.tiny_commands import (
    TinyRuns,
    bytes_of,
    check_run_is_whole,
    run_content,
    temporary_files,
)
from tests.support.tiny_corpus import write_tiny_corpus
from utils.run_folder.run import RunFolder

SEED = 20
KILLED = (-signal.SIGKILL, -signal.SIGXFSZ)


@dataclass(frozen=True)
class Command:
    """A command that writes into a new folder, and the checks of that folder.

    Attributes:
        name: one of the server's commands.
        arguments: function from the folder that it writes to its arguments.
        content: function from the folder to the content that must equal that of an undisturbed run.
        check: raises unless each file of the folder is whole, whether the command came to its end or not.
    """

    name: str
    arguments: Callable[[Path], list[object]]
    content: Callable[[Path], dict[str, object]]
    check: Callable[[Path], None]


def moments(
    undisturbed: Ended, largest: int, by_time: int, by_change: int, by_size: int
) -> list[dict[str, float]]:
    """Random moments, one in each stretch of a command's time, of its changes, and of its largest file."""
    rng = np.random.default_rng(SEED)
    by_change = min(by_change, undisturbed.changes)
    times = (np.arange(by_time) + rng.random(by_time)) / max(by_time, 1) * undisturbed.seconds
    changes = (np.arange(by_change) + rng.random(by_change)) / max(by_change, 1) * undisturbed.changes
    sizes = (np.arange(by_size) + rng.random(by_size)) / max(by_size, 1) * largest
    return [
        *({"after": float(time)} for time in times),
        *({"at_change": 1 + int(change)} for change in changes),
        *({"at_size": max(1, int(size))} for size in sizes),
    ]


def killed_and_resumed(
    server: ForkServer,
    command: Command,
    folder: Path,
    times: tuple[int, int, int],
    record: Callable[[str, object], None],
    whole: tuple[Path, Ended] | None = None,
) -> None:
    """Run once undisturbed (or use ``whole``); then for each moment: kill the command there and run it again.

    Args:
        times: kills by time, kills by change, kills by size.
        record: gets the number of kills (``record_property`` of pytest).
    """
    folder.mkdir(exist_ok=True)
    if whole is None:
        whole = folder / "whole", server.run(command.name, *command.arguments(folder / "whole"))
    target, undisturbed = whole
    assert undisturbed.code == 0, undisturbed.output
    expected = command.content(target)
    folders = os.walk(target, followlinks=True)
    largest = max(Path(parent, name).stat().st_size for parent, _, names in folders for name in names)
    killed = 0
    for number, moment in enumerate(moments(undisturbed, largest, *times)):
        target = folder / f"killed_{number}"
        first = server.run(command.name, *command.arguments(target), **moment)
        assert first.code in (0, *KILLED), f"{moment}: {first.output}"
        killed += first.code in KILLED
        command.check(target)
        again = server.run(command.name, *command.arguments(target))
        assert again.code == 0, f"{moment}: {again.output}"
        assert command.content(target) == expected, moment
        assert temporary_files(target) == [], moment
        shutil.rmtree(target)
    # A command may end before the time at which it is to be killed.
    assert killed >= min(times[1], undisturbed.changes) + times[0] // 2 + times[2]
    record(f"killed: {command.name}", killed)


def part_of(whole: Path) -> Callable[[Path], None]:
    """A check that all files of a folder equal those of another folder."""

    def check(folder: Path) -> None:
        assert bytes_of(folder).items() <= bytes_of(whole).items()

    return check


@pytest.fixture(scope="module")
def data_folder(commands: ForkServer) -> Path:
    """A data folder of Kaldi with segments: manifests are written, and recordings."""
    root = commands.folder / "kaldi"
    utterances = read_manifest(write_tiny_corpus(root, utterances=8))
    for split, chosen in (("train", utterances[:6]), ("dev", utterances[6:])):
        write(root / split / "wav.scp", "".join(f"{u.id} {u.audio}\n" for u in chosen))
        write(root / split / "segments", "".join(f"{u.id}-1 {u.id} 0.0 0.5\n" for u in chosen))
        write(root / split / "text", "".join(f"{u.id}-1 你好\n" for u in chosen))
    return root


def test_prepare(commands, data_folder, nightly, record_property):
    folder = commands.folder / "prepared"
    command = Command(
        "prepare kaldi",
        lambda folder: ["prepare", data_folder, "--output", folder, "--workers", 1],
        bytes_of,
        part_of(folder / "whole"),
    )
    killed_and_resumed(commands, command, folder, (20, 60, 30) if nightly else (3, 14, 3), record_property)


@pytest.mark.timeout(3600)
def test_train(commands, tiny_runs: TinyRuns, nightly, record_property):
    command = Command(
        "train",
        lambda folder: tiny_runs.training(folder / "run", folder / "features"),
        lambda folder: run_content(RunFolder(folder / "run")),
        lambda folder: check_run_is_whole(RunFolder(folder / "run")),
    )
    (commands.folder / "trained").mkdir()
    (commands.folder / "trained" / "run").symlink_to(tiny_runs.speech)
    whole = commands.folder / "trained", tiny_runs.trained
    times = (8, 14, 4) if nightly else (0, 0, 1)  # by change: the tests below
    killed_and_resumed(commands, command, commands.folder / "runs", times, record_property, whole)
