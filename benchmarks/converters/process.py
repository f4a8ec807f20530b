"""A converter's command in; its answers, the seconds they took and the memory they needed out."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.converters.entry import ROOT
from utils.errors import RunError

_TAIL = 400  # characters of what it complained of


class ConverterProcess:
    """A converter at work in its own process; a context manager.

    Args:
        name: for errors.
        arguments: the command (:class:`benchmarks.converters.entry.Command`).
    """

    def __init__(self, name: str, arguments: Sequence[str]):
        self._name = name
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints
        )

    def __enter__(self) -> ConverterProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # what it would save at its end is of no use to anybody
        self._process.communicate()
        self._complaints.close()

    def convert(self, lines: Sequence[str]) -> list[str]:
        """The answer to each line; an empty line has an empty one.

        Raises:
            RunError: the converter has ended.
        """
        asked = [line for line in lines if line]
        # It may answer before it has read all: who only writes meanwhile would fill both pipes.
        writer = threading.Thread(target=self._write, args=("".join(f"{line}\n" for line in asked),))
        writer.start()
        answers = iter([self._answer() for _ in asked])
        writer.join()
        return [next(answers) if line else "" for line in lines]

    def processor_seconds(self) -> float:
        """What it has used of all cores so far."""
        times = psutil.Process(self._process.pid).cpu_times()
        return times.user + times.system

    def peak_memory(self) -> int:
        """Bytes that it has held at most; where the system doesn't tell (not Linux), what it holds now."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii", errors="replace")
            return next(int(row.split()[1]) << 10 for row in status.splitlines() if row.startswith("VmHWM:"))
        except (OSError, StopIteration):
            return psutil.Process(self._process.pid).memory_info().rss

    def _write(self, text: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(f"{text}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which whoever waits for its answer reports

    def _answer(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            self._process.wait()
            self._complaints.seek(0)
            said = " ".join(self._complaints.read().decode("utf-8", "replace").split())[-_TAIL:]
            what = f"the converter '{self._name}' has ended ({said or self._process.returncode})"
            raise RunError(what, hint="leave it out with --only, or reinstall it")
        return line.decode("utf-8", "replace").rstrip("\r\n")
