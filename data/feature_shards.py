"""Features of some hundred utterances ⇄ one shard on disk: the file format of the feature cache.

A shard is ``NAME.npy``, the frames of its utterances one after the other, (frames, bins) float16, and
``NAME.index.npy``, one row for each of them: key, first frame, number of frames. The index is written
last: a shard without one is not there, so whatever is killed leaves only whole shards behind.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np

from utils.errors import AudioError
from utils.files import replacing

log = logging.getLogger(__name__)

KEY = np.dtype("S20")  # chosen by the cache: a hash of all that determines the features
INDEX_ROW = np.dtype([("key", KEY), ("start", np.int64), ("frames", np.int32)])
MISSING = -1
_HINT = "delete the file, the features are computed again"


def write_shard(folder: Path, keys: Sequence[bytes], features: Sequence[np.ndarray]) -> None:
    """Write (frames, bins) float16 features with their keys.

    Raises:
        AudioError: the folder can't be written.
    """
    name = hashlib.blake2b(b"".join(keys), digest_size=8).hexdigest()
    index = np.empty(len(keys), INDEX_ROW)
    index["key"], index["frames"] = keys, [len(item) for item in features]
    index["start"] = np.cumsum(index["frames"], dtype=np.int64) - index["frames"]
    shape = (int(index["frames"].sum()), features[0].shape[1])
    with writing(folder):
        with replacing(folder / f"{name}.npy") as temporary, temporary.open("wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(features[0].dtype), "fortran_order": False}
            np.lib.format.write_array_header_1_0(file, header | {"shape": shape})
            for item in features:
                file.write(item.tobytes())
        with replacing(folder / f"{name}.index.npy") as temporary:
            np.save(temporary, index)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the system's errors (full disk, no rights) into ours."""
    try:
        yield
    except OSError as error:
        hint = "free some space, or keep the features in another folder"
        raise AudioError(f"features can't be written ({error.strerror})", where=folder, hint=hint) from error


def read_index(folder: Path, bins: int) -> tuple[list[Path], np.ndarray, np.ndarray]:
    """All whole shards of a folder: their paths, the rows of all indices, and each row's shard number.

    What is damaged is removed, so that it is computed again.
    """
    shards: list[Path] = []
    parts = [np.empty(0, INDEX_ROW)]
    for path in sorted(folder.glob("[!.]*.index.npy")):
        shard = path.with_name(path.name.replace(".index.npy", ".npy"))
        try:
            rows = np.load(path)
            whole = shard.stat().st_size > int(rows["frames"].sum()) * bins * np.float16().itemsize
        except (OSError, ValueError, IndexError, EOFError):
            whole = False
        if whole:
            shards.append(shard)
            parts.append(rows)
        else:
            log.warning("%s is damaged: its features are computed again", shard)
            path.unlink(missing_ok=True)
    numbers = np.repeat(np.arange(-1, len(shards), dtype=np.int32), [len(part) for part in parts])
    return shards, np.concatenate(parts), numbers


def find_rows(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Row of each key in ``known``, or -1; the shape of ``keys``, int64."""
    if not len(known):
        return np.full(keys.shape, MISSING)
    order = np.argsort(known, kind="stable")
    rows = order[np.searchsorted(known, keys, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[rows] == keys, rows, MISSING)


@lru_cache(maxsize=200)  # each holds a file open
def open_shard(path: str, bins: int) -> np.ndarray:
    """A shard's frames, (frames, bins) float16, memory-mapped, read-only.

    Raises:
        AudioError: it is gone, damaged, or of another shape.
    """
    try:
        shard = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise AudioError(f"a feature shard can't be read ({error})", where=path, hint=_HINT) from error
    if shard.ndim != 2 or shard.shape[1] != bins or shard.dtype != np.float16:
        raise AudioError(
            f"a feature shard has shape {shard.shape}, {shard.dtype}; expected (frames, {bins}) float16",
            where=path,
            hint=_HINT,
        )
    return shard
