"""Lets only one process at a time write a run folder, by a file lock that ends with the process."""

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from io import FileIO

from utils.errors import RunError
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")


@contextmanager
def locked(run: RunFolder) -> Iterator[None]:
    """Lock the run folder until the block ends or the process dies; create the folder if necessary.

    The lock belongs to the open file, so the file of a killed process is not locked. The file stays in the
    folder; its content only names the holder.

    Raises:
        RunError: another process holds the lock; its process id is named.
        OSError: the folder can't be written.
    """
    run.path.mkdir(parents=True, exist_ok=True)
    with run.lock.open("a+b", buffering=0) as file:
        if not _lock(file):
            raise RunError(
                f"another process writes this folder ({_holder(run)})",
                where=run.path,
                hint="wait until it has finished, stop it, or name another folder",
            )
        _write_holder(file)
        yield


def _lock(file: FileIO) -> bool:
    """Lock the file; False if another process has locked it."""
    try:
        import fcntl  # not on Windows
    except ImportError:
        log.warning("this system has no file locks: two processes in one folder are not detected")
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # some network file systems
        log.warning("%s can't be locked (%s): make sure that only one process writes there", file.name, error)
    return True


def _write_holder(file: FileIO) -> None:
    now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    holder = {"process": os.getpid(), "host": socket.gethostname(), "since": now}
    try:
        file.truncate(0)
        file.write(json.dumps(holder).encode())
    except OSError as error:  # the error of a full disk has no file name
        error.filename = file.name
        raise


def _holder(run: RunFolder) -> str:
    """Names the process that holds the lock, unless it has not written its name yet."""
    try:
        holder = json.loads(run.lock.read_bytes())
    except ValueError:
        return "it has just begun"
    return f"process {holder['process']} on {holder['host']}, since {holder['since']}"
