"""Reads and writes bundle.json, and checks the files of a bundle (exported models) against its hashes.

``bundle/folder.py`` opens bundles with it; examples that run without the package ``bundle`` use it alone.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from utils.errors import BundleError, require
from utils.files import write_json
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import BUNDLE as METADATA

FORMAT = 2  # of bundle.json; increased when older readers would misread it
COPY_AGAIN = "copy the whole folder again, or run export.py again"
_CHECKSUM = "checksum"


def read_metadata(path: Path, kind: str | None = None) -> dict[str, Any]:
    """The contents of bundle.json, checked against its checksum.

    Args:
        path: the bundle's folder.
        kind: ``keyword``, ``speech`` or ``language``, if the model must be of this kind.

    Raises:
        BundleError: this is not a bundle or one of another kind, its format is newer, or bundle.json is
            damaged.
    """
    try:
        metadata = json.loads((path / METADATA).read_text(encoding="utf-8"))
        version = metadata["format"]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise not_a_bundle(path) from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if version != FORMAT:
        raise BundleError(
            f"{METADATA} is of format {version}, this version reads {FORMAT}",
            where=path,
            hint="use the version that wrote it, or export again",
        )
    if metadata.get(_CHECKSUM) != _checksum(metadata):
        raise _damaged(path, "its checksum is wrong")
    found = metadata.get("kind")
    require(
        kind in (None, found),
        f"a bundle of a {found} model, not of a {kind} model",
        where=path,
        hint=f"give the bundle of a {kind} model",
        error=BundleError,
    )
    return metadata


def write_metadata(path: Path, metadata: Mapping[str, Any]) -> None:
    """Write bundle.json, with its own checksum, into a bundle's folder."""
    plain = json.loads(json.dumps(metadata))
    write_json(path / METADATA, {**plain, _CHECKSUM: _checksum(plain)})


def checked_file(path: Path, metadata: Mapping[str, Any], name: str) -> Path:
    """The path of a file of a bundle.

    Raises:
        BundleError: the bundle has no such file, or it has changed since the export.
    """
    if not (path / name).is_file():
        listed = name in metadata["files"]
        hint = (
            COPY_AGAIN if listed else f"give a bundle that was exported with {name}, or run export.py again"
        )
        raise BundleError(f"the bundle lacks {name}", where=path, hint=hint)
    if file_hash(path / name) != metadata["files"].get(name):
        raise BundleError(
            f"{name} doesn't belong to this bundle: it is not the file that was exported",
            where=path,
            hint=COPY_AGAIN,
        )
    return path / name


def read_lines(path: Path, metadata: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The lines of a UTF-8 file of a bundle, such as its labels, unchanged.

    Args and Raises: see :func:`checked_file`; a file that is not UTF-8 is a BundleError too.
    """
    try:
        return tuple(checked_file(path, metadata, name).read_text(encoding="utf-8").split("\n")[:-1])
    except UnicodeDecodeError as error:
        raise BundleError(f"{name} is not UTF-8 ({error})", where=path, hint=COPY_AGAIN) from error


def _damaged(path: Path, reason: str) -> BundleError:
    """The error for a bundle.json whose contents can't be used."""
    return BundleError(f"{METADATA} is damaged ({reason})", where=path, hint=COPY_AGAIN)


def not_a_bundle(path: Path) -> BundleError:
    """The error for a path that is not the folder of a bundle; the hint names a bundle in the folder."""
    if (path / "export" / METADATA).is_file():
        return BundleError(
            "this folder is not a bundle, but contains one", where=path, hint=f"give {path / 'export'}"
        )
    if path.is_dir():
        return BundleError(
            f"not a bundle: the folder has no {METADATA}", where=path, hint="export.py RUN writes one"
        )
    if path.exists():
        return BundleError("not a bundle: it is a file", where=path, hint="give the folder of the bundle")
    return BundleError("not a bundle: there is no such folder", where=path, hint="check the path")


def _checksum(metadata: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the checksum itself, as ``json.dumps`` writes it."""
    content = {name: value for name, value in metadata.items() if name != _CHECKSUM}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
