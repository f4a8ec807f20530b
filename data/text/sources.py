"""Reads text files (also compressed) or standard input in pieces of whole lines of about a megabyte.

Where a text is cut depends on the text only, so the pieces are the same for any number of processes.
"""

import bz2
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from utils.errors import CorpusError
from utils.files import conversion_hint

STANDARD_INPUT = "-"
PIECE = 1 << 20  # bytes; the rest of the last line is added
_UNDECODABLE = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, after decoding with surrogateescape
_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def read_lines(source: str | Path) -> Iterator[str]:
    """Non-empty lines of a text, without the white space around them.

    Raises:
        CorpusError: as :func:`read_pieces`, or the text is not UTF-8.
    """
    for piece in read_pieces(source):
        text, undecodable = decode(piece)
        if undecodable:
            raise not_utf8(source, piece)
        yield from filter(None, map(str.strip, text.lstrip("\ufeff").replace("\r", "\n").split("\n")))


def read_pieces(source: str | Path) -> Iterator[bytes]:
    """Read a source piece by piece, in constant memory.

    Args:
        source: a path, compressed if it ends in ``.xz``, ``.gz`` or ``.bz2``; ``-`` is standard input.

    Raises:
        CorpusError: the file is missing, can't be read or is damaged.
    """
    try:
        with _open(source) as file:
            while piece := file.read(PIECE):
                yield piece + file.readline()
    except (lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"the file is damaged ({error})", where=source, hint="copy it again") from error
    except OSError as error:
        raise CorpusError(
            f"can't read the text ({error.strerror or str(error)})", where=source, hint="check the file"
        ) from error


def worker_died(source: str | Path) -> CorpusError:
    """The error for a process that died while it worked on pieces of a source."""
    return CorpusError(
        "a worker process died", where=source, hint="perhaps out of memory: run it again with fewer workers"
    )


def decode(piece: bytes) -> tuple[str, int]:
    """A piece as text, and the number of its lines that are not UTF-8; they are left empty."""
    text = piece.decode("utf-8", "surrogateescape")
    if not _UNDECODABLE.search(text):
        return text, 0
    lines = text.split("\n")
    undecodable = {index for index, line in enumerate(lines) if _UNDECODABLE.search(line)}
    kept = ("" if index in undecodable else line for index, line in enumerate(lines))
    return "\n".join(kept), len(undecodable)


def not_utf8(source: str | Path, piece: bytes) -> CorpusError:
    """The error for a text of another encoding, of which a piece is given."""
    return CorpusError("this is not UTF-8 text", where=source, hint=conversion_hint(source, piece))


def _open(source: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(source) == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    return _OPENERS.get(Path(source).suffix, open)(source, "rb")
