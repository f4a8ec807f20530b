"""Finds Ogg files that libsndfile reads as shorter recordings: cut off, or several recordings in one file."""

import io
from typing import BinaryIO

_MAGIC = b"OggS"  # at the beginning of each page (RFC 3533, section 6)
_HEADER_BYTES = 27  # of a page; the last of them is the number of its segments, whose lengths follow
_LARGEST_PAGE = _HEADER_BYTES + 255 + 255 * 255
_TYPE, _IS_FIRST = 5, 2  # where the flags of a page are, and that of the first page of a stream
_SERIAL = slice(14, 18)  # the number of the stream


def lacking_bytes(file: BinaryIO, size: int) -> int:
    """How many bytes the last page of an Ogg file lacks, at least; 0 for a whole page and for other files.

    A file that is cut off between two pages is not found: recorders may leave out the mark of the last page.

    Args:
        file: the content; its position is at the beginning afterwards.
        size: its length in bytes.
    """
    page = _last_page(file, size)
    if page is None:
        return 0
    if len(page) < _HEADER_BYTES:
        return _HEADER_BYTES - len(page)
    segments = page[_HEADER_BYTES - 1]
    lengths = page[_HEADER_BYTES : _HEADER_BYTES + segments]
    return max(0, _HEADER_BYTES + segments + sum(lengths) - len(page))


def is_chained(file: BinaryIO, size: int) -> bool:
    """Whether an Ogg file has several recordings one after the other, as broadcasts do (RFC 3533, section 4).

    Arguments as for :func:`lacking_bytes`. Recordings with the same serial number are not found.
    """
    page = _last_page(file, size)
    serials = set()
    while page and len(header := file.read(_HEADER_BYTES)) == _HEADER_BYTES and header[_TYPE] & _IS_FIRST:
        serials.add(header[_SERIAL])
        file.seek(sum(file.read(header[-1])), io.SEEK_CUR)
    file.seek(0)
    return bool(serials) and page[_SERIAL] not in serials


def _last_page(file: BinaryIO, size: int) -> bytes | None:
    """The last page of an Ogg file, perhaps cut off; None for other files."""
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        file.seek(0)
        return None
    file.seek(max(0, size - _LARGEST_PAGE - len(_MAGIC)))
    end = file.read()
    file.seek(0)
    return end[max(0, end.rfind(_MAGIC)) :]
