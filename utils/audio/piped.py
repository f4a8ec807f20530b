"""Bytes of a pipe in; raw samples as they come, or a copy of the audio file that they are, out.

The first bytes of a pipe show what is in it. Raw 16-bit samples are passed on as they come, also those behind
a WAV header without a length, which live recorders write. Any other audio file is copied to disk first, since
its readers go back and forth in it, which a pipe can't. Text is refused.
"""

from __future__ import annotations

import codecs
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from utils.audio.reading import UNKNOWN_SIZE, pcm_blocks
from utils.errors import AudioError

_HEAD_BYTES = 4096  # looked at: two frames of an MP3 file and more
_SHOWN_CHARACTERS = 40  # of a text
_NAME = "standard input"
# Files begin with these, at the offset given; libsndfile reads some of them and refuses the others by name.
_SIGNATURES = (
    (0, b"RIFF"), (0, b"RIFX"), (0, b"RF64"), (0, b"riff"), (0, b"fLaC"), (0, b"OggS"), (0, b"ID3"),
    (0, b"FORM"), (0, b".snd"), (0, b"caff"), (0, b"NIST_1A"), (4, b"ftyp"), (0, b"\x1a\x45\xdf\xa3"),
    (0, b"#!AMR"),
)  # fmt: skip
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # bytes that texts don't hold
_LIVE_WAV = re.compile(rb"RIFF.{4}WAVEfmt (.{4})(.{16}).*?data(.{4})", re.DOTALL)
_PCM = 1  # the format code of integers in a WAV header
# Of MPEG audio layer III: kbit/s of MPEG 1 and of MPEG 2 and 2.5, Hz of MPEG 1 (halved, quartered for those).
_MP3_KILOBITS = (
    (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
)
_MP3_HERTZ = (44100, 48000, 32000)


@contextmanager
def open_pipe(
    stream: BinaryIO, rate: int | None, sample_rate: int, seconds: float = 1.0
) -> Iterator[Path | Iterator[np.ndarray]]:
    """What sounds in a pipe.

    Args:
        stream: the bytes, e.g. ``sys.stdin.buffer``.
        rate: Hz, of raw samples (16-bit integers, little-endian, mono); None: there shouldn't be any. What an
            audio file's header says counts more.
        sample_rate: Hz, wanted of raw samples.
        seconds: of raw samples that are waited for before a block is given.

    Yields:
        The path of a copy of the audio file, which is deleted afterwards; or blocks of raw samples, each
        (samples,) float32 in [-1, 1]. Reading the blocks raises AudioError if the pipe is empty, holds text,
        or raw samples whose rate isn't known.
    """
    head = stream.read(_HEAD_BYTES)
    whole = _Rejoined(head, stream)
    if live := _live_wav(head):
        header_bytes, rate = live
        whole.read(header_bytes)
    elif _is_audio_file(head):
        with tempfile.NamedTemporaryFile(prefix="standard-input-") as copy:
            shutil.copyfileobj(whole, copy)
            copy.flush()
            yield Path(copy.name)
        return
    yield _raw_blocks(head, whole, rate, sample_rate, seconds)


class _Rejoined:
    """A stream whose first bytes were looked at, from its beginning."""

    def __init__(self, head: bytes, rest: BinaryIO):
        self._head, self._rest = head, rest

    def read(self, size: int) -> bytes:
        """The next bytes: fewer than ``size`` at the end only."""
        first, self._head = self._head[:size], self._head[size:]
        return first + self._rest.read(size - len(first)) if len(first) < size else first


def _raw_blocks(
    head: bytes, whole: _Rejoined, rate: int | None, sample_rate: int, seconds: float
) -> Iterator[np.ndarray]:
    if (text := _text(head)) is not None:
        what = f"this is text, not sound: it begins with '{text[:_SHOWN_CHARACTERS]}'"
        raise AudioError(what, where=_NAME, hint="pipe raw samples or an audio file into it")
    if rate is None:
        what = "this is no audio file of a known kind" if head else "there are no samples"
        raise AudioError(what, where=_NAME, hint="for raw mono 16-bit sound, give --rate HZ")
    yield from pcm_blocks(whole, rate, sample_rate, seconds)


def _is_audio_file(head: bytes) -> bool:
    known = any(head.startswith(signature, offset) for offset, signature in _SIGNATURES)
    return known or _is_mp3(head)


def _live_wav(head: bytes) -> tuple[int, int] | None:
    """Bytes and sample rate of a WAV header whose writer didn't know the length, of mono 16-bit samples."""
    header = _LIVE_WAV.match(head)
    if header is None:
        return None
    code, channels, rate, _, _, bits = struct.unpack("<HHIIHH", header[2])
    (size,) = struct.unpack("<I", header[3])
    return (header.end(), rate) if (code, channels, bits) == (_PCM, 1, 16) and size >= UNKNOWN_SIZE else None


def _is_mp3(head: bytes) -> bool:
    """Whether one frame of MPEG audio layer III follows another: raw samples may begin as a frame does."""
    first = _mp3_frame_bytes(head[:4])
    return bool(first) and bool(_mp3_frame_bytes(head[first : first + 4]))


def _mp3_frame_bytes(header: bytes) -> int:
    """Length of the frame that begins so; 0: none does."""
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE6 != 0xE2:  # in sync, and layer III
        return 0
    version, bit_rate, rate = header[1] >> 3 & 3, header[2] >> 4, header[2] >> 2 & 3
    if version == 1 or not 1 <= bit_rate <= 14 or rate == 3:  # reserved values
        return 0
    first = version == 3  # MPEG 1
    hertz = _MP3_HERTZ[rate] // {3: 1, 2: 2, 0: 4}[version]
    kilobits = _MP3_KILOBITS[0 if first else 1][bit_rate - 1]
    return (144 if first else 72) * 1000 * kilobits // hertz + (header[2] >> 1 & 1)


def _text(head: bytes) -> str | None:
    """The bytes as text in UTF-8 or an older encoding of Chinese; None where they aren't any."""
    if not head or _CONTROL.search(head):
        return None
    for encoding in ("utf-8", "gb18030"):
        try:  # the last character may be cut
            return " ".join(codecs.getincrementaldecoder(encoding)().decode(head).split())
        except UnicodeDecodeError:
            continue
    return None
