"""Makes other processes wait: a lock on a file or folder, which ends with the block or the process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Only one process or thread at a time is in a block for a path; the others wait.

    A file that does not exist is created. Without locks (Windows, some network file systems) nobody waits.
    """
    try:
        import fcntl  # not on Windows
    except ImportError:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDONLY | os.O_CREAT, 0o666)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
