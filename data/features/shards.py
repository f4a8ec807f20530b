"""Features of some hundred utterances ⇄ one shard on disk: the file format of the feature cache.

A shard is ``NAME.npy``, the frames of its utterances one after the other, (frames, bins) float16, then
their CRC-32 sums (uint32 each; shards of earlier versions have none); and ``NAME.index.npy``, one row for
each utterance: key, first frame, number of frames. The index is written last: a shard without one is not
there, so whatever is killed leaves only whole shards behind. Any number of processes may use a folder at
once: files only appear whole, and a name always stands for the same content.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from utils import files
from utils.errors import AudioError
from utils.files import replacing

log = logging.getLogger(__name__)

KEY = np.dtype("S20")  # chosen by the cache: a hash of all that determines the features
INDEX_ROW = np.dtype([("key", KEY), ("start", np.int64), ("frames", np.int32)])
# Where the features of a key are: shard by number, bytes from its beginning; sum 0: not known.
PLACE = np.dtype([("key", KEY), ("shard", "i4"), ("offset", "i8"), ("frames", "i4"), ("sum", "u4")])
SUM = np.dtype(np.uint32)
MISSING = -1
_FRAME_TYPE = np.dtype(np.float16)
_LEFT_OVER = 3600.0  # seconds; whoever still wrote a file would have finished it
_HINT = "delete the file if it is there, and run the command again: its features are computed anew"


def write_shard(folder: Path, keys: Sequence[bytes], features: Sequence[np.ndarray]) -> None:
    """Write (frames, bins) float16 features with their keys.

    Raises:
        AudioError: the folder can't be written.
    """
    shard, index = _paths(folder, keys)
    rows = np.empty(len(keys), INDEX_ROW)
    rows["key"], rows["frames"] = keys, [len(item) for item in features]
    rows["start"] = _starts(rows["frames"])
    with writing(folder):
        with replacing(shard) as temporary, temporary.open("wb") as file:
            write_shard_header(file, int(rows["frames"].sum()), features[0].shape[1])
            sums = np.empty(len(features), SUM)
            for row, item in enumerate(features):
                content = item.tobytes()
                file.write(content)
                sums[row] = zlib.crc32(content)
            file.write(sums.tobytes())
        try:
            with replacing(index) as temporary:
                np.save(temporary, rows)
        except OSError:
            if not index.exists():  # else another process was faster
                shard.unlink(missing_ok=True)
            raise


def write_shard_header(file: BinaryIO, frames: int, bins: int) -> None:
    """Begin a shard in an open binary file."""
    header = {"descr": np.lib.format.dtype_to_descr(_FRAME_TYPE), "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, header | {"shape": (frames, bins)})


def is_written(folder: Path, keys: Sequence[bytes]) -> bool:
    """Whether a shard of exactly these keys is there: another process has made it."""
    return all(path.exists() for path in _paths(folder, keys))


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the system's errors (full disk, no rights) into ours."""
    try:
        yield
    except OSError as error:
        hint = "free some space, or keep the features in another folder"
        raise AudioError(f"features can't be written ({error.strerror})", where=folder, hint=hint) from error


def read_index(folder: Path, bins: int) -> tuple[list[Path], np.ndarray]:
    """All whole shards of a folder, and (features,) PLACE: where the features of each key are.

    A damaged shard is named in the log and removed, so that it is computed again.

    Raises:
        AudioError: one can't be read at all (no rights, a disk that fails): it may be whole.
    """
    shards: list[Path] = []
    parts = [np.empty(0, PLACE)]
    for path in sorted(folder.glob("[!.]*.index.npy")):
        shard = path.with_name(path.name.replace(".index.npy", ".npy"))
        try:
            parts.append(shard_places(path, shard, bins, len(shards)))
            shards.append(shard)
        except Exception as error:  # of a damaged header NumPy raises a dozen kinds
            if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
                raise _unreadable(shard, error) from error
            log.warning("%s is damaged (%s): its features are computed again", shard, error)
            path.unlink(missing_ok=True)
    return shards, np.concatenate(parts)


def find_rows(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Row of each key in ``known``, or -1; the shape of ``keys``, int64."""
    if not len(known):
        return np.full(keys.shape, MISSING)
    order = np.argsort(known, kind="stable")
    rows = order[np.searchsorted(known, keys, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[rows] == keys, rows, MISSING)


def read_features(shard: str, offset: int, frames: int, bins: int, expected: int) -> np.ndarray:
    """The features at a place in a shard: (frames, bins) float16, read-only.

    They are read, not mapped: a mapped cache that is larger than the memory fills it, and a shard that is
    cut off under a map ends the process.

    Raises:
        AudioError: the shard is gone, cut off, or its bytes have not the CRC-32 ``expected``.
    """
    size = frames * bins * _FRAME_TYPE.itemsize
    try:
        with open(shard, "rb", buffering=0) as file:  # noqa: PTH123 - called for each utterance
            file.seek(offset)
            content = file.read(size)
    except OSError as error:
        raise _unreadable(shard, error) from error
    if len(content) != size:
        raise AudioError("a feature shard is cut off", where=shard, hint=_HINT)
    if expected and zlib.crc32(content) != expected:
        raise AudioError("a feature shard is damaged (its check sum is wrong)", where=shard, hint=_HINT)
    return np.frombuffer(content, _FRAME_TYPE).reshape(frames, bins)


def remove_left_over(folder: Path) -> None:
    """Remove what killed processes left: temporary files and, after an hour, shards without an index."""
    files.remove_left_over(folder)
    for path in folder.glob("[!.]*.npy"):
        with suppress(FileNotFoundError):  # another process removes it
            unfinished = not path.name.endswith(".index.npy") and not path.with_suffix(".index.npy").exists()
            if unfinished and time.time() - path.stat().st_mtime > _LEFT_OVER:
                path.unlink()


def _unreadable(shard: str | Path, error: OSError) -> AudioError:
    hint = _HINT if isinstance(error, FileNotFoundError) else "check its rights and the disk"
    return AudioError(f"a feature shard can't be read ({error.strerror})", where=str(shard), hint=hint)


def _paths(folder: Path, keys: Sequence[bytes]) -> tuple[Path, Path]:
    """The files of a shard: frames and index."""
    name = hashlib.blake2b(b"".join(keys), digest_size=8).hexdigest()
    return folder / f"{name}.npy", folder / f"{name}.index.npy"


def _starts(frames: np.ndarray) -> np.ndarray:
    return np.cumsum(frames, dtype=np.int64) - frames


def shard_places(index: Path, shard: Path, bins: int, number: int) -> np.ndarray:
    """(features,) PLACE of one shard, checked against its size.

    Raises:
        OSError, ValueError, EOFError: one of the two files is gone or damaged.
    """
    rows = np.load(index)
    if rows.dtype != INDEX_ROW or not np.array_equal(rows["start"], _starts(rows["frames"])):
        raise ValueError("not an index")
    if index != _paths(index.parent, rows["key"].tolist())[1]:
        raise ValueError("its keys are not those that its name is the hash of")
    with shard.open("rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        begin = file.tell()
        if (shape, dtype) != ((int(rows["frames"].sum()), bins), _FRAME_TYPE):
            raise ValueError(f"{dtype} {shape} is not what its index says")
        frame = bins * _FRAME_TYPE.itemsize
        sums_begin = begin + shape[0] * frame
        file.seek(sums_begin)
        sums = np.frombuffer(file.read(), SUM)
    if len(sums) not in (0, len(rows)) or shard.stat().st_size < sums_begin:
        raise ValueError("its size is not what its index says")
    places = np.zeros(len(rows), PLACE)
    places["key"], places["frames"], places["shard"] = rows["key"], rows["frames"], number
    places["offset"] = begin + rows["start"] * frame
    if len(sums):
        places["sum"] = sums
    return places
