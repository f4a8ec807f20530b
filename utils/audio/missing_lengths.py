"""Adds the length that the header of a WAV or MP3 file lacks, so that libsndfile reads all of its samples.

A recorder that is killed leaves a WAV header with 0 bytes of samples. An MP3 file need not state its length;
libsndfile then estimates it from the bit rate of the first frame, and reads no further. Where several MP3
files were joined, the length of the first is stated.
"""

import io
import struct
from pathlib import Path
from typing import BinaryIO

from utils.audio.formats import CONVERT_HINT
from utils.audio.frame_headers import (
    count_mp3_frames,
    find_mp3_frame,
    has_frame_count,
    has_tag,
    info_frame,
    same_format,
    stated_bytes,
)
from utils.errors import AudioError

_HEAD_BYTES = 1 << 16
_CHUNK = struct.Struct("<4sI")  # name and length
_RIFF_BYTES = 12
_LARGEST = 0xFFFFFFFF
_SLACK = 1.01  # not all encoders count the same bytes of an MP3 file


def with_length(content: BinaryIO, audio_format: str, frames: int, path: str | Path) -> io.BytesIO | None:
    """A copy of a file whose header states the length, in memory; None if the header of the file states it.

    Args:
        content: of the file; its position stays as it is, because libsndfile may be reading it.
        audio_format: libsndfile's name of the format.
        frames: number of samples of each channel, according to libsndfile.
        path: of the file, for messages.

    Raises:
        AudioError: MP3 files of different sample rates or channels were joined.
    """
    position = content.tell()
    try:
        if audio_format in ("WAV", "WAVEX") and not frames:
            return _completed_wav(content)
        return _completed_mp3(content, path) if audio_format == "MP3" else None
    finally:
        content.seek(position)


def _completed_wav(content: BinaryIO) -> io.BytesIO | None:
    content.seek(0)
    data = bytearray(content.read())
    position = _RIFF_BYTES
    while position + _CHUNK.size <= len(data):
        name, length = _CHUNK.unpack_from(data, position)
        position += _CHUNK.size
        if name != b"data":
            position += length + length % 2
        elif length or position == len(data) or ends_with_chunks(data, position):
            return None
        else:
            struct.pack_into("<I", data, position - 4, min(len(data) - position, _LARGEST))
            struct.pack_into("<I", data, 4, min(len(data) - _CHUNK.size, _LARGEST))
            return io.BytesIO(data)
    return None


def ends_with_chunks(data: bytes | bytearray, position: int) -> bool:
    """Whether a WAV file goes on with whole chunks up to its end: then there are no samples before them."""
    while position + _CHUNK.size <= len(data):
        name, length = _CHUNK.unpack_from(data, position)
        if not (name.isascii() and name.decode("ascii").isprintable()):
            return False
        position += _CHUNK.size + length + length % 2
    return position in (len(data), len(data) + 1)  # the last padding byte is often missing


def _stated_end(start: int, frame: bytes, size: int) -> int:
    """Where an MP3 file ends according to its first frame, with some slack for a tag; ``size`` if unknown."""
    stated = stated_bytes(frame)
    return start + len(frame) + int(_SLACK * stated) if stated else size


def _completed_mp3(content: BinaryIO, path: str | Path) -> io.BytesIO | None:
    size = content.seek(0, io.SEEK_END)
    content.seek(0)
    data = content.read(_HEAD_BYTES)
    found = find_mp3_frame(data)
    if found and has_frame_count(found[1]) and size <= _stated_end(*found, size):
        return None  # most files: their rest need not be read
    data += content.read()
    found = find_mp3_frame(data)  # after a long ID3 tag
    if found is None:
        return None
    start, frame = found
    if has_frame_count(frame):
        joined = find_mp3_frame(data[_stated_end(start, frame, size) :], size)
        if joined is None:
            return None  # nothing follows but a tag, such as a picture
        if not same_format(frame, joined[1]):
            raise AudioError(
                "joined MP3 files of different sample rates or channels: only the first can be read",
                where=path,
                hint=CONVERT_HINT,
            )
    if has_tag(frame):
        start += len(frame)
    return io.BytesIO(info_frame(frame, count_mp3_frames(data, start)) + data[start:])
