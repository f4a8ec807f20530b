"""Runs the ordinary commands for a benchmark and returns what they print."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
