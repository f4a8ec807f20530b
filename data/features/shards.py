"""Writes and reads shards, the files of the feature cache: each has the features of some hundred utterances.

A shard has two files. ``NAME.npy`` holds the frames of its utterances one after the other, (frames, bins)
float16, followed by one CRC-32 per utterance (uint32).
``NAME.index.npy`` holds one row per utterance: key, first frame, number of frames. It is written last: a
shard without an index does not exist. A name always stands for the same content.
"""

import errno
import hashlib
import io
import logging
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from data.array_store import write_array_header, write_errors
from utils.errors import CacheError
from utils.files import replacing
from utils.object_store import open_file, read_part

log = logging.getLogger(__name__)

KEY = np.dtype("S20")  # hash of everything that the features depend on, see data/features/cache.py
INDEX_ROW = np.dtype([("key", KEY), ("start", np.int64), ("frames", np.int32)])
# Where the features of a key are: number of the shard, offset in bytes, CRC-32.
LOCATION = np.dtype([("key", KEY), ("shard", "i4"), ("offset", "i8"), ("frames", "i4"), ("crc", "u4")])
CRC = np.dtype(np.uint32)
FRAME_TYPE = np.dtype(np.float16)
MISSING = -1
_HEADER_BYTES = 256  # more than the header of an .npy file has
# Held while NumPy parses a header as Python source: in Python before 3.11.8, two threads that parse at the
# same time may get a SystemError (https://github.com/python/cpython/issues/106905).
_HEADERS = threading.Lock()
_HINT = "delete the file if it exists, and run the command again: its features are computed again"


def write_shard(folder: Path, keys: Sequence[bytes], features: Sequence[np.ndarray]) -> None:
    """Write (frames, bins) float16 features with their keys.

    Raises:
        CacheError: the folder can't be written.
    """
    shard, index = shard_paths(folder, keys)
    rows = np.empty(len(keys), INDEX_ROW)
    rows["key"], rows["frames"] = keys, [len(item) for item in features]
    rows["start"] = _starts(rows["frames"])
    with write_errors(folder, "features"):
        with replacing(shard) as temporary, temporary.open("wb") as file:
            write_array_header(file, (int(rows["frames"].sum()), features[0].shape[1]), FRAME_TYPE)
            for item in features:
                file.write(item.tobytes())
            file.write(np.array([zlib.crc32(item.tobytes()) for item in features], CRC).tobytes())
        with replacing(index) as temporary:
            np.save(temporary, rows)


def is_written(folder: Path, keys: Sequence[bytes]) -> bool:
    """Whether a shard of exactly these keys exists: another process has written it."""
    return all(path.exists() for path in shard_paths(folder, keys))


def read_index(folder: Path, bins: int) -> tuple[list[Path], np.ndarray]:
    """All complete shards of a folder, and the location of each key: (features,) LOCATION.

    A damaged shard is named in the log and removed, so that it is computed again.

    Raises:
        CacheError: a shard can't be read (no permission, a failing disk): it may be complete.
    """
    shards: list[Path] = []
    parts = [np.empty(0, LOCATION)]
    for index, shard in indexed_shards(folder):
        try:
            parts.append(read_locations(index, shard, bins, len(shards)))
            shards.append(shard)
        except MemoryError:  # no damage
            raise
        except Exception as error:  # NumPy raises a dozen kinds for a damaged header
            if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
                raise _unreadable(shard, error) from error
            log.warning("%s is damaged (%s): its features are computed again", shard, error)
            index.unlink(missing_ok=True)
    return shards, np.concatenate(parts)


def indexed_shards(folder: Path) -> Iterator[tuple[Path, Path]]:
    """(index, shard) of each index in a folder, sorted by name."""
    for index in sorted(folder.glob("[!.]*.index.npy")):
        yield index, index.with_name(index.name.replace(".index.npy", ".npy"))


def read_locations(index: Path, shard: Path, bins: int, number: int) -> np.ndarray:
    """(features,) LOCATION of one shard, checked against its size.

    Args:
        index, shard: the two files.
        bins: values per frame.
        number: number of the shard, for the locations.

    Raises:
        OSError, ValueError, EOFError: one of the files is missing or damaged.
    """
    with open_file(index) as file:
        content = io.BytesIO(file.read())
    with _HEADERS:
        rows = np.load(content)
    if rows.dtype != INDEX_ROW or not np.array_equal(rows["start"], _starts(rows["frames"])):
        raise ValueError("not an index")
    if index != shard_paths(index.parent, rows["key"].tolist())[1]:
        raise ValueError("the keys do not match the file name")
    header = io.BytesIO(read_part(shard, 0, _HEADER_BYTES))
    np.lib.format.read_magic(header)
    with _HEADERS:
        shape, _, dtype = np.lib.format.read_array_header_1_0(header)
    first_byte = header.tell()
    if (shape, dtype) != ((int(rows["frames"].sum()), bins), FRAME_TYPE):
        raise ValueError(f"{dtype} {shape} does not match the index")
    frame_bytes = bins * FRAME_TYPE.itemsize
    end = read_part(shard, first_byte + shape[0] * frame_bytes - 1)  # the last byte of the frames, the CRCs
    crcs = np.frombuffer(end[1:], CRC)
    if not end or len(crcs) != len(rows):
        raise ValueError("the file size does not match the index")
    locations = np.zeros(len(rows), LOCATION)
    locations["key"], locations["frames"], locations["shard"] = rows["key"], rows["frames"], number
    locations["offset"] = first_byte + rows["start"] * frame_bytes
    locations["crc"] = crcs
    return locations


def find_rows(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Row of each key in ``known``, or ``MISSING``; int64 of the shape of ``keys``."""
    if not len(known):
        return np.full(keys.shape, MISSING)
    order = np.argsort(known, kind="stable")
    rows = order[np.searchsorted(known, keys, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[rows] == keys, rows, MISSING)


def read_features(shard: str, location: np.void, bins: int) -> np.ndarray:
    """The features at a LOCATION of a shard: (frames, bins) float16, read-only.

    They are read, not memory-mapped: a mapped cache larger than the memory fills it, and a process that
    reads a mapped file which was cut off is killed.

    Raises:
        CacheError: the shard is missing, cut off, or has another CRC-32.
        StoreError: it is in a store that does not answer.
    """
    size = int(location["frames"]) * bins * FRAME_TYPE.itemsize
    try:
        content = read_part(shard, int(location["offset"]), size)
    except OSError as error:
        raise _unreadable(shard, error) from error
    if len(content) != size:
        raise CacheError("a feature shard is cut off", where=shard, hint=_HINT)
    if zlib.crc32(content) != location["crc"]:
        raise CacheError("a feature shard is damaged (wrong checksum)", where=shard, hint=_HINT)
    return np.frombuffer(content, FRAME_TYPE).reshape(-1, bins)


def _unreadable(shard: str | Path, error: OSError) -> CacheError:
    hint = _HINT if isinstance(error, FileNotFoundError) else "check the permissions and the disk"
    return CacheError(f"a feature shard can't be read ({error.strerror})", where=str(shard), hint=hint)


def shard_paths(folder: Path, keys: Sequence[bytes]) -> tuple[Path, Path]:
    """The two files of a shard: frames and index."""
    name = hashlib.blake2b(b"".join(keys), digest_size=8).hexdigest()
    return folder / f"{name}.npy", folder / f"{name}.index.npy"


def _starts(frames: np.ndarray) -> np.ndarray:
    return np.cumsum(frames, dtype=np.int64) - frames
