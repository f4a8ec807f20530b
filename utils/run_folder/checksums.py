"""Detects damaged or changed files of a run folder by the SHA-256 sums in its file ``checksums``.

The checksum of a file is recorded when the file is renamed to its final name (:func:`replace`, called by
:func:`utils.files.replacing`) and compared when it is read (:func:`verified`). While a file is replaced, both
its old and its new checksum are listed, since the process may be killed at any moment. Other processes wait
meanwhile (:func:`exclusive`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from utils.errors import RunError
from utils.run_folder.checksum_files import Checksums, file_hash, hash_once, read_checksums, write_checksums
from utils.run_folder.temporary import is_temporary

CHECKSUMS, CONFIG = "checksums", "config.yaml"
# The files that other commands read. Logs, reports and files that grow line by line have no checksums.
COVERED = (
    CONFIG,
    "confidence.json",
    "labels.txt",
    "history.csv",
    "metrics.json",
    "model_summary.txt",
    "phrase_thresholds.json",
    "*.weights.h5",
    "*.npz",
    "*.onnx",
    "vocabulary/*",
    "weights/*",
    "checkpoint/*",
    "test/*.json",
    "test/*/results.json",
)
_DEPTH = max(pattern.count("/") for pattern in COVERED) + 1
_ATTEMPTS = 3  # comparisons before a file is refused: a training run may replace it while it is read
_HINT = "copy it again; if it was changed on purpose: python inspect_model.py accept {folder}"


class Mismatch(StrEnum):
    """Why a file of a run folder is refused."""

    CHANGED = "not the file that was written (its SHA-256 differs from that in checksums)"
    UNKNOWN = "not listed in checksums"


def begin(folder: Path) -> None:
    """Create a folder whose files have checksums from now on."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, {})


def exist(folder: Path) -> bool:
    """Whether the files of a run folder have checksums."""
    return (folder / CHECKSUMS).is_file()


def verified(path: str | Path) -> Path:
    """Check that a file is unchanged since it was written, and return its path.

    A file that lies in no run folder, that lies in a run without checksums, or that doesn't exist is not
    checked.

    Raises:
        RunError: the file differs from its checksum or has none, or ``checksums`` is damaged.
    """
    path = Path(path)
    folder = _folder_of(path)
    if folder is not None and path.is_file():
        mismatch = _mismatch(folder, path)
        if mismatch is not None:
            raise RunError(f"{path.name} is {mismatch}", where=path, hint=_HINT.format(folder=folder))
    return path


def differences(folder: Path) -> dict[str, Mismatch]:
    """The files of a run folder that have changed or have no checksum, by name.

    Raises:
        RunError: ``checksums`` is damaged.
    """
    found = {name: _mismatch(folder, folder / name) for name in covered_files(folder)}
    return {name: state for name, state in found.items() if state is not None}


def accept(folder: Path) -> None:
    """Record the current checksums of all files of a run folder."""
    with exclusive(folder):
        _write(folder, {name: frozenset([file_hash(folder / name)]) for name in covered_files(folder)})


def replace(temporary: Path, path: Path) -> None:
    """Rename a completely written file to ``path``; in a run folder, record its checksum.

    Raises:
        OSError: it can't be renamed, or the checksum can't be written.
        RunError: ``checksums`` is damaged.
    """
    folder = _folder_of(path)
    if folder is None:
        temporary.replace(path)
        return
    name, new = _name_in(folder, path), frozenset([file_hash(temporary)])
    with exclusive(folder):  # a test may write results during the training
        present = set(covered_files(folder))
        others = {known: hashes for known, hashes in _read(folder).items() if known in present}
        _write(folder, {**others, name: others.get(name, frozenset()) | new})
        temporary.replace(path)
        others.pop(_name_in(folder, temporary), None)
        _write(folder, {**others, name: new})


def covered_files(folder: Path) -> list[str]:
    """Sorted names of the files of a run folder that should have checksums."""
    paths = {path for pattern in COVERED for path in folder.glob(pattern)}
    return sorted(
        path.relative_to(folder).as_posix() for path in paths if path.is_file() and not is_temporary(path)
    )


def _mismatch(folder: Path, path: Path) -> Mismatch | None:
    name = _name_in(folder, path)
    for _ in range(_ATTEMPTS):
        known = _read(folder).get(name, frozenset())
        if hash_once(path) in known:
            return None
    return Mismatch.CHANGED if known else Mismatch.UNKNOWN


def _folder_of(path: Path) -> Path | None:
    """The run folder that should have the checksum of ``path``; None if there is none."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - abspath doesn't follow links
    for folder in absolute.parents[:_DEPTH]:
        name = absolute.relative_to(folder)
        if exist(folder) and ((folder / CONFIG).is_file() or name == Path(CONFIG)):
            return folder if _is_covered(name) else None
    return None


def _is_covered(name: Path) -> bool:
    return any(
        len(parts := pattern.split("/")) == len(name.parts) and all(map(fnmatchcase, name.parts, parts))
        for pattern in COVERED
    )


def _name_in(folder: Path, path: Path) -> str:
    return Path(os.path.abspath(path)).relative_to(os.path.abspath(folder)).as_posix()  # noqa: PTH100


def _read(folder: Path) -> dict[str, frozenset[str]]:
    path = folder / CHECKSUMS
    try:
        return read_checksums(path)
    except ValueError as error:
        raise RunError(
            f"the list of checksums is damaged ({error})", where=path, hint=_HINT.format(folder=folder)
        ) from error


def _write(folder: Path, checksums: Checksums) -> None:
    write_checksums(folder / CHECKSUMS, checksums)


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
