"""Names of temporary files: they hold process id and machine, so that abandoned files can be recognised.

A file or folder is written under such a name, then renamed (:mod:`utils.files`).
"""

import os
import platform
import re
import zlib
from pathlib import Path

import psutil

_MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"
_NAME = re.compile(r"\.(\d+)-([0-9a-f]{8})\..+")  # process id, machine, name of the final file


def temporary_path(path: Path) -> Path:
    """A path beside ``path`` that no other process uses; it keeps the suffix of ``path``."""
    return path.with_name(f".{os.getpid()}-{_MACHINE}.{path.name}")


def is_temporary(path: Path) -> bool:
    """Whether the name was made by :func:`temporary_path`."""
    return _NAME.fullmatch(path.name) is not None


def writer_is_gone(path: Path) -> bool:
    """Whether a temporary file was made by a process of this machine that has ended."""
    match = _NAME.fullmatch(path.name)
    return bool(match) and match[2] == _MACHINE and not psutil.pid_exists(int(match[1]))
