"""The ordinary commands, run for a benchmark: arguments in, what they print out."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> str:
    """``python ARGUMENTS`` in the project's folder; its standard output, while progress goes to the terminal.

    Raises:
        subprocess.CalledProcessError: it failed; it has said why.
    """
    print("$ python", *arguments, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout
