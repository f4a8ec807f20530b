"""Files that are either the old or the new, never half-written."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from utils.run_folder import checksums
from utils.temporary import is_temporary, temporary_path, writer_is_gone

_ZEROS = 1 << 20  # bytes that are written at a time
_LEFT_OVER = 3600.0  # seconds without a change; whoever still wrote a file would have finished it


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; rename it to ``path`` when the block ends well.

    In a run folder its checksum is recorded (:mod:`utils.run_folder.checksums`). The temporary name keeps the
    ending of ``path`` (Keras and NumPy look at it). If the block raises, the temporary file is removed and
    ``path`` stays as it was; what a killed process leaves there goes with :func:`remove_leftovers`.

    Raises:
        OSError: the file can't be written; its ``filename`` is ``path``.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        yield temporary
        checksums.replace(temporary, path)
    except OSError as error:
        if error.filename in (None, str(temporary)):  # a full disk is told without a name
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Give a new folder beside ``path``; rename it to ``path`` when the block ends well.

    What stood at ``path`` goes only then. If the block raises, the new folder is removed and ``path`` stays
    as it was; what a killed process leaves there goes with :func:`remove_leftovers` or the next call.

    Raises:
        OSError: the folder can't be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, deep=False)
    temporary = temporary_path(path)
    outgoing = temporary.with_name(f"{temporary.name}.old")
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            path.replace(outgoing)
        temporary.replace(path)
    finally:
        for left in (temporary, outgoing):
            shutil.rmtree(left, ignore_errors=True)


def is_file(path: str | Path) -> bool:
    """Whether there is a file; no name that a list may hold is an error (too long, a zero byte)."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for such names


def remove_leftovers(folder: str | Path, deep: bool = True) -> None:
    """Remove temporary files and folders in ``folder`` that nobody writes any more: a process was killed.

    It may have been one of this machine that is gone, or one of another machine an hour ago.

    Args:
        folder: where to look.
        deep: look in its folders too.
    """
    for path in list(Path(folder).rglob(".*") if deep else Path(folder).glob(".*")):
        if not is_temporary(path):
            continue
        with suppress(FileNotFoundError):
            if writer_is_gone(path) or time.time() - path.stat().st_mtime > _LEFT_OVER:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def reserve(path: str | Path, size: int) -> None:
    """Make sure that ``size`` bytes can be written to ``path``: for writers that don't bear a full disk.

    Where the system can't allocate them (macOS, some file systems), they are written, which takes longer.

    Raises:
        OSError: the disk or the quota is too small, or forbidden; ``filename`` is ``path``.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=path.parent, buffering=0) as file:
            if not _allocated(file.fileno(), size):
                for start in range(0, size, _ZEROS):
                    _write_all(file.fileno(), bytes(min(_ZEROS, size - start)))
    except OSError as error:
        error.filename = str(path)
        raise


def _allocated(descriptor: int, size: int) -> bool:
    """Whether the system has allocated ``size`` bytes; False: it has no way to."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except AttributeError:  # macOS
        return False
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            return False
        raise
    return True


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of an ``.npz`` file.

    Raises:
        OSError: the file can't be read.
        RunError: it lies in a run folder and has changed since it was written there.
        ValueError: it is damaged, in whatever way.
    """
    checksums.verified(path)
    try:
        # Opened here: np.load leaves a damaged file open.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as saved:
            return {name: saved[name] for name in saved.files}
    except OSError:
        raise
    except Exception as error:  # of zip, of zlib, of NumPy's header: a dozen kinds
        raise ValueError(f"damaged: {str(error) or type(error).__name__}") from error


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text with Unix line ends, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: object) -> None:
    """Write a JSON file (UTF-8, indented, hanzi readable), whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")
