"""Live audio of a command: standard input (raw 16-bit samples, or any audio file) or the microphone.

The first bytes of standard input show what it is. Raw samples are yielded in blocks while they arrive; so is
a WAV file whose header has no length, as live recorders write it. Any other audio file is first copied to a
temporary file, because its reader needs to seek. Text is refused.
"""

import re
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np

from utils.audio.decoding import LOWEST_RATE, UNKNOWN_SIZE, UnknownFormat, text_error
from utils.audio.microphone import microphone_blocks
from utils.audio.reading import audio_blocks, pcm_blocks
from utils.errors import AudioError
from utils.stop_signals import Stopped, until_stopped

_HEAD_BYTES = 4096
_NAME = "standard input"
# At the beginning of audio files, where the rate of raw samples is given too.
_SIGNATURES = re.compile(
    rb"RIFF|RF64|riff|fLaC|OggS|ID3|FORM|\.snd|caff|.{4}ftyp|\x1a\x45\xdf\xa3|#!AMR", re.DOTALL
)
_LIVE_WAV = re.compile(rb"RIFF.{4}WAVEfmt (.{4})(.{16}).*?data(.{4})", re.DOTALL)
_PCM = 1  # the format code of integers in a WAV header


def live_audio(
    microphone: bool, rate: int | None, sample_rate: int, seconds: float, stopped: list[Stopped]
) -> Iterator[Iterator[np.ndarray]]:
    """Open the microphone or standard input, as the only source of the returned iterator.

    Args:
        microphone: whether to open the default microphone.
        rate: of raw samples in standard input, see :func:`open_pipe`.
        sample_rate: Hz, of the blocks.
        seconds: length of a block.
        stopped: gets the signal that has ended the blocks. It is not raised, because a recogniser asks for
            its next source before it has processed the last one: what was read would be lost.

    Yields:
        Blocks of (samples,) float32 in [-1, 1].
    """
    try:
        if microphone:
            with until_stopped(microphone_blocks(sample_rate, seconds)) as blocks:
                yield blocks
        else:
            with open_pipe(sys.stdin.buffer, rate, sample_rate, seconds) as blocks:
                yield blocks
    except Stopped as error:
        stopped.append(error)


@contextmanager
def open_pipe(
    stream: BinaryIO, rate: int | None, sample_rate: int, seconds: float = 1.0
) -> Iterator[Iterator[np.ndarray]]:
    """Open a pipe with an audio file or raw samples.

    Args:
        stream: the bytes, e.g. ``sys.stdin.buffer``.
        rate: sample rate in Hz of piped raw samples (16-bit integers, little-endian, mono); None: raw samples
            are refused. The rate in the header of an audio file takes precedence.
        sample_rate: Hz, of the blocks.
        seconds: length of a block of raw samples.

    Yields:
        Blocks of (samples,) float32 in [-1, 1]. Reading them raises AudioError if the pipe is empty, contains
        text, raw samples without a known rate, or an audio file that can't be read. Ctrl-C and SIGTERM end
        the blocks of raw samples.

    Raises:
        Stopped: after the block, if a signal has ended the blocks.
    """
    head = stream.read(_HEAD_BYTES)
    whole = _Unread(head, stream)
    if live := _live_wav(head):
        header_bytes, rate = live
        whole.read(header_bytes)
    elif head and (rate is None or _SIGNATURES.match(head)):
        with tempfile.NamedTemporaryFile(prefix="standard-input-") as copy:
            shutil.copyfileobj(whole, copy)
            copy.flush()
            yield _file_blocks(copy.name, sample_rate)
        return
    with until_stopped(_raw_blocks(head, whole, rate or sample_rate, sample_rate, seconds)) as blocks:
        yield blocks


class _Unread:
    """A stream of which the first bytes were read already; reading it starts at the beginning again."""

    def __init__(self, head: bytes, rest: BinaryIO):
        self._head, self._rest = head, rest

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer only at the end."""
        first, self._head = self._head[:size], self._head[size:]
        return first + self._rest.read(size - len(first)) if len(first) < size else first


def _file_blocks(copy: str, sample_rate: int) -> Iterator[np.ndarray]:
    """As :func:`audio_blocks`; errors name the pipe, not the temporary file."""
    try:
        yield from audio_blocks(copy, sample_rate)
    except AudioError as error:
        raw = isinstance(error, UnknownFormat)
        hint = "for raw mono 16-bit audio, give --rate HZ" if raw else error.hint
        raise AudioError(error.message, where=_NAME, hint=hint) from error


def _raw_blocks(
    head: bytes, whole: _Unread, rate: int, sample_rate: int, seconds: float
) -> Iterator[np.ndarray]:
    if error := text_error(head, _NAME, "pipe raw samples or an audio file"):
        raise error
    if rate < LOWEST_RATE:
        raise AudioError(f"a sample rate of {rate} Hz", where=_NAME, hint="give it in Hz, e.g. --rate 16000")
    yield from pcm_blocks(whole, rate, sample_rate, seconds)


def _live_wav(head: bytes) -> tuple[int, int] | None:
    """Length in bytes and sample rate of a WAV header without a data length, for mono 16-bit samples."""
    header = _LIVE_WAV.match(head)
    if header is None:
        return None
    code, channels, rate, _, _, bits = struct.unpack("<HHIIHH", header[2])
    (size,) = struct.unpack("<I", header[3])
    unknown = not size or size >= UNKNOWN_SIZE
    return (header.end(), rate) if (code, channels, bits) == (_PCM, 1, 16) and unknown else None
