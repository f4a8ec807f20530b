"""Stores results that take long to compute as files with checksums in a cache folder.

The feature cache (``data/features``), the keyword clips (``data/keywords/clip_cache.py``) and the pairs of
pinyin and hanzi (``data/text``) follow the same rules:

- The name of an entry is a hash of everything that its content depends on. A changed input has another
  name, so an entry is never outdated.
- A file is written under a temporary name, then renamed. The file that is written last completes the entry.
- Every entry has checksums. A damaged file is reported together with the file to delete.
- Any number of processes may use a folder at the same time. Deleting the folder is always safe.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from tqdm import tqdm

from utils.errors import CacheError
from utils.run_folder.checksum_files import check, record

JOBS_PER_WORKER = 16  # small jobs, so that all workers finish at about the same time
_MORE_SPACE = "free some space, or choose another folder (data.cache)"
_FAILURES_SHOWN = 5


@dataclass(frozen=True)
class CacheEntry:
    """The files ``NAME.ENDING`` of one entry; ``NAME.sha256``, written last, holds their checksums.

    Attributes:
        stem: path of the files without the dot and the ending.
        endings: endings of all files except the checksums.
        content: name of the content for messages, in the plural.
    """

    stem: Path
    endings: tuple[str, ...]
    content: str

    def path(self, ending: str) -> Path:
        """Path of one file."""
        return self.stem.with_name(f"{self.stem.name}.{ending}")

    def is_complete(self) -> bool:
        """Whether all files have been written."""
        return self.path("sha256").is_file()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write the files in this block; when it ends without an error, the checksums are written.

        Raises:
            CacheError: the folder can't be written.
        """
        with write_errors(self.stem.parent, self.content):
            yield
            record(self.path("sha256"), self._files())

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Compare the files with their checksums, then read them in this block.

        Raises:
            CacheError: a file is missing or damaged.
        """
        checksums = self.path("sha256")
        try:
            check(checksums, self._files())
            yield
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CacheError(
                f"the cached {self.content} are damaged ({error})",
                where=self.path(self.endings[0]),
                hint=f"delete {checksums} and run the command again: they are computed again",
            ) from error

    def _files(self) -> list[Path]:
        return [self.path(ending) for ending in self.endings]


@contextmanager
def write_errors(folder: Path, content: str) -> Iterator[None]:
    """Turn the system's errors in this block (a full disk, no permission) into a CacheError."""
    try:
        yield
    except OSError as error:
        raise CacheError(
            f"the {content} can't be written ({error.strerror})", where=folder, hint=_MORE_SPACE
        ) from error


def write_array_header(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Begin an ``.npy`` file whose values are written piece by piece."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def require_space(folder: Path, size: float, content: str, hint: str = _MORE_SPACE) -> None:
    """Check that the disk of a folder, which may not exist yet, has ``size`` free bytes.

    Raises:
        CacheError: it has not.
    """
    absolute = folder.absolute()
    free = shutil.disk_usage(next(path for path in (absolute, *absolute.parents) if path.exists())).free
    if size > free:
        raise CacheError(
            f"the {content} need {tqdm.format_sizeof(size, 'B')}, {tqdm.format_sizeof(free, 'B')} are free",
            where=folder,
            hint=hint,
        )


def process_died(content: str, folder: Path) -> CacheError:
    """The error for a process that died while it computed what is stored in a folder."""
    return CacheError(
        f"a process that computes {content} died",
        where=folder,
        hint="out of memory, or a recording that crashes the decoder: run the command again with "
        "data.workers=1 to see which; finished work is kept",
    )


def first_failures(failures: Sequence[tuple[str, str]]) -> str:
    """The first few failures, each given as (id, reason), in one line."""
    shown = "; ".join(f"{name}: {reason}" for name, reason in failures[:_FAILURES_SHOWN])
    return shown + ("; …" if len(failures) > _FAILURES_SHOWN else "")
