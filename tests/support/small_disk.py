"""A file system of some kilobytes, which can grow or become read-only, for tests of full disks."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted file system.

    Attributes:
        path: the mount point.
    """

    def __init__(self, path: Path):
        self.path = path

    def free(self, kilobytes: int) -> None:
        """Resize it so that this much space is free."""
        used = int(subprocess.check_output(["du", "-sk", str(self.path)]).split()[0])
        self._mount(f"remount,size={used + kilobytes}k")

    def read_only(self) -> None:
        """Make it read-only, also for root."""
        self._mount("remount,ro")

    def _mount(self, options: str) -> None:
        subprocess.run(["mount", "-o", options, str(self.path)], check=True)


@contextmanager
def small_disk(path: Path, kilobytes: int) -> Iterator[SmallDisk]:
    """Mount a small disk; the test is skipped where that isn't allowed."""
    path.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
