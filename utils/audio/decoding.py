"""Opens an audio file with the decoder that reads it, and checks that all of its sound comes out.

libsndfile reads uncompressed sound (WAV, AIFF, CAF …), FLAC and Ogg, FFmpeg (package ``av``) everything else.
FFmpeg would also follow playlists and addresses inside a file. For safety it gets an open file instead of a
name, and only the formats of ``_FORMATS``, which hold their own sound. It is imported at the first such file:
a WAV file does not need it.
"""

import codecs
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import soundfile

from utils.errors import AudioError, printable
from utils.files import is_file
from utils.object_store import open_file

LOWEST_RATE = 1000  # Hz; a lower rate is refused as a wrong header, because resampling would fill the memory
CONVERT_HINT = "convert it, e.g. ffmpeg -i FILE -ac 1 FILE.wav"
_AGAIN_HINT = "copy or download it again"
_HEAD_BYTES = 4096  # by which text is recognised
_BLOCK_FRAMES = 1 << 20  # samples of each channel that are decoded at once
_MALFORMED = 3  # libsndfile's SF_ERR_MALFORMED_FILE: a known format, but damaged
_UNKNOWN_FRAMES = (1 << 63) - 1  # libsndfile's SF_COUNT_MAX, for headers without a length
# What libsndfile reads: the beginnings of the files, and its names of the codings.
_LIBSNDFILE = (
    b"RIFF", b"RIFX", b"RF64", b"riff", b"FORM", b"caff", b"NIST_1A", b"Creative Voice", b"fLaC", b"OggS",
)  # fmt: skip
_CODINGS = re.compile(r"PCM_|FLOAT|DOUBLE|ULAW|ALAW|DWVW|ALAC|VORBIS|OPUS")
# In libsndfile's log: a header that states more bytes than the file has, for WAV, AIFF, W64, RF64, AU.
_SHORT_DATA = re.compile(
    r"^\s*(?:data|SSND|riff|Riff size|Data Size)\s*: (\d+) \(should be (\d+)\)", re.MULTILINE
)
# In its log, where something that is not a chunk follows the samples that a WAV header states: more samples.
_GOES_ON = re.compile(r"^(?!.*ID3v1).*(?:Exiting parser|Resynching|Have 0 marker)", re.MULTILINE)
# Programs that write to a pipe leave a huge size in the header: the length is unknown.
UNKNOWN_SIZE = 0x7FFF0000

_FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dts,eac3,flac,flv,loas,matroska,mov,mp3,mpc,mpc8,mpeg,mpegts,nistsphere,"
    "nut,ogg,rm,tak,tta,voc,w64,wav,wv"
)
# Formats whose header does not state the length: FFmpeg estimates it from the bit rate.
_ESTIMATED = {"aac", "ac3", "amr", "dts", "eac3", "loas"}
# The number of frames of an MP3 file, where its first frame, without sound, states it.
_FRAME_COUNT = re.compile(rb"(?:Xing|Info)\0\0\0[\1\3\5\7\x09\x0b\x0d\x0f](.{4})", re.DOTALL)
_FIRST_FRAME_BYTES = 2048  # more than a frame of MP3 has
_SLACK_SECONDS = 0.1  # encoders and containers count the first and the last samples differently

_SHOWN_CHARACTERS = 40  # how much of a text a message shows
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # bytes that show that it is not text
_HTML = re.compile(r"<(!doctype html|html|head|body|title)\b", re.IGNORECASE)


class UnknownFormat(AudioError):
    """No decoder reads the file."""


@dataclass(frozen=True)
class Sound:
    """An open audio file.

    Attributes:
        blocks: (samples, channels) float32. Reading one raises AudioError where the file is damaged.
        rate: Hz.
        frames: samples of each channel; None if only decoding shows it.
    """

    blocks: Iterator[np.ndarray]
    rate: int
    frames: int | None = None


@contextmanager
def open_sound(path: str | Path) -> Iterator[Sound]:
    """Open a file, or an object of a store (:mod:`utils.object_store`), by its content.

    Raises:
        AudioError: the file is missing, empty, not audio, or its header shows that it is cut off.
    """
    with _opened(path) as content:
        file = _sound_file(content, path)
        goes_on = file is not None and file.format.startswith("WAV") and _GOES_ON.search(file.extra_info)
        if file and not goes_on:
            with file:
                yield _from_libsndfile(file, path)
            return
        try:
            sound = _from_ffmpeg(content, path, {"ignore_length": "1"} if goes_on else {})
        except UnknownFormat:
            content.seek(0)
            text = text_error(content.read(_HEAD_BYTES), path, "remove it, or give the recording")
            if text:
                raise text from None
            raise
        yield sound


def text_error(head: bytes, path: object, hint: str) -> AudioError | None:
    """The error of a text in place of audio, by its first bytes; None if they are not text."""
    if not head or _CONTROL.search(head):
        return None
    for encoding in ("utf-8", "gb18030"):
        try:  # incremental, because the last character may be incomplete
            text = " ".join(codecs.getincrementaldecoder(encoding)().decode(head).split())
        except UnicodeDecodeError:
            continue
        kind = "text (HTML)" if _HTML.search(text) else "text"
        message = f"this is {kind}, not audio: it begins with '{text[:_SHOWN_CHARACTERS]}'"
        return AudioError(message, where=path, hint=hint)
    return None


@lru_cache(maxsize=256)
def note(text: str, hint: str) -> None:
    """Print what is left out of a file or folder, and what to do; once in a process."""
    print(f"note: {text}: {hint}", file=sys.stderr)


def _cut_off(path: object, reason: str) -> AudioError:
    return AudioError(f"the audio file is cut off: {reason}", where=path, hint=_AGAIN_HINT)


def _without_samples(path: object) -> AudioError:
    return AudioError("the audio file holds no samples", where=path, hint=_AGAIN_HINT)


def _not_audio(path: object, reason: str) -> UnknownFormat:
    return UnknownFormat(f"not readable as audio ({reason})", where=path, hint=CONVERT_HINT)


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    """The content of a file or object, which is there and not empty."""
    missing = AudioError("no such audio file", where=path, hint="check the path")
    if not is_file(path):
        raise _not_a_file(path) or missing
    try:
        file = open_file(path)
        size = file.seek(0, io.SEEK_END)
    except FileNotFoundError as error:
        raise missing from error
    except OSError as error:
        raise _not_audio(path, error.strerror or str(error)) from error
    with file:
        if not size:
            raise AudioError("the audio file is empty (0 bytes)", where=path, hint=_AGAIN_HINT)
        yield file


def _not_a_file(path: str | Path) -> AudioError | None:
    """The error of a path that exists, but is no file; None if it doesn't exist."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for impossible names
        return AudioError("a folder, not an audio file", where=path, hint="give the files in it")
    if os.path.exists(path):  # noqa: PTH110
        return AudioError("a pipe or device, not an audio file", where=path, hint="read it with: - < PATH")
    return None


def _check_rate(rate: int, path: str | Path) -> None:
    if rate < LOWEST_RATE:
        raise AudioError(f"a sample rate of {rate} Hz", where=path, hint="make the file again")


class _SequentialFile(soundfile.SoundFile):
    """A sound file that is read from beginning to end.

    ``soundfile`` seeks to the current position after each read. That takes time, and fails at the end of FLAC
    files of unknown length.
    """

    def seekable(self) -> bool:
        """False, so that ``read`` doesn't seek."""
        return False


def _sound_file(content: BinaryIO, path: str | Path) -> soundfile.SoundFile | None:
    """Open what libsndfile reads well; None for any other file."""
    content.seek(0)
    if not content.read(_HEAD_BYTES).startswith(_LIBSNDFILE):
        return None
    content.seek(0)
    if isinstance(content, io.BytesIO):
        source = io.BytesIO(content.getvalue())  # with a position of its own; the bytes are shared
    else:  # libsndfile reads a file itself, by its name, which need not be UTF-8
        source = str(path) if sys.platform == "win32" else os.fsencode(path)
    try:
        file = _SequentialFile(source)
    except soundfile.LibsndfileError as error:
        if error.code == _MALFORMED:
            raise _cut_off(path, error.error_string) from error
        return None
    except TypeError:  # for *.raw it wants to know the sample rate
        return None
    if _CODINGS.match(file.subtype):
        return file
    file.close()
    return None


def _from_libsndfile(file: soundfile.SoundFile, path: str | Path) -> Sound:
    """The sound of a file; AudioError after the last block if its header promises more than the file has."""
    _check_rate(file.samplerate, path)
    if not file.frames:
        raise _without_samples(path)
    problem = ""
    for promised, present in _SHORT_DATA.findall(file.extra_info):
        if int(present) + 1 < int(promised) < UNKNOWN_SIZE:  # some programs count a padding byte
            problem = f"the header promises {promised} bytes, {present} are there"
    known = file.frames < _UNKNOWN_FRAMES and not problem
    return Sound(_file_blocks(file, path, problem), file.samplerate, file.frames if known else None)


def _file_blocks(file: soundfile.SoundFile, path: str | Path, problem: str) -> Iterator[np.ndarray]:
    decoded, promised = 0, file.frames
    try:
        while len(block := file.read(min(promised, _BLOCK_FRAMES), dtype="float32", always_2d=True)):
            decoded += len(block)
            yield block
    except soundfile.SoundFileError as error:
        problem = str(error)
    if not problem and decoded < promised < _UNKNOWN_FRAMES:
        problem = f"the header promises {promised / file.samplerate:.1f} s"
    if problem:
        raise _cut_off(path, f"{problem}, {decoded / file.samplerate:.1f} s can be decoded")


def _from_ffmpeg(content: BinaryIO, path: str | Path, options: dict[str, str]) -> Sound:
    """The sound track of a file; AudioError after the last block if there should be more."""
    av = importlib.import_module("av")
    content.seek(0)
    try:
        container = av.open(
            content, options={"format_whitelist": _FORMATS, **options}, metadata_errors="replace"
        )
        tracks, track = container.streams.audio, container.streams.best("audio")
    except (av.FFmpegError, ValueError, OSError) as error:
        raise _not_audio(path, getattr(error, "strerror", None) or type(error).__name__) from error
    if track is not None and track.codec_context is None:
        raise _not_audio(path, "its audio codec is not known")
    if track is None:
        raise AudioError("there is no audio in this file", where=path, hint="give a file with an audio track")
    if len(tracks) > 1:
        text = f"only one of {len(tracks)} sound tracks of {printable(path)} is read"
        note(text, "extract others, e.g. the second with ffmpeg -i FILE -map 0:a:1 FILE.wav")
    _check_rate(track.rate, path)
    blocks = _track_blocks(av, container, track, content, path)
    return Sound(chain([next(blocks)], blocks), track.rate)


def _track_blocks(
    av: Any, container: Any, track: Any, content: BinaryIO, path: str | Path
) -> Iterator[np.ndarray]:
    """Blocks of (samples, channels) float32, at the rate of the track, in the layout of its first frame."""
    resampler: Any = None
    first: Any = None  # packet
    # Seconds of sound, of packets that can't be decoded, and of all tracks: pictures may be longer.
    decoded = damaged = end = 0.0
    failure = ""
    packets = container.demux()
    with container:
        while True:
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                if packet.pts is not None and packet.time_base:
                    first = first or packet
                    end = max(end, _end_seconds(packet) - float(first.pts * first.time_base))
                frames = packet.decode() if packet.stream_index == track.index else ()
            except (av.FFmpegError, ValueError, OSError) as error:
                failure = getattr(error, "strerror", None) or type(error).__name__
                if packet is None or not packet.size:
                    break
                damaged += float((packet.duration or 0) * (packet.time_base or 0))
                continue
            for frame in frames:
                decoded += frame.samples / frame.sample_rate
                resampler = resampler or _Resampler(av, frame, track.rate)
                yield from resampler.blocks(frame)
        if resampler:
            yield from resampler.rest()
        promised = _promised_seconds(container, track, content, first)
    if not decoded:
        raise _not_audio(path, failure) if failure else _without_samples(path)
    if max(decoded, end) < promised - _SLACK_SECONDS:
        raise _cut_off(path, f"the header promises {promised:.1f} s, {decoded:.1f} s can be decoded")
    if damaged > _SLACK_SECONDS:
        message = (
            f"the audio file is damaged: {damaged:.1f} s can't be decoded, {decoded:.1f} s can be decoded"
        )
        raise AudioError(message, where=path, hint=_AGAIN_HINT)


class _Resampler:
    """Frames of FFmpeg → blocks of (samples, channels) float32, also where format or rate change."""

    def __init__(self, av: Any, first: Any, rate: int):
        self._new = lambda: av.AudioResampler("fltp", first.layout, rate, frame_size=_BLOCK_FRAMES // 2)
        self._form: Any = None

    def blocks(self, frame: Any) -> Iterator[np.ndarray]:
        """The blocks that a frame completes."""
        form = frame.format.name, frame.layout.name, frame.sample_rate
        if form != self._form:
            if self._form:
                yield from self.rest()
            self._resampler, self._form = self._new(), form
        yield from (block.to_ndarray().T for block in self._resampler.resample(frame))

    def rest(self) -> Iterator[np.ndarray]:
        """The last block."""
        yield from (block.to_ndarray().T for block in self._resampler.resample(None))


def _promised_seconds(container: Any, track: Any, content: BinaryIO, first: Any) -> float:
    """The length that the header states; 0 if it states none. ``first``: the first packet."""
    name = container.format.name
    if name in _ESTIMATED or first is None:
        return 0.0
    if name == "mp3":
        length = min(first.pos, _FIRST_FRAME_BYTES)
        content.seek(first.pos - length)
        count = _FRAME_COUNT.search(content.read(length))
        return int.from_bytes(count[1], "big") * float(first.duration * first.time_base) if count else 0.0
    if track.duration and track.time_base:
        return float(track.duration * track.time_base)
    return (container.duration or 0) / 1e6


def _end_seconds(packet: Any) -> float:
    return float((packet.pts + (packet.duration or 0)) * packet.time_base)
