"""Checks the Containerfile: no root, only files that the service needs, a health check."""

import re
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


def copied() -> list[str]:
    return [source for line in of("COPY") if not line.startswith("--from") for source in line.split()[:-1]]


def test_copied_files_exist_and_are_not_ignored():
    ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
    for source in copied():
        assert (ROOT / source).exists()
        top = source.split("/")[0]
        assert f"!{top}" in ignored or f"!{top}/" in ignored
    assert ignored[1] == "*"


@pytest.mark.nightly
def test_the_service_needs_only_the_copied_files(tmp_path: Path):
    """The service runs in a folder with these files only, whose packages can't be changed."""
    for source in copied():
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).symlink_to(ROOT / source)
    script = (tmp_path / "serve.py").read_text(encoding="utf-8")
    (tmp_path / "serve.py").unlink()
    (tmp_path / "serve.py").write_text(script, encoding="utf-8")
    with running_service("--workers", "1", folder=tmp_path) as service:
        assert service.get("/readyz")[0] == 200
