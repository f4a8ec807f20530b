"""Recognises addresses in a store (``s3://bucket/file``) among the paths of files.

A path made from an address has one slash less (``Path("s3://bucket/file")`` is ``s3:/bucket/file``). Both
forms stand for the address, so code that joins and renames paths works for addresses too.
"""

import re
from pathlib import Path

# A protocol has two letters at least: C:/ is a drive.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)")


def address_of(path: str | Path) -> str | None:
    """The address that a path stands for, with both slashes; None for a file of this machine."""
    match = _ADDRESS.fullmatch(str(path))
    if not match:
        return None
    root = "/" if match[1] == "file" else ""  # file:///folder names no host
    return f"{match[1]}://{root}{match[2]}"
