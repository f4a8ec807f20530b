"""Lets only one process at a time write a run folder, by a file lock that ends with the process."""

import json
import logging
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from io import FileIO
from pathlib import Path

from utils.errors import RunError
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")

_HOLDER_SECONDS = 1.0  # longest wait for a process that has just locked the file to write its id
_POLL_SECONDS = 0.05  # time between two attempts to read that id


@contextmanager
def locked(run: RunFolder) -> Iterator[None]:
    """Lock the run folder until the block ends or the process dies; create the folder if necessary.

    The lock belongs to the open file, so the file of a killed process is not locked. The content of the file
    only names the holder. The file is removed at the end, and the folder too if it is still empty.

    Raises:
        RunError: another process holds the lock; its process id is named.
        OSError: the folder can't be written.
    """
    created = not run.path.exists()
    file = _acquire(run)
    try:
        _write_holder(file)
        yield
    finally:
        run.lock.unlink(missing_ok=True)  # before the lock is released: see _acquire
        file.close()
        if created:
            with suppress(OSError):  # the folder is not empty
                run.path.rmdir()


def _acquire(run: RunFolder) -> FileIO:
    while True:
        try:
            _create_folder(run.path)
            file = run.lock.open("a+b", buffering=0)
        except FileNotFoundError:  # another process has removed the folder that it had created
            continue
        try:
            if not _lock(file):
                raise _locked_error(run)
            if _is_current(run, file):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # the holder has removed this file in the meantime, and there may be a new one


def _create_folder(path: Path) -> None:
    """Create the folder if necessary.

    ``Path.mkdir(exist_ok=True)`` alone raises FileExistsError if another process removes the folder between
    the attempt to create it and the check that what exists is a folder.

    Raises:
        FileNotFoundError: the folder existed and has just been removed.
        FileExistsError: a file that is not a folder has this name.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        if path.is_symlink() or not stat.S_ISDIR(path.stat().st_mode):
            raise


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


def _is_current(run: RunFolder, file: FileIO) -> bool:
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
    except OSError as error:  # the error of a full disk has no file name
        error.filename = file.name
        raise


def _locked_error(run: RunFolder) -> RunError:
    """The error that names the process which holds the lock."""
    deadline = time.monotonic() + _HOLDER_SECONDS
    holder = "another process"
    while time.monotonic() < deadline:
        try:
            values = json.loads(run.lock.read_bytes())
            holder = f"process {values['process']} on {values['host']}, since {values['since']}"
            break
        except (OSError, ValueError, KeyError, TypeError):  # not written yet
            time.sleep(_POLL_SECONDS)
    return RunError(
        f"another process writes this folder ({holder})",
        where=run.path,
        hint="wait until it has finished, stop it, or name another folder",
    )
