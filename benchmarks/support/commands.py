"""Runs the ordinary commands for a benchmark: what they print, or their time and memory."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from utils.errors import RunError

ROOT = Path(__file__).resolve().parents[2]


class Cost(NamedTuple):
    """Seconds from the start to the end of a process, and its peak memory in bytes (Linux)."""

    seconds: float
    peak_memory: int


def run(*arguments: str) -> str:
    """Run ``python ARGUMENTS`` in the project's folder and return its standard output; progress is shown.

    Raises:
        subprocess.CalledProcessError: it failed, after printing the reason.
    """
    print("$ python", *arguments, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def measured(*arguments: str, output: Path) -> Cost:
    """Run ``python ARGUMENTS`` in the project's folder and measure it.

    Args:
        arguments: the command.
        output: file for its standard output.

    Raises:
        RunError: it failed.
    """
    print("$ python", *arguments, file=sys.stderr, flush=True)
    began = time.monotonic()
    with output.open("wb") as file:
        process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=file)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RunError(f"{arguments[0]} ended with exit code {process.returncode}")
    return Cost(time.monotonic() - began, usage.ru_maxrss << 10)
