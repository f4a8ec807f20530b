"""Runs a command in a separate process and measures its time and its memory over time."""

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from utils.errors import RunError

ROOT = Path(__file__).resolve().parents[2]
SAMPLED_EVERY = 0.2  # seconds


@dataclass(frozen=True)
class Measured:
    """Memory of a process in bytes, sampled evenly from its first output on, its maximum, and its seconds."""

    memory: np.ndarray
    peak: int
    seconds: float

    def growth(self) -> str:
        """Mean memory in the first and the last tenth of the samples, and the difference."""
        tenth = max(len(self.memory) // 10, 1)
        first, last = self.memory[:tenth].mean(), self.memory[-tenth:].mean()
        return f"{first / 2**20:8.0f} MiB, {last / 2**20:.0f} MiB: grown by {last / first - 1:.1%}"


def watched(command: Sequence[str], at_work: Callable[[], bool], output: Path | None = None) -> Measured:
    """Run a command in the project's folder.

    Args:
        command: program and arguments.
        at_work: whether it has produced its first output; memory is recorded from then on.
        output: file for its output; None: the terminal.

    Raises:
        RunError: it failed.
    """
    print("$ python", *command[1:], flush=True)
    began, memory, peak = time.monotonic(), [], 0
    with (
        output.open("wb") if output else nullcontext() as file,
        subprocess.Popen(command, cwd=ROOT, stdout=file) as process,
    ):
        child = psutil.Process(process.pid)
        while process.poll() is None:
            used = _memory(child)
            peak = max(peak, used)
            if used and at_work():
                memory.append(used)
            time.sleep(SAMPLED_EVERY)
    if process.returncode:
        raise RunError(f"{command[1]} ended with exit code {process.returncode}")
    return Measured(np.array(memory), peak, time.monotonic() - began)


def _memory(process: psutil.Process) -> int:
    """Resident bytes of a process and its children; 0 when it has gone."""
    try:
        return sum(member.memory_info().rss for member in [process, *process.children(recursive=True)])
    except psutil.NoSuchProcess:
        return 0
