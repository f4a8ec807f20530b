"""Names of the temporary files beside which a file or folder is written before it is renamed into place."""

from __future__ import annotations

import os
import platform
import re
import zlib
from pathlib import Path

import psutil

_MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
_NAME = re.compile(r"\.(\d+)-([0-9a-f]{8})\..+")  # process and machine that write it, the file's name


def temporary_path(path: Path) -> Path:
    """A path beside ``path`` that no other process writes to; it keeps the ending of ``path``."""
    return path.with_name(f".{os.getpid()}-{_MACHINE}.{path.name}")


def is_temporary(path: Path) -> bool:
    """Whether the name is one of :func:`temporary_path`."""
    return _NAME.fullmatch(path.name) is not None


def writer_is_gone(path: Path) -> bool:
    """Whether a temporary file was made on this machine, by a process that has ended."""
    found = _NAME.fullmatch(path.name)
    return bool(found) and found[2] == _MACHINE and not psutil.pid_exists(int(found[1]))
