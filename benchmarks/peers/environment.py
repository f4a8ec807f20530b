"""Makes a virtual environment with pinned packages for a peer, and the command that runs a function in it.

Peers import this too: only the standard library is there.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path("runs/benchmarks/peers")
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


class Missing(Exception):
    """A peer cannot run on this machine; the message says what is missing and how to get it."""


def use_one_thread() -> None:
    """Let all processes that are started from now on compute with one thread."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"), TF_CPP_MIN_LOG_LEVEL="3")


def command(name: str, requirements: Sequence[str], function: str, *arguments: str) -> tuple[str, ...]:
    """The command that serves a function in the environment of a peer (:mod:`benchmarks.peers.serve`).

    Args:
        name: name of the peer, for the folder of its environment.
        requirements: pinned packages, as for pip; none: our own environment.
        function: ``module:function``.
        arguments: arguments of the function.

    Raises:
        Missing: a package cannot be installed here.
    """
    python = interpreter(FOLDER / name.replace(" ", "_"), requirements)
    return (str(python), "-m", "benchmarks.peers.serve", function, *arguments)


def interpreter(folder: Path, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment with exactly these packages, which is made if necessary.

    Args:
        folder: folder of the environment.
        requirements: requirements as for pip; none: our own interpreter.

    Raises:
        Missing: a package cannot be installed here; the message has pip's reason.
    """
    if not requirements:
        return Path(sys.executable)
    # Not resolved: the link itself makes Python use the environment.
    python, listed = (folder / "bin" / "python").absolute(), folder / "requirements.txt"
    content = "".join(f"{requirement}\n" for requirement in requirements)
    if python.exists() and listed.is_file() and listed.read_text(encoding="utf-8") == content:
        return python
    print(f"installing {', '.join(requirements)} into {folder} ...", file=sys.stderr, flush=True)
    venv.create(folder, clear=True, with_pip=True)
    pip(python, "install", *requirements)
    listed.write_text(content, encoding="utf-8")
    return python


def pip(python: Path, action: str, *arguments: str) -> None:
    """Run pip in an environment.

    Raises:
        Missing: it failed; the message has its reason.
    """
    command = [str(python), "-m", "pip", action, "-q", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line.strip() for line in done.stderr.splitlines() if "error" in line.lower()]
        raise Missing(f"can't be installed: {(errors or ['pip failed'])[0]}")


def bytes_of(paths: Iterable[Path]) -> int:
    """Size of files and of all files in folders, without compiled Python code."""
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
