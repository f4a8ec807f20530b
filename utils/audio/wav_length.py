"""Finds sound behind the end that a WAV header states: of a killed recorder, of files that were joined."""

import io
import re
import struct
from typing import BinaryIO

# Programs that write to a pipe leave a huge size in the header: the length is unknown.
UNKNOWN_SIZE = 0x7FFF0000
_CHUNK = struct.Struct("<4sI")  # name and length
_RIFF_BYTES = 12
_FILE = re.compile(rb"RIFF.{4}WAVE", re.DOTALL)
_TAGS = (b"TAG", b"ID3", b"APETAGEX", b"LYRICSBEGIN")  # behind the chunks of some files


def follows_end(content: BinaryIO) -> bool | None:
    """Whether sound follows behind the samples that the header of a WAV file states; None for other files.

    It may be more samples, or another WAV file.
    """
    size = content.seek(0, io.SEEK_END)
    content.seek(0)
    if not _FILE.match(content.read(_RIFF_BYTES)):
        return None
    position = _RIFF_BYTES
    while position + _CHUNK.size <= size:
        name, length = _chunk_at(content, position)
        position += _CHUNK.size + length
        if name == b"data":
            return position < size and length < UNKNOWN_SIZE and not only_chunks(content, position, size)
        position += length % 2
    return False


def only_chunks(content: BinaryIO, position: int, size: int) -> bool:
    """Whether whole chunks, such as titles, follow up to the end: then there are no samples among them."""
    content.seek(position)
    if content.read(len(max(_TAGS, key=len))).startswith(_TAGS):
        return True
    position += position % 2
    while position + _CHUNK.size <= size:
        name, length = _chunk_at(content, position)
        if name == b"RIFF" or not (name.isascii() and name.decode("ascii").isprintable()):
            return False
        position += _CHUNK.size + length + length % 2
    return position in (size, size + 1)  # the last padding byte is often missing


def _chunk_at(content: BinaryIO, position: int) -> tuple[bytes, int]:
    content.seek(position)
    return _CHUNK.unpack(content.read(_CHUNK.size))
