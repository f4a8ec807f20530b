"""A file system of some kilobytes, which can grow or become read-only: for what happens on a full disk."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted file system.

    Attributes:
        path: where it is mounted.
    """

    def __init__(self, path: Path):
        self.path = path

    def free(self, kilobytes: int) -> None:
        """Leave so much room, whatever is on it."""
        used = int(subprocess.check_output(["du", "-sk", str(self.path)]).split()[0])
        self._mount(f"remount,size={used + kilobytes}k")

    def read_only(self) -> None:
        """Refuse all writing from now on, that of root as well."""
        self._mount("remount,ro")

    def _mount(self, options: str) -> None:
        subprocess.run(["mount", "-o", options, str(self.path)], check=True)


@contextmanager
def small_disk(path: Path, kilobytes: int) -> Iterator[SmallDisk]:
    """Mount one; the test is skipped where that isn't allowed."""
    path.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
