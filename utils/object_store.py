"""Reads files by their paths or, with fsspec, by addresses in a store (``s3://bucket/file``, ``https://…``).

A store is read in place: nothing is copied to this machine's disk. fsspec and the package of the protocol
are optional (`requirements/object_store.txt`); where a protocol takes keys or options, they come from its own
environment variables or from fsspec's configuration files.
"""

import errno
import importlib
import io
import os
from pathlib import Path

from utils.addresses import address_of
from utils.errors import ConfigError, StoreError

INSTALL = "pip install -r requirements/object_store.txt"


def file_state(path: str | Path) -> str:
    """What a file is known by: path, size and time of change; an object of a store by its address alone.

    Raises:
        OSError, ValueError: there is no such file.
    """
    if address := address_of(path):
        return address
    # Path.absolute takes longer than everything else here, and every training starts with this.
    absolute = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118
    state = os.stat(absolute)  # noqa: PTH116
    return f"{absolute}\n{state.st_size}\n{state.st_mtime_ns}"


def open_file(path: str | Path) -> io.BufferedReader | io.BytesIO:
    """Open a file of this machine, or the content of an object, which is read at once.

    Raises:
        OSError: the file can't be opened; FileNotFoundError: there is no such file or object.
        ConfigError, StoreError: as for :func:`read_part`.
    """
    if address_of(path):
        return io.BytesIO(read_part(path))
    return Path(path).open("rb")


def read_part(path: str | Path, start: int = 0, size: int | None = None) -> bytes:
    """Read some bytes of a file or object; fewer if it ends before.

    Args:
        path: path or address.
        start: the first byte.
        size: number of bytes; None for all that follow.

    Raises:
        OSError: the file can't be read; FileNotFoundError: there is no such file or object.
        ConfigError: a package is missing, or the protocol is unknown.
        StoreError: the store does not answer, or refuses.
    """
    if address := address_of(path):
        return _read_object(address, start, size)
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - called for each utterance
        file.seek(start)
        return file.read(-1 if size is None else size)


def _read_object(address: str, start: int, size: int | None) -> bytes:
    try:
        system, name = importlib.import_module("fsspec").url_to_fs(address)
    except (ImportError, ValueError) as error:  # ImportError names the package of the protocol
        raise ConfigError(f"this address can't be read: {error}", where=address, hint=INSTALL) from error
    try:
        return system.cat_file(name, start=start or None, end=None if size is None else start + size)
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, "no such file", address) from error
    except Exception as error:  # each store has its own
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise StoreError(
            f"the store can't be read ({reason})",
            where=address,
            hint="check the network and your permissions, then run the same command again",
        ) from error
