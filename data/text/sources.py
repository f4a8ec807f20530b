"""Text files, packed or not, or standard input in; pieces of whole lines, of about a megabyte, out.

Pieces are cut by size alone, so they are the same for whoever works on them.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from utils.errors import CorpusError

STANDARD_INPUT = "-"
PIECE = 1 << 20  # bytes
LONGEST_LINE = 1 << 20  # bytes over a piece's end; a longer line is cut between two characters
_OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def read_pieces(source: str | Path) -> Iterator[bytes]:
    """Read a source piece by piece; memory does not grow with it.

    Args:
        source: a path, packed if it ends in ``.xz``, ``.gz`` or ``.bz2``; ``-`` is standard input.

    Raises:
        CorpusError: the file is missing, can't be read or is damaged.
    """
    try:
        with _opened(source) as file:
            rest = b""
            while piece := file.read(PIECE):
                piece, rest = _whole_characters(rest + piece, file.readline(LONGEST_LINE))
                yield piece
            if rest:
                yield rest
    except (lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"the file is damaged ({error})", where=source, hint="copy it again") from error
    except OSError as error:
        raise CorpusError("can't read the text", where=source, hint=error.strerror or str(error)) from error


def _opened(source: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(source) == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    return _OPENERS.get(Path(source).suffix, open)(source, "rb")


def _whole_characters(piece: bytes, rest_of_line: bytes) -> tuple[bytes, bytes]:
    """Both joined, and apart from them the last character if the line is longer than is read of it."""
    piece += rest_of_line
    if len(rest_of_line) < LONGEST_LINE or piece.endswith(b"\n"):
        return piece, b""
    last = len(piece) - 1
    while piece[last] & 0xC0 == 0x80 and last > len(piece) - 4:  # a byte inside of a character
        last -= 1
    return piece[:last], piece[last:]


def decoded(piece: bytes) -> tuple[str, int]:
    """A piece as text, and how many of its lines were left out as they are not UTF-8."""
    try:
        return piece.decode("utf-8"), 0
    except UnicodeDecodeError:
        lines = []
        for line in piece.split(b"\n"):
            try:
                lines.append(line.decode("utf-8"))
            except UnicodeDecodeError:
                lines.append("")
        bad = sum(not line and bool(raw) for line, raw in zip(lines, piece.split(b"\n"), strict=True))
        return "\n".join(lines), bad
