"""Writes, reads and checks files of SHA-256 checksums, in the format of ``sha256sum`` and sorted by name.

A cache has such a file beside each of its entries (:func:`record`, :func:`check`). For the files of a run
folder, which are replaced one by one, see :mod:`utils.run_folder.checksums`.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from utils.addresses import address_of
from utils.object_store import open_file, read_part
from utils.run_folder.temporary import temporary_path

Checksums = Mapping[str, frozenset[str]]
"""File name → SHA-256 in hexadecimal; two of them while the file is being replaced."""
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_hashes: dict[str, tuple[tuple[int, ...], str]] = {}


def hash_once(path: Path) -> str:
    """SHA-256 of a file; one of this machine is read again only if its size, times or inode have changed."""
    if address_of(path):
        return file_hash(path)
    status = path.stat()
    key = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    known = _hashes.get(str(path))
    if known is None or known[0] != key:
        known = _hashes[str(path)] = key, file_hash(path)
    return known[1]


def read_checksums(path: Path) -> dict[str, frozenset[str]]:
    """The checksums in a file.

    Raises:
        OSError: the file can't be read.
        ValueError: the file is damaged; the message says how.
    """
    lines = read_part(path).decode("utf-8").split("\n")
    if lines.pop():
        raise ValueError("it is cut off")
    found: dict[str, frozenset[str]] = {}
    before = ("", "")
    for number, line in enumerate(lines, start=1):
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise ValueError(f"line {number} is not 'SHA-256  name'")
        digest, name = parts.groups()
        if (name, digest) <= before:
            raise ValueError(f"line {number} is out of order")
        before = (name, digest)
        found[name] = found.get(name, frozenset()) | {digest}
    return found


def write_checksums(path: Path, checksums: Checksums) -> None:
    """Write a file of checksums, completely or not at all."""
    lines = [
        f"{digest}  {name}\n" for name, digests in sorted(checksums.items()) for digest in sorted(digests)
    ]
    temporary = temporary_path(path)
    try:
        temporary.write_text("".join(lines), encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def record(path: Path, files: Sequence[Path]) -> None:
    """Write the checksums of ``files``, which lie in the folder of ``path``, to ``path``."""
    write_checksums(path, {file.name: frozenset([hash_once(file)]) for file in files})


def check(path: Path, files: Sequence[Path]) -> None:
    """Compare files with the checksums that :func:`record` wrote.

    Raises:
        OSError: a file can't be read.
        ValueError: a file has changed or has no checksum (it is named), or ``path`` is damaged.
    """
    known = read_checksums(path)
    for file in files:
        if hash_once(file) not in known.get(file.name, ()):
            raise ValueError(f"the SHA-256 of {file.name} differs from that in {path.name}")
