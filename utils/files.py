"""Writes files and folders atomically: under a temporary name, then renamed.

Also removes what killed processes left, checks free space before a write, and reads texts of the user and
``.npz`` files.
"""

import errno
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from utils.addresses import address_of
from utils.errors import UserError, unreadable
from utils.run_folder import checksums
from utils.run_folder.temporary import is_abandoned, temporary_path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, which is renamed to ``path`` when the block succeeds.

    In a run folder the checksum is recorded (:mod:`utils.run_folder.checksums`). The temporary name keeps the
    suffix of ``path``, which Keras and NumPy need. If the block raises, the temporary file is removed and
    ``path`` is unchanged. :func:`remove_leftovers` removes the temporary files of killed processes.

    Raises:
        OSError: the file can't be written; its ``filename`` is ``path``.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        with named_errors(path, temporary):
            yield temporary
            checksums.replace(temporary, path)
    finally:
        with suppress(OSError):  # where it can't be removed, the error above names ``path``
            temporary.unlink()


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Yield a new folder beside ``path``, which is renamed to ``path`` when the block succeeds.

    Only then the old folder is removed. If the block raises, the new folder is removed and ``path`` is
    unchanged. :func:`remove_leftovers` or the next call removes the temporary folders of killed processes.
    If ``path`` is a link, the folder that it leads to is replaced, on the same disk.

    Raises:
        OSError: the folder can't be written; an error without a file name gets that of ``path``.
    """
    path = Path(path).resolve()  # the name of "." is empty
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, deep=False)
    temporary = temporary_path(path)
    outgoing = temporary.with_name(f"{temporary.name}.old")
    try:
        with named_errors(path, temporary):
            temporary.mkdir()
            yield temporary
            if path.exists():
                path.replace(outgoing)
            temporary.replace(path)
    finally:
        if outgoing.exists() and not path.exists():  # interrupted between the two renamings
            outgoing.replace(path)
        for folder in (temporary, outgoing):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def named_errors(path: Path, *others: Path) -> Iterator[None]:
    """Give an OSError the name ``path`` if it has none, as that of a full disk, or the name of ``others``."""
    try:
        yield
    except OSError as error:
        if error.filename in (None, *map(str, others)):
            error.filename = str(path)
        raise


def is_file(path: str | Path) -> bool:
    """Whether there is a file; False for impossible names as well (too long, with a zero byte).

    An address (:mod:`utils.object_store`) counts as a file: only reading it tells whether it is there.
    """
    return address_of(path) is not None or os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for such names


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder; as :func:`is_file` for impossible names and for addresses."""
    return address_of(path) is not None or os.path.isdir(path)  # noqa: PTH112


def remove_leftovers(folder: str | Path, deep: bool = True) -> None:
    """Remove the temporary files and folders of killed processes.

    See :func:`utils.run_folder.temporary.is_abandoned`. Those that can't be removed stay: of another user, on
    a read-only disk.
    """
    for path in list(Path(folder).rglob(".*") if deep else Path(folder).glob(".*")):
        with suppress(OSError):
            if is_abandoned(path):
                remove_path(path)


def remove_path(path: Path) -> None:
    """Remove a file, or a folder with its contents, if it exists.

    Raises:
        OSError: it can't be removed.
    """
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def reserve(path: str | Path, size: int) -> None:
    """Check that ``size`` bytes can be written to ``path``, for writers that crash on a full disk.

    Raises:
        OSError: the disk is too small, or permissions are missing; ``filename`` is ``path``.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            if shutil.disk_usage(path.parent).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        error.filename = str(path)
        raise


def read_text(path: str | Path, content: str, error: type[UserError]) -> str:
    """The content of a text file that the user wrote, without a byte order mark.

    Args:
        path: a UTF-8 file.
        content: what it holds, for messages: ``the phrases``.
        error: class of the errors.

    Raises:
        The given ``error``: the file can't be read, or is not UTF-8.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as caught:
        raise unreadable(error, f"cannot read {content}", path, caught) from caught
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as caught:
        raise error(f"{content} are not UTF-8", where=path, hint=conversion_hint(path, data)) from caught


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of an ``.npz`` file.

    Raises:
        OSError: the file can't be read.
        RunError: it lies in a run folder and has changed since it was written there.
        ValueError: it is damaged.
    """
    checksums.verified(path)
    try:
        # Opened here, because np.load doesn't close a damaged file.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as saved:
            return {name: saved[name] for name in saved.files}
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a dozen classes: of zip, zlib and the NumPy header
        raise ValueError(f"damaged: {str(error) or type(error).__name__}") from error


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text with Unix line ends, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: object) -> None:
    """Write a JSON file (UTF-8, indented, hanzi not escaped), completely or not at all.

    Raises:
        ValueError: a number is NaN or infinite, which JSON does not have.
    """
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


_MAX_RARE = 0.1  # of the characters of a simplified text, those that GB 2312 lacks


def conversion_hint(path: str | Path, sample: bytes) -> str:
    """The command that converts a text file to UTF-8, by some bytes of it that are not UTF-8."""
    return f"convert it: iconv -f {likely_encoding(sample)} -t UTF-8 {shlex.quote(str(path))} > FILE"


def likely_encoding(text: bytes) -> str:
    """The name that iconv has for the likely encoding of a Chinese text: UTF-16, BIG5 or GB18030.

    UTF-16 has a byte-order mark or zero bytes. In Big5, four of ten second bytes are below those of GB 2312,
    which has nearly all characters of simplified texts.
    """
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    if b"\0" in text:
        return "UTF-16LE" if text.find(b"\0") % 2 else "UTF-16BE"
    decoded = text.decode("gb2312", "replace")
    is_simplified = decoded.count("\ufffd") <= _MAX_RARE * len(decoded)
    is_big5 = "\ufffd" not in text.decode("big5", "replace")[:-1]  # the last character may be cut
    return "BIG5" if is_big5 and not is_simplified else "GB18030"
