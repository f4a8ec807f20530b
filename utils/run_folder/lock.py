"""A run folder → held by one training at a time, with a lock that the system drops when its process ends."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from io import FileIO

from utils.errors import RunError
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")

_PATIENCE = 1.0  # seconds in which a process that has just locked the file writes who it is
_ASK_AGAIN = 0.05


@contextmanager
def locked(run: RunFolder) -> Iterator[None]:
    """Hold the run folder, which is made if it is not there, until the block ends or the process dies.

    The lock belongs to the open file, not to its name: the file that a killed process leaves behind is free.
    It only tells others who holds the lock, and is removed at the end, with a folder that is still empty.

    Raises:
        RunError: another process holds it; its process id is named.
        OSError: the folder can't be written.
    """
    made = not run.path.exists()
    file = _acquire(run)
    try:
        _write_holder(file)
        yield
    finally:
        run.lock.unlink(missing_ok=True)  # before it is free: see _acquire
        file.close()
        if made:
            with suppress(OSError):  # something is in it
                run.path.rmdir()


def _acquire(run: RunFolder) -> FileIO:
    while True:
        run.path.mkdir(parents=True, exist_ok=True)
        try:
            file = run.lock.open("a+b", buffering=0)
        except FileNotFoundError:  # another process has removed the folder that it had made
            continue
        try:
            if not _lock(file):
                raise _held(run)
            if _is_the_file_of(run, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # locked too late: its holder has removed it, and a new one may be in its place


def _lock(file: FileIO) -> bool:
    """Whether the file is now locked by this process rather than by another one."""
    try:
        import fcntl  # not on Windows
    except ImportError:
        log.warning("this system has no file locks: two trainings on one run folder would not be noticed")
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # some network file systems
        log.warning("%s can't be locked (%s): see that only one training writes it", file.name, error)
    return True


def _is_the_file_of(run: RunFolder, file: FileIO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), run.lock.stat())
    except FileNotFoundError:
        return False


def _write_holder(file: FileIO) -> None:
    now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    holder = {"process": os.getpid(), "host": socket.gethostname(), "since": now}
    try:
        file.truncate(0)
        file.write(json.dumps(holder).encode())
    except OSError as error:  # a full disk is told without a name
        error.filename = file.name
        raise


def _held(run: RunFolder) -> RunError:
    """The error that names the process which holds the lock."""
    deadline = time.monotonic() + _PATIENCE
    holder = "another process"
    while time.monotonic() < deadline:
        try:
            values = json.loads(run.lock.read_bytes())
            holder = f"process {values['process']} on {values['host']}, since {values['since']}"
            break
        except (OSError, ValueError, KeyError, TypeError):  # not written yet
            time.sleep(_ASK_AGAIN)
    hint = "wait until it has finished, stop it, or give another --run"
    return RunError(f"another training writes this run ({holder})", where=run.path, hint=hint)
