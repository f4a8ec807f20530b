"""Runs our commands in separate processes that start at once and may be killed.

Loading TensorFlow takes seconds. One server process loads it, but computes nothing with it; for each command
it forks a child, which can then do everything (a fork of a process that has computed could lock up). A child
can be killed after some time, when it is about to change the file system for the nth time, or in the middle
of writing a file.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path(__file__).parents[2]
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink", "shutil.rmtree"}


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: exit code; -9 when it was killed.
        output: both streams.
        seconds: its duration.
        changes: number of changes to files and folders below the server's folder, if it ended normally.
    """

    code: int
    output: str
    seconds: float
    changes: int


class ForkServer:
    """Runs commands in children of a server process; use it in a ``with`` block.

    Args:
        folder: folder for the output of the commands and for their files.
    """

    def __init__(self, folder: Path):
        self.folder, self._count = folder, 0
        # One thread each: a test must not take all cores, and only processes of one thread may be forked.
        limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server"],
            cwd=ROOT,
            env={**os.environ, **limits},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == {"ready": 1}, "the server's process has threads: its forks could lock up"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stdin.close()
        self._server.wait(timeout=200)

    def run(
        self,
        command: str,
        *arguments: object,
        send: int = signal.SIGKILL,
        after: float | None = None,
        at_change: int = 0,
        at_size: int = 0,
        condition: Callable[[], bool] | None = None,
    ) -> Ended:
        """Run one of ``COMMANDS``, possibly killed on the way.

        Args:
            command: name of the command.
            arguments: arguments of its command line.
            send: the signal; any but SIGKILL goes to the whole process group, as that of Ctrl-C does.
            after: seconds until the signal.
            at_change: it is killed before its change of this number below the folder; 0: never.
            at_size: it is killed while it writes a file, of which this number of bytes is written; 0: never.
            condition: the signal is sent as soon as this is true.
        """
        self._count += 1
        output = self.folder / f"{self._count}.txt"
        output.touch()  # the child may be killed before it opens this file
        job = {
            "command": command,
            "arguments": list(map(str, arguments)),
            "folder": f"{self.folder}{os.sep}",
            "at": at_change,
            "size": at_size,
            "output": str(output),
        }
        began = time.monotonic()
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        pid = self._answer()["pid"]
        ended = threading.Event()
        if after is not None or condition:
            timer = threading.Thread(target=_signal_group, args=(pid, send, after, condition, ended))
            timer.start()
        answer = self._answer()
        seconds = time.monotonic() - began
        ended.set()
        _see_the_group_end(pid)
        if after is not None or condition:
            timer.join()
        return Ended(answer["code"], output.read_text(encoding="utf-8"), seconds, answer["changes"])

    def _answer(self) -> dict[str, int]:
        line = self._server.stdout.readline()
        assert line, "the server has died"
        return json.loads(line)


def _signal_group(
    pid: int, send: int, after: float | None, condition: Callable[[], bool] | None, ended: threading.Event
) -> None:
    if condition:
        while not ended.is_set() and not condition():
            time.sleep(0.002)
    if not ended.wait(after or 0.0):
        with suppress(ProcessLookupError):
            os.kill(pid, send) if send == signal.SIGKILL else os.killpg(pid, send)


def _see_the_group_end(group: int, seconds: float = 200.0) -> None:
    """Wait for the processes that a command has started: none may outlive it for long."""
    end = time.monotonic() + seconds
    while left := [process.pid for process in psutil.process_iter() if _is_running_in(process, group)]:
        assert time.monotonic() < end, f"processes {left} have outlived their command"
        time.sleep(0.05)


def _is_running_in(process: psutil.Process, group: int) -> bool:
    with suppress(ProcessLookupError, psutil.Error):
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    return False


def _serve() -> None:
    # Here, because importers of ForkServer don't need them.
    import preflight.recipes  # noqa: F401
    import recognition.loading  # noqa: F401 - the commands load it late
    import train
    import training.feature_shards
    import transcribe
    from data.corpora import kaldi, manifest_lists
    from tests.support.scripts import load_script

    commands = {
        "prepare kaldi": kaldi.main,
        "prepare listed": manifest_lists.main,
        "train": train.main,
        "test": load_script("test.py").main,
        "transcribe": transcribe.main,
        "features": training.feature_shards.main,
        "export": load_script("export.py").main,
        "python": _run_code,
    }
    gc.freeze()  # exempt imported modules from garbage collection, which would copy them in each child
    _report(ready=len(list(Path("/proc/self/task").iterdir())))
    for line in sys.stdin:
        job = json.loads(line)
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            _child(commands[job["command"]], job, write_end)
        os.close(write_end)
        os.setpgid(pid, pid)
        _report(pid=pid)
        changes = os.read(read_end, 20)
        os.close(read_end)
        _, status = os.waitpid(pid, 0)
        _report(code=os.waitstatus_to_exitcode(status), changes=int(changes or -1))


def _run_code(arguments: Sequence[str]) -> int:
    """Run code as ``python -c`` does, with Keras loaded."""
    exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})
    return 0


def _report(**values: int) -> None:
    print(json.dumps(values), flush=True)


def _child(main: Callable[[Sequence[str]], int], job: dict, report: int) -> None:
    from utils.command.entry import run_command

    # A shell starts background jobs with Ctrl-C ignored, and the test runner may be such a job.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # JAX's, loaded by Keras where it is installed: a Ctrl-C during it is lost.
    gc.callbacks.clear()
    os.set_inheritable(report, False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    changes = _watch_changes(job["folder"], job["at"])
    if job["size"]:
        _die_at_size(job["size"])
    code = 1
    try:
        run_command(lambda: main(job["arguments"]))
    except SystemExit as error:
        code = error.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # As the end of Python does: Ctrl-C while a pool starts a thread leaves the pool not waiting for it.
        for thread in threading.enumerate():
            # Without an identity where the interrupt fell between its entry in the list and its start.
            if thread is not threading.current_thread() and not thread.daemon and thread.ident:
                thread.join()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(report, str(changes[0]).encode())
        os._exit(code)


def _watch_changes(folder: str, last: int) -> list[int]:
    """Count changes to files below ``folder``; kill this process before number ``last``."""
    seen = [0]

    def note(event: str, arguments: tuple) -> None:
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        changes = writes or event in CHANGES
        if changes and str(arguments[0]).startswith(folder):
            seen[0] += 1
            if seen[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(note)
    return seen


def _die_at_size(size: int) -> None:
    """Let the system kill this process when a file reaches this size; Python would raise an error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


if __name__ == "__main__":
    _serve()
    os._exit(0)  # the normal end of TensorFlow takes long
