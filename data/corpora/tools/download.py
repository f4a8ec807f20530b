"""Downloads an archive of a corpus, checks it, and unpacks it completely or not at all.

An interrupted download continues where it stopped. Size and checksum (SHA-256 or MD5) are checked if known.
An archive that the user already has is unpacked in the same way.
"""

import hashlib
import http.client
import shutil
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from data.array_store import require_space
from utils.errors import OS_ERROR_HINTS, CorpusError, require
from utils.files import remove_leftovers
from utils.run_folder.temporary import temporary_path

_CHUNK = 1 << 20  # bytes that are read at once
_TIMEOUT = 60  # seconds without a byte, after which a connection is closed
_SPACE = "free some space, or choose another folder"
_OTHER_FILES = {"a zip archive": b"PK\x03\x04", "a web page": b"<"}  # by the first bytes
ATTEMPTS = 6  # in a row without progress, after which the download fails


@dataclass(frozen=True)
class Archive:
    """An archive of a corpus on a server.

    Attributes:
        url: a gzipped tar file.
        folder: the folder inside the archive.
        unpacked: size of the unpacked files as a multiple of the archive's (an estimate for the disk check).
        checksum: hexadecimal digits of its MD5 (32) or SHA-256 (64); "" if unknown. Then ``size`` is checked,
            and gzip's own checksum when the file is unpacked.
        size: bytes; 0 if unknown.
        bare: the archive holds the contents of the folder without the folder.
    """

    url: str
    folder: str
    unpacked: float
    checksum: str = ""
    size: int = 0
    bare: bool = False

    @property
    def file(self) -> str:
        """The name of the archive."""
        return self.url.rpartition("/")[2]


def download_corpus(archive: Archive, root: Path, url: str | None = None, pause: float = 2.0) -> Path:
    """Download, check and unpack an archive in ``root``; completed steps are not repeated.

    Args:
        archive: the archive.
        root: will hold ``archive.folder``.
        url: a mirror.
        pause: seconds before the first retry; doubled after each.

    Returns:
        The unpacked folder.

    Raises:
        CorpusError: no connection, a wrong size or checksum, a damaged or unsafe archive.
        CacheError: not enough space.
    """
    if not is_filled(root / archive.folder):
        part = root / f".{archive.folder}.tgz.part"
        root.mkdir(parents=True, exist_ok=True)
        fetch(url or archive.url, part, archive.unpacked, pause, archive.size)
        if archive.checksum:
            verify(part, archive.checksum)
        unpack_corpus(archive, part, root)
        part.unlink()
    return root / archive.folder


def unpack_corpus(archive: Archive, file: Path, root: Path) -> Path:
    """Unpack the file of an archive in ``root``, unless its folder is there; returns that folder.

    Raises:
        CorpusError: no such file; a damaged, unsafe or another archive.
        CacheError: not enough space.
    """
    folder = root / archive.folder
    if not is_filled(folder):
        require(file.is_file(), "no such archive", where=file, hint="check the path", error=CorpusError)
        require_space(root, archive.unpacked * file.stat().st_size, "files of the corpus", _SPACE)
        unpack(file, root, [archive.folder], archive.bare, progress=True)
    return folder


def is_filled(folder: Path) -> bool:
    """Whether a folder has files: its archive counts as unpacked."""
    return folder.is_dir() and any(folder.iterdir())  # the user may have made an empty one


def fetch(url: str, part: Path, unpacked: float = 0.0, pause: float = 2.0, size: int = 0) -> Path:
    """Download ``url`` to ``part``; continues after the existing bytes, however often the connection drops.

    Args:
        url: http or https.
        part: the file, which may hold the first part of the download.
        unpacked: additional free space needed later, as a multiple of the file's size.
        pause: seconds before the first retry.
        size: bytes of the complete file; 0 if unknown.

    Raises:
        CorpusError: the server refuses, makes no progress in ``ATTEMPTS`` attempts, has a file of another
            size.
        CacheError, OSError: the disk is too small, or not writable.
    """
    failures = 0
    while True:
        before = _size(part)
        try:
            if _transfer(url, part, unpacked, size):
                return part
            reason = "the connection ended early"
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise CorpusError(
                    f"the server answers {error.code} {error.reason}", where=url, hint="use a mirror: --url"
                ) from error
            if _is_of_the_disk(error, part):
                raise
            reason = str(error)
        failures = 0 if _size(part) > before else failures + 1
        if failures >= ATTEMPTS:
            raise CorpusError(
                f"the download makes no progress ({reason})",
                where=url,
                hint=f"run the command again: it continues after {_size(part):,} bytes",
            )
        time.sleep(min(pause * 2**failures, 60))


def _transfer(url: str, part: Path, unpacked: float, size: int) -> bool:
    """Append what the server sends over one connection; returns whether the file is complete."""
    received = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={received}-"} if received else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        total = (error.headers.get("Content-Range") or "").rpartition("/")[2]
        if error.code != 416 or not total.isdecimal():  # 416: nothing after our bytes
            raise
        if int(total) < received:
            part.unlink()  # part of another file
        return int(total) == received
    with response:
        resumed = response.status == 206
        received = received if resumed else 0  # a server without ranges sends the whole file
        length = response.headers.get("Content-Length")
        total = received + int(length) if length else size
        if size and total != size:
            raise CorpusError(
                f"the file has {total:,} bytes, {size:,} expected",
                where=url,
                hint="use another mirror: --url",
            )
        require_space(part.parent, total - received + total * unpacked, "files of the corpus", _SPACE)
        bar = {"desc": part.stem, "total": total or None, "initial": received, "unit": "B"}
        with part.open("ab" if resumed else "wb") as file, tqdm(**bar, unit_scale=True, disable=None) as bar:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    return not total or _size(part) == total


def verify(path: Path, expected: str) -> None:
    """Check the MD5 or SHA-256 of a download; one with another sum, which can't be continued, is removed.

    Raises:
        CorpusError: it differs.
    """
    algorithm = "md5" if len(expected) == 32 else "sha256"
    with path.open("rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != expected:
        path.unlink()
        raise CorpusError(
            f"{algorithm} is {found}, {expected} expected",
            where=path,
            hint="the file was removed: download again, perhaps from a mirror (--url)",
        )


def unpack(
    file: Path,
    root: Path,
    folders: Sequence[str],
    bare: bool = False,
    progress: bool = False,
    hint: str = "move it away and download again",
) -> None:
    """Unpack folders of an archive, each completely or not at all; what a killed run left is removed.

    Args:
        file: a tar archive.
        root: gets the folders, which must be new or empty there.
        folders: folders in the archive, which holds at least one of them.
        bare: the archive holds the contents of the only folder without the folder.
        progress: show a progress bar.
        hint: how to replace a damaged archive.

    Raises:
        CorpusError: the archive is damaged, has no such folder, or would write outside of it.
        OSError: the disk is full or not writable.
    """
    remove_leftovers(root, deep=False)
    temporary = temporary_path(root / f"{file.name.strip('.').partition('.')[0]}.unpacking")
    try:
        extract(file, temporary / folders[0] if bare else temporary, progress)
        inside = [name for name in folders if (temporary / name).is_dir()]
        if not inside:
            raise CorpusError(
                f"no folder {' or '.join(folders)} inside", where=file, hint="this is another archive"
            )
        for name in inside:
            (root / name).parent.mkdir(exist_ok=True)
            (temporary / name).replace(root / name)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if _is_of_the_disk(error, root):
            raise
        raise CorpusError(_fault(file, error), where=file, hint=hint) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _fault(file: Path, error: Exception) -> str:
    """What is wrong with a file that could not be unpacked."""
    with file.open("rb") as opened:
        start = opened.read(512).lstrip()
    for kind, sign in _OTHER_FILES.items():
        if start.startswith(sign):
            return f"this is {kind}, not a tar archive"
    return f"damaged or unsafe archive ({str(error).splitlines()[0].rstrip(':')})"


def extract(archive: Path, folder: Path, progress: bool) -> None:
    """Unpack a tar archive into ``folder``; members outside of it (../, absolute names, links) are errors.

    Raises:
        tarfile.TarError, EOFError, zlib.error, OSError: the archive is damaged or unsafe, the disk is full.
        CorpusError: this Python can't unpack safely.
    """
    if not hasattr(tarfile, "data_filter"):
        raise CorpusError("this Python's tarfile can't unpack safely", hint="use Python 3.11.4 or later")
    disable = None if progress else True
    with tarfile.open(archive) as tar:
        for member in tqdm(tar, f"unpacking {archive.name}", unit=" files", disable=disable):
            tar.extract(member, folder, filter="data")
        # tarfile stops at the archive's end mark; gzip verifies its checksum only at the end of the file.
        while tar.fileobj.read(_CHUNK):
            pass


def _is_of_the_disk(error: Exception, path: Path) -> bool:
    """Whether the user can correct it; others are the fault of the network or of the archive.

    A full disk is reported without a file name: the error gets that of ``path``.
    """
    if not isinstance(error, OSError) or error.errno not in OS_ERROR_HINTS:
        return False
    error.filename = error.filename or str(path)
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
