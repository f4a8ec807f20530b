"""Makes a virtual environment with pinned packages and returns its Python interpreter."""

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.converters.entry import Missing
from utils.files import write_text


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
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line.strip() for line in done.stderr.splitlines() if "error" in line.lower()]
        raise Missing(f"can't be installed: {(errors or ['pip failed'])[0]}")
    write_text(listed, content)
    return python
