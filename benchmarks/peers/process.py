"""Runs the command of a peer, exchanges lines with it, and measures its peak memory."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.support.commands import ROOT
from utils.errors import RunError

_TAIL = 400  # last characters of the standard error that a message quotes


class PeerProcess:
    """A peer in a process of its own; a context manager.

    Args:
        name: name for messages.
        arguments: command line of a program that answers as :mod:`benchmarks.peers.serve` does.
    """

    def __init__(self, name: str, arguments: Sequence[str]):
        self._name = name
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it is killed, because it has nothing to save
        self._process.communicate()
        self._stderr.close()

    def answers(self, lines: Sequence[str]) -> list[str]:
        """The output for each line; empty for an empty line.

        Raises:
            RunError: the process has ended.
        """
        given = [line for line in lines if line]
        # It may write before it has read all lines: without a thread both pipes could fill up.
        writer = threading.Thread(target=self._write, args=("".join(f"{line}\n" for line in given),))
        writer.start()
        outputs = iter([self._read_line() for _ in given])
        writer.join()
        return [next(outputs) if line else "" for line in lines]

    def peak_memory(self) -> int:
        """Peak memory in bytes (Linux)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii", errors="replace")
        return next(int(row.split()[1]) << 10 for row in status.splitlines() if row.startswith("VmHWM:"))

    def _write(self, text: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(f"{text}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has ended, which _read_line reports

    def _read_line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            self._process.wait()
            self._stderr.seek(0)
            printed = " ".join(self._stderr.read().decode("utf-8", "replace").split())[-_TAIL:]
            message = f"'{self._name}' has ended ({printed or self._process.returncode})"
            raise RunError(message, hint="leave it out with --only, or reinstall it")
        return line.decode("utf-8", "replace").rstrip("\r\n")
