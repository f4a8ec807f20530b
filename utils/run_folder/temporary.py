"""Names of temporary files: they hold process id and machine, so that abandoned files can be recognised.

A file or folder is written under such a name, then renamed (:mod:`utils.files`). A container counts as a
machine: it may have the host's name, but has process ids of its own.
"""

import os
import platform
import re
import time
import zlib
from functools import cache
from pathlib import Path

import psutil

_OF_ANOTHER_MACHINE = 3600.0
"""Seconds without a change."""
_NAME = re.compile(r"\.(\d+)-([0-9a-f]{8})\..+")  # process id, machine, name of the final file


def temporary_path(path: Path) -> Path:
    """A path beside ``path`` that no other process uses; it keeps the suffix of ``path``."""
    return path.with_name(f".{os.getpid()}-{_machine()}.{path.name}")


def is_temporary(path: Path) -> bool:
    """Whether the name was made by :func:`temporary_path`."""
    return _NAME.fullmatch(path.name) is not None


def is_abandoned(path: Path) -> bool:
    """Whether nobody writes a temporary file or folder any more.

    That of this machine is abandoned when its process has ended. Whether a process of another machine still
    runs is not known: its file is abandoned when it has not changed for an hour.

    Raises:
        OSError: the file isn't there any more.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        return False
    if match[2] != _machine():
        return time.time() - path.stat().st_mtime > _OF_ANOTHER_MACHINE
    return not psutil.pid_exists(int(match[1]))


@cache
def _machine() -> str:
    """8 hexadecimal digits of the machine and, on Linux, of the namespace of its process ids."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{zlib.crc32(f'{platform.node()}{namespace}'.encode()):08x}"
