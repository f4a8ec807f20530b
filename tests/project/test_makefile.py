"""Tests of the Makefile: which Python the environment is made with, and the message if there is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("python3", "python3.13", "python3.12", "python3.11")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the Makefile, and four interpreters in ``bin`` that the project does not run on."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    (tmp_path / "bin").mkdir()
    for name in NAMES:
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def make(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [[], ["PYTHON=/not/there"]])
def test_without_a_supported_python_the_message_says_what_to_install(project, arguments):
    done = make(project, "demo", *arguments)
    assert done.returncode == 2
    name = "/not/there" if arguments else "python3"
    assert f"error: {name} is not Python 3.11.4 to 3.13" in done.stderr
    assert "make PYTHON=" in done.stderr
    assert not (project / ".venv").exists()


def test_the_environment_is_made_with_a_supported_python(project):
    (project / "bin" / "python3.12").unlink()
    (project / "bin" / "python3.12").symlink_to(sys.executable)
    planned = make(project, "--dry-run", "demo").stdout
    assert "|| python3.12 -m venv .venv" in planned
    chosen = make(project, "--dry-run", "demo", f"PYTHON={sys.executable}").stdout
    assert f"|| {sys.executable} -m venv .venv" in chosen
