"""Opens live audio of a command: the microphone, or a pipe with raw 16-bit samples or any audio file.

The first bytes of a pipe show what it has. Raw samples are yielded in blocks while they arrive; so is a WAV
file whose header has no length, as live recorders write it. Any other audio file is first copied to a
temporary file, because its reader needs to seek. Text is refused.
"""

import re
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np

from utils.audio.containers import frames_follow
from utils.audio.decoding import LOWEST_RATE, UNKNOWN_SIZE
from utils.audio.microphone import microphone_blocks
from utils.audio.problems import text_error
from utils.audio.reading import INT16_SCALE, at_rate, audio_blocks, mix
from utils.errors import AudioError
from utils.stop_signals import Stopped, until_stopped

_HEAD_BYTES = 4096  # examined at the beginning: more than two frames of an MP3 file
_NAME = "standard input"
# At the beginning of audio files; of frames without such a name, FFmpeg must find several.
_SIGNATURES = re.compile(
    rb"RIFF|RIFX|RF64|riff|fLaC|OggS|ID3|FORM|\.snd|caff|NIST_1A|.{4}ftyp|\x1a\x45\xdf\xa3|#!AMR|FLV\x01"
    rb"|Creative Voice File|wvpk|MAC |TTA1|MPCK|\x30\x26\xb2\x75\x8e\x66\xcf\x11|\0\0\x01\xba"
    rb"|G.{187}G.{187}G",  # packets of an MPEG transport stream
    re.DOTALL,
)
_FRAME = re.compile(rb"\xff[\xe2\xe3\xf0-\xf3\xf8-\xfd]|\x0b\x77")  # of MP3, AAC and AC-3
_LIVE_WAV = re.compile(rb"RIFF.{4}WAVEfmt (.{4})(.{16}).*?data(.{4})", re.DOTALL)
_PCM = 1  # the format code of integers in a WAV header


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
    whole, channels = _Unread(head, stream), 1
    if live := _live_wav(head):
        header_bytes, rate, channels = live
        whole.read(header_bytes)
    elif _is_audio_file(head):
        with tempfile.NamedTemporaryFile(prefix="standard-input-") as copy:
            while block := whole.read(_HEAD_BYTES):
                copy.write(block)
            copy.flush()
            yield _file_blocks(copy.name, sample_rate)
        return
    with until_stopped(_raw_blocks(head, whole, rate, channels, sample_rate, seconds)) as blocks:
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
        raise AudioError(error.message, where=_NAME, hint=error.hint) from error


def _raw_blocks(
    head: bytes, whole: _Unread, rate: int | None, channels: int, sample_rate: int, seconds: float
) -> Iterator[np.ndarray]:
    if error := text_error(head, _NAME, "pipe raw samples or an audio file"):
        raise error
    if rate is None:
        raise AudioError(
            "this is not an audio file of a known format" if head else "there are no samples",
            where=_NAME,
            hint="for raw mono 16-bit audio, give --rate HZ",
        )
    if rate < LOWEST_RATE:
        raise AudioError(f"a sample rate of {rate} Hz", where=_NAME, hint="give it in Hz, e.g. --rate 16000")
    yield from at_rate(_integers(whole, max(1, round(seconds * rate)), channels), rate, sample_rate)


def _integers(whole: _Unread, size: int, channels: int) -> Iterator[np.ndarray]:
    """Blocks of ``size`` frames of 16-bit integers, mixed to (samples,) float32, while they arrive."""
    count, frame_bytes = 0, 2 * channels
    while data := whole.read(frame_bytes * size):
        count += len(data)
        if frames := len(data) // frame_bytes:
            integers = np.frombuffer(data, "<i2", frames * channels).reshape(frames, channels)
            yield mix(integers.astype(np.float32) / np.float32(INT16_SCALE))
        if len(data) % frame_bytes:
            raise AudioError(
                f"half a sample at the end, of {count} bytes",
                where=_NAME,
                hint=f"it must be 16-bit audio of {channels} channel{'s' * (channels > 1)}",
            )
    if not count:
        raise AudioError("there are no samples", where=_NAME, hint="pipe audio into it")


def _is_audio_file(head: bytes) -> bool:
    return bool(_SIGNATURES.match(head)) or bool(_FRAME.match(head) and frames_follow(head))


def _live_wav(head: bytes) -> tuple[int, int, int] | None:
    """Length in bytes, sample rate and channels of a WAV header of 16-bit samples without a data length."""
    header = _LIVE_WAV.match(head)
    if header is None:
        return None
    code, channels, rate, _, _, bits = struct.unpack("<HHIIHH", header[2])
    (size,) = struct.unpack("<I", header[3])
    unknown = not size or size >= UNKNOWN_SIZE
    return (header.end(), rate, channels) if (code, bits) == (_PCM, 16) and channels and unknown else None


def live_audio(
    microphone: bool, rate: int | None, sample_rate: int, seconds: float, stopped: list[Stopped]
) -> Iterator[Iterator[np.ndarray]]:
    """Open the microphone or standard input, as the only source of the returned iterator.

    Args:
        microphone: whether to open the default microphone.
        rate: of raw samples in standard input, see :func:`utils.audio.piped.open_pipe`.
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
