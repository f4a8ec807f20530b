"""Tests of a disk that does not answer: the file is named, the command continues later, Ctrl-C ends it.

A lease of Linux on a file makes every other process wait that opens it, as a dead network mount does.
"""

import fcntl
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from data.features.augment import AugmentConfig
from data.features.packing import pack_corpus
from tests.support.corpus_files import write
from tests.support.fork_server import Ended, ForkServer
from tests.support.tiny_commands import TinyRuns, bytes_of, check_run_is_whole, temporary_files
from utils.features.speech import FeatureConfig
from utils.run_folder.run import RunFolder

waited_for = threading.Event()  # set when a process waits for the file that :func:`stalled` holds
SECONDS = 2.0  # instead of STALLED_SECONDS, in the command's own process
CODE = """\
import sys
from utils import stop_signals
stop_signals.STALLED_SECONDS = {seconds}
from {module} import main
sys.exit(main({arguments}))
"""


@contextmanager
def stalled(path: Path) -> Iterator[Callable[[], None]]:
    """Opening the file takes until the yielded function is called (45 s at most, the kernel's limit)."""
    waited_for.clear()
    before = signal.signal(signal.SIGIO, lambda *_: waited_for.set())
    with path.open("rb+") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            pytest.skip("this file system has no leases")
        yield file.close
    signal.signal(signal.SIGIO, before)


def run(commands: ForkServer, module: str, arguments: list[object], **moment: object) -> Ended:
    code = CODE.format(seconds=SECONDS, module=module, arguments=list(map(str, arguments)))
    return commands.run("python", code, **moment)


def has_named(commands: ForkServer, path: Path) -> bool:
    """Whether the command that runs has named a file."""
    output = max(commands.folder.glob("[0-9]*.txt"), key=lambda file: int(file.stem))
    return bool(
        re.search(rf"^note: still waiting .* to read {re.escape(str(path))}", output.read_text(), re.M)
    )


def answering(commands: ForkServer, path: Path, answer: Callable[[], None]) -> Callable[[], bool]:
    """Let the disk answer when the file has been named, and send no signal."""

    def check() -> bool:
        if has_named(commands, path):
            answer()
        return False

    return check


def check_stopped(ended: Ended) -> None:
    assert ended.code == 130 and ended.output.splitlines()[-1] == "stopped by Ctrl-C", ended.output


@pytest.fixture
def packed(commands, tiny_runs: TinyRuns) -> Path:
    folder = commands.folder / "stalled_packed"
    pack_corpus([tiny_runs.train], folder, FeatureConfig(bins=16), AugmentConfig(copies=1), workers=1)
    return folder


@pytest.mark.timeout(3600)
def test_a_shard_of_a_training(commands, tiny_runs: TinyRuns, packed):
    """The shard is read by a thread."""
    shard = next(path for path in packed.glob("*.npy") if ".index" not in path.name)
    run_folder, cache = commands.folder / "stalled_run", commands.folder / "tiny" / "features"
    arguments = tiny_runs.training(run_folder, cache, packed)
    with stalled(shard):
        condition = lambda: has_named(commands, shard)  # noqa: E731
        check_stopped(run(commands, "train", arguments, send=signal.SIGINT, condition=condition))
    with stalled(shard) as answer:
        ended = run(commands, "train", arguments, condition=answering(commands, shard, answer))
        assert ended.code == 0 and has_named(commands, shard), ended.output
    check_run_is_whole(RunFolder(run_folder))


def test_a_recording_in_transcribe(commands, tiny_runs: TinyRuns):
    recording = tiny_runs.utterances[3].audio
    folders = [commands.folder / name for name in ("stalled_texts", "texts_then")]
    arguments = [recording.parent, *tiny_runs.both, "--output"]
    with stalled(recording):
        condition = lambda: has_named(commands, recording)  # noqa: E731
        check_stopped(
            run(commands, "transcribe", [*arguments, folders[0]], send=signal.SIGINT, condition=condition)
        )
        assert temporary_files(folders[0]) == []
    with stalled(recording) as answer:
        ended = run(
            commands, "transcribe", [*arguments, folders[0]], condition=answering(commands, recording, answer)
        )
        assert ended.code == 0 and has_named(commands, recording), ended.output
    assert commands.run("transcribe", *arguments, folders[1]).code == 0
    assert bytes_of(folders[0]) == bytes_of(folders[1]) and len(bytes_of(folders[0])) == 14


@pytest.mark.timeout(600)
def test_a_recording_that_worker_processes_read(commands, tiny_runs: TinyRuns, nightly):
    """Ctrl-C ends the command and its processes; after some time a process itself names the file."""
    recording = tiny_runs.utterances[3].audio
    lines = "".join(f"{n}\t{u.audio}\t1\ts\tma1\t妈\n" for n, u in enumerate(tiny_runs.utterances * 30))
    header = "id\taudio\tseconds\tspeaker\tpinyin\thanzi\n"
    corpus = write(commands.folder / "stalled_corpus" / "train.tsv", header + lines).parent
    output = commands.folder / "stalled_lists"
    arguments = ["prepare", corpus, "--output", output, "--workers", 2]
    with stalled(recording) as answer:
        condition = answering(commands, recording, answer) if nightly else waited_for.is_set
        ended = run(
            commands, "data.corpora.manifest_lists", arguments, condition=condition, send=signal.SIGINT
        )
        if nightly:
            assert ended.code == 0 and has_named(commands, recording), ended.output
        else:
            check_stopped(ended)
            assert bytes_of(output) == {}
    assert commands.run("prepare listed", *arguments).code == 0
