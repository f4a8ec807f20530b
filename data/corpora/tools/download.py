"""An address → an unpacked corpus folder: resumed where it broke off, checked, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import re
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from tqdm import tqdm

from utils.errors import OS_ERROR_HINTS, CorpusError

_CHUNK = 1 << 20  # bytes
_TIMEOUT = 60  # seconds without a byte
ATTEMPTS = 6  # in a row without progress


@dataclass(frozen=True)
class Archive:
    """A corpus as its server has it.

    Attributes:
        url: a gzipped tar file.
        md5: 32 hexadecimal digits; "" if none is known. Then ``size`` is what is checked, and gzip's own
            checksum when the file is unpacked.
        folder: the folder inside the archive.
        unpacked: size of what comes out, as a multiple of the archive's (an estimate for the disk check).
        size: bytes; 0 if not known.
        sha256: 64 hexadecimal digits, checked rather than the MD5 sum; "" if none is known.
        bare: the archive holds the content of the folder rather than the folder.
    """

    url: str
    md5: str
    folder: str
    unpacked: float
    size: int = 0
    sha256: str = ""
    bare: bool = False


@dataclass(frozen=True)
class ByHand:
    """A corpus that no program may fetch: why, and what its user has to do."""

    reason: str
    steps: str


def download_corpus(
    archive: Archive, root: Path, url: str | None = None, sha256: str | None = None, pause: float = 2.0
) -> Path:
    """Fetch, check and unpack an archive below ``root``; what is already done is not done again.

    Args:
        archive: what to fetch.
        root: gets ``archive.folder``; the archive itself is removed once unpacked.
        url: a mirror.
        sha256: the sum to check instead of the archive's own sum or size.
        pause: seconds before the first retry; doubled after each.

    Returns:
        The unpacked folder.

    Raises:
        CorpusError: no connection, not enough space, a wrong size or checksum, a damaged or unsafe archive.
    """
    folder = root / archive.folder
    if folder.is_dir():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    file = root / f"{archive.folder}.tgz"
    if not file.is_file():
        size = 0 if sha256 else archive.size
        part = fetch(url or archive.url, file.with_name(f"{file.name}.part"), archive.unpacked, pause, size)
        sha256 = sha256 or archive.sha256
        if sha256 or archive.md5:
            verify(part, "sha256" if sha256 else "md5", sha256 or archive.md5)
        part.replace(file)
    check_space(root, round(file.stat().st_size * archive.unpacked))
    unpack(file, folder, archive.bare)
    file.unlink()
    return folder


def fetch(url: str, part: Path, unpacked: float = 0.0, pause: float = 2.0, size: int = 0) -> Path:
    """Load ``url`` into ``part``, going on from the bytes that are there, however often the line drops.

    Args:
        url: http or https.
        part: the file, possibly with the beginning of it.
        unpacked: free space that will be needed besides, as a multiple of the file's size.
        pause: seconds before the first retry.
        size: bytes that the whole file must have; 0 if not known.

    Raises:
        CorpusError: the server refuses, stays away for ``ATTEMPTS`` tries, has a file of another size, or
            the disk is too small or can't be written.
    """
    if not url.startswith(("https://", "http://")):
        raise CorpusError(f"'{url}' is not a web address", hint="https://…")
    failures = 0
    while True:
        before = _size(part)
        try:
            if _transfer(url, part, unpacked, size):
                return part
            reason = "the connection ended early"
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                what = f"the server answers {error.code} {error.reason}"
                raise CorpusError(what, where=url, hint="name a mirror: --url") from error
            reason = str(error)
        failures = 0 if _size(part) > before else failures + 1
        if failures >= ATTEMPTS:
            hint = f"run the command again: it goes on after {_size(part):,} bytes"
            raise CorpusError(f"the download does not get on ({reason})", where=url, hint=hint)
        time.sleep(min(pause * 2**failures, 60))


def _transfer(url: str, part: Path, unpacked: float, size: int) -> bool:
    """One connection: append what the server sends; whether the file is complete."""
    have = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        total = _total(error.headers.get("Content-Range"))
        if error.code != 416 or total is None:  # 416: nothing after the bytes that we have
            raise
        if total < have:
            part.unlink()  # the beginning of another file
        _check_size(url, total, size)
        return total == have
    with response:
        resumed = response.status == 206
        have = have if resumed else 0  # a server without ranges sends all again
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        if total:
            _check_size(url, total, size)
            check_space(part.parent, round(total - have + total * unpacked))
        bar = tqdm(desc=part.stem, total=total, initial=have, unit="B", unit_scale=True, disable=None)
        with bar, _opened(part, "ab" if resumed else "wb") as file:
            while chunk := response.read(_CHUNK):
                _write(file, chunk)
                bar.update(len(chunk))
    if total is None:
        _check_size(url, _size(part), size)
    return total is None or _size(part) == total


def _opened(path: Path, mode: str) -> FileIO:
    """The file without a buffer: a full disk is found at the write, not when the file is closed."""
    try:
        return path.open(mode, buffering=0)
    except OSError as error:
        raise _disk_error(path, error) from error


def _write(file: FileIO, chunk: bytes) -> None:
    """Write all of ``chunk``; what the disk refuses is not to be taken for the network's failure."""
    try:
        while chunk:
            chunk = chunk[file.write(chunk) :]
    except OSError as error:
        raise _disk_error(Path(file.name), error) from error


def _disk_error(path: Path, error: OSError) -> CorpusError:
    what = f"can't write to the disk of '{path.parent}' ({error.strerror or error})"
    return CorpusError(what, where=path, hint=OS_ERROR_HINTS.get(error.errno, "check the disk"))


def _check_size(url: str, total: int, size: int) -> None:
    if size and total != size:
        what = f"the file has {total:,} bytes there, {size:,} are expected"
        hint = "take another mirror (--url), or check the file yourself and give its sum (--sha256)"
        raise CorpusError(what, where=url, hint=hint)


def verify(path: Path, algorithm: str, expected: str) -> None:
    """Check a file's checksum; a file that fails is removed, since going on with it could never help.

    Raises:
        CorpusError: it differs.
    """
    digest = hashlib.new(algorithm, usedforsecurity=False)
    bar = tqdm(desc=f"checking {algorithm}", total=_size(path), unit="B", unit_scale=True, disable=None)
    with bar, path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            bar.update(len(chunk))
    if digest.hexdigest() != expected.lower():
        path.unlink()
        what = f"{algorithm} is {digest.hexdigest()}, {expected.lower()} expected"
        raise CorpusError(
            what, where=path, hint="the file is removed: download again, perhaps from a mirror (--url)"
        )


def unpack(file: Path, folder: Path, bare: bool = False) -> None:
    """Unpack ``file``, which holds one folder of ``folder``'s name, to ``folder``, whole or not at all.

    Args:
        file: a tar archive.
        folder: what it becomes; must not be there yet.
        bare: the archive holds the content of the folder instead.

    Raises:
        CorpusError: the archive is damaged, has no such folder, or would write outside of it.
    """
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        extract(file, temporary, progress=True)
        (temporary if bare else temporary / folder.name).replace(folder)
    except FileNotFoundError as error:
        raise CorpusError(
            f"no folder {folder.name} inside", where=file, hint="this is another archive"
        ) from error
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(
            f"damaged or unsafe archive ({error})", where=file, hint="remove it and download again"
        ) from error
    except OSError as error:
        raise _disk_error(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def extract(archive: Path, folder: Path, progress: bool = False) -> None:
    """Unpack a tar archive into ``folder``; what would leave it (../, absolute names, links) is an error.

    Raises:
        tarfile.TarError, EOFError, zlib.error, OSError: the archive is damaged or unsafe, the disk is full.
    """
    if not hasattr(tarfile, "data_filter"):
        raise CorpusError("this Python's tarfile can't unpack safely", hint="use Python 3.11.4 or later")
    with tarfile.open(archive) as tar:
        for member in tqdm(
            tar, f"unpacking {archive.name}", unit=" files", disable=None if progress else True
        ):
            tar.extract(member, folder, filter="data")
        # tarfile stops at the archive's end mark; gzip checks its sum only at the end of the file.
        while tar.fileobj.read(_CHUNK):
            pass


def check_space(folder: Path, needed: int) -> None:
    """Check that the disk of ``folder`` has ``needed`` bytes.

    Raises:
        CorpusError: it has less.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        what = f"{needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free"
        raise CorpusError(what, where=folder, hint="free some space, or choose another folder")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _total(content_range: str | None) -> int | None:
    match = re.search(r"/(\d+)$", content_range or "")
    return int(match[1]) if match else None
