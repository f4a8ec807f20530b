"""Checks the Containerfile: pinned base, only files that the service needs; runs its steps in a folder."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scripts import ROOT
from tests.support.service import running_service

TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """(name, arguments) of each instruction, with continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", TEXT)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def of(name: str) -> list[str]:
    return [arguments for each, arguments in instructions() if each == name]


def copied() -> list[tuple[str, str]]:
    """(source, target) of all files that are copied into the image."""
    lines = [line.split() for line in of("COPY") if not line.startswith("--from")]
    return [(source, line[-1]) for line in lines for source in line[:-1]]


def test_the_base_is_pinned_and_nothing_runs_as_root():
    (base,) = of("ARG")
    assert re.fullmatch(r"PYTHON=[\w./:-]+@sha256:[0-9a-f]{64}", base)
    assert [line.split()[0] for line in of("FROM")] == ["$PYTHON", "$PYTHON"]
    assert of("USER") == ["10001:10001"]


def test_copied_files_exist_and_are_not_ignored():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for source, _ in copied():
        assert (ROOT / source).exists()
        top = source.split("/")[0]
        assert f"!{top}" in ignored or f"!{top}/" in ignored
    assert ignored[1] == "*"


@pytest.mark.parametrize(
    "installed", [False, pytest.param(True, marks=[pytest.mark.nightly, pytest.mark.timeout(1200)])]
)
def test_the_steps_give_a_service_that_is_healthy(tmp_path: Path, installed):
    """All but the installation of the packages, which needs a network and minutes; nightly that too."""
    service, venv = tmp_path / "service", tmp_path / "venv"
    for source, target in copied():
        path = tmp_path / target if target == "/" else service / target
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, path, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            path.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, path)
    for command in of("RUN"):
        if installed or "/venv" not in command:
            run(command, tmp_path)
    (compiled,) = (service / "serving" / "__pycache__").glob("server.*.pyc")
    assert compiled.read_bytes()[4] == 1, "not compared with the time of the source"
    before = sorted(tmp_path.rglob("*"))
    python = str(venv / "bin" / "python") if installed else sys.executable
    (entry,) = map(json.loads, of("ENTRYPOINT"))
    assert entry[:2] == ["python", "serve.py"]
    with running_service(
        "--workers", "1", folder=service, python=python, PYTHONDONTWRITEBYTECODE="1"
    ) as found:
        (check,) = of("HEALTHCHECK")
        port = found.url.rpartition(":")[2]
        _, *words = json.loads(check.partition("CMD ")[2].replace("8000", port))
        assert subprocess.run([python, *words], check=False).returncode == 0
    assert sorted(tmp_path.rglob("*")) == before, "the file system may be read-only"


def run(command: str, root: Path) -> None:
    """A command of RUN in a folder instead of the root of an image, with this Python and its pip."""
    replaced = re.sub(r"(?<= )/(?=venv|serve\.lock|service)", f"{root}/", command)
    python = shlex.quote(sys.executable)
    replaced = re.sub(
        r"\bpython -m", f"{python} -m", re.sub(r"\bpip --python", f"{python} -m pip --python", replaced)
    )
    subprocess.run(replaced, shell=True, check=True)
