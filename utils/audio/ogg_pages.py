"""Finds Ogg files that are cut off: libsndfile reads them as shorter recordings."""

from typing import BinaryIO

_MAGIC = b"OggS"  # at the beginning of each page (RFC 3533, section 6)
_HEADER_BYTES = 27  # of a page; the last of them is the number of its segments, whose lengths follow
_LARGEST_PAGE = _HEADER_BYTES + 255 + 255 * 255


def lacking_bytes(file: BinaryIO, size: int) -> int:
    """How many bytes the last page of an Ogg file lacks, at least; 0 for a whole page and for other files.

    A file that is cut off between two pages is not found: recorders may leave out the mark of the last page.

    Args:
        file: the content; its position is at the beginning afterwards.
        size: its length in bytes.
    """
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        file.seek(0)
        return 0
    file.seek(max(0, size - _LARGEST_PAGE - len(_MAGIC)))
    end = file.read()
    file.seek(0)
    page = end[max(0, end.rfind(_MAGIC)) :]
    if len(page) < _HEADER_BYTES:
        return _HEADER_BYTES - len(page)
    segments = page[_HEADER_BYTES - 1]
    lengths = page[_HEADER_BYTES : _HEADER_BYTES + segments]
    return max(0, _HEADER_BYTES + segments + sum(lengths) - len(page))
