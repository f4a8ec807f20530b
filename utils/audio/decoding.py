"""Opens an audio file with the decoder that reads it, and checks that all of its sound comes out.

libsndfile reads uncompressed sound (WAV, AIFF, CAF …), FLAC and Ogg, FFmpeg everything else (``containers``).
Files that were joined (``cat a.m4a b.m4a``) are decoded one after the other, since decoders stop after the
first.
"""

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile

from utils.audio.containers import TAG_BYTES, open_container
from utils.audio.problems import (
    AGAIN_HINT,
    UnknownFormat,
    cut_off,
    not_audio,
    text_error,
    without_samples,
)
from utils.errors import AudioError
from utils.files import is_file
from utils.object_store import open_file

LOWEST_RATE = 1000  # Hz; a lower rate is refused as a wrong header, because resampling would fill the memory
HEAD_BYTES = 4096  # by which the kind of a file is recognised
_BLOCK_FRAMES = 1 << 18  # samples of each channel that are decoded at once
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
_PAGE = b"OggS"  # begins each page of an Ogg file
_PAGE_HEADER_BYTES = 27  # the last of them is the number of segments, whose lengths follow
_LONGEST_FIRST_PAGE = 512  # bytes of the first page of a track
_LARGEST_PAGE = _PAGE_HEADER_BYTES + 255 + 255 * 255
# Beginnings of files that decoders read only up to the next such beginning. (Position of the match in the
# file, pattern); in MP4, a picture of its own (HEIC) may also begin with ftyp.
_JOINABLE = (
    (4, re.compile(rb"ftyp.{8,88}?(?:moov|moof|mdat|free|skip|wide)", re.DOTALL)),
    (0, re.compile(rb"\x1a\x45\xdf\xa3.{1,8}?\x42\x86", re.DOTALL)),  # WebM, Matroska
    (0, re.compile(rb"fLaC\0\0\0\x22")),
    (0, re.compile(rb"OggS\0\x02")),  # also of a second track
    (0, re.compile(rb"#!AMR(?:-WB)?\n")),
    (0, re.compile(rb"RIFF.{4}(?:WAVE|AVI LIST)", re.DOTALL)),
    (0, re.compile(rb"RF64\xff{4}WAVE")),
    (0, re.compile(rb"FORM.{4}AIF[FC]", re.DOTALL)),
    (0, re.compile(rb"caff\0\x01\0\0desc")),
    (0, re.compile(rb"FLV\x01[\x01\x04\x05]\0\0\0\x09")),
    (0, re.compile(rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9")),  # WMA
    (0, re.compile(rb"TTA1\x01\0[\x01-\x08]\0[\x08\x10\x18]\0")),
)
_LONGEST_BEGINNING = 100  # bytes, of such a match
_SEARCHED_BYTES = 1 << 20  # at once


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
    with _opened(path) as content, ExitStack() as stack:
        file, problem = _sound_file(content, path)
        if file:
            stack.enter_context(file)
        wav = file is not None and file.format in ("WAV", "WAVEX")
        goes_on = file is not None and wav and bool(_GOES_ON.search(file.extra_info))
        beginnings = [0] if wav and not goes_on else _beginnings(content)
        if file and not goes_on and len(beginnings) == 1:
            yield _checked(file, content, path, problem)
            return
        try:
            container = open_container(_parts(content, beginnings), path, ignore_length=goes_on)
            blocks, rate = stack.enter_context(container)
        except AudioError as error:  # FFmpeg takes some texts for sound without samples
            content.seek(0)
            head = content.read(HEAD_BYTES)
            if text := text_error(head, path, "remove it, or give the recording"):
                raise text from error
            if isinstance(error, UnknownFormat) and head[4:8] == b"ftyp":
                message = "the audio file is cut off: its index, often written at its end, can't be read"
                raise UnknownFormat(message, where=path, hint=AGAIN_HINT) from error
            raise (cut_off(path, problem) if problem else error) from error
        _check_rate(rate, path)
        yield Sound(_then_cut_off(blocks, rate, problem, path), rate)


def _then_cut_off(
    blocks: Iterator[np.ndarray], rate: int, reason: str, path: str | Path
) -> Iterator[np.ndarray]:
    """The blocks that are there, then an error if there is a reason: what can be decoded is not lost."""
    frames = 0
    for block in blocks:
        frames += len(block)
        yield block
    if reason:
        raise cut_off(path, f"{reason}, {frames / rate:.1f} s can be decoded")


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    """The content of a file or object, which is there and not empty."""
    missing = AudioError("no such audio file", where=path, hint="check the path")
    if not is_file(path):
        raise _not_a_file(path) or missing
    try:
        file = open_file(path)
    except FileNotFoundError as error:
        raise missing from error
    except OSError as error:
        raise not_audio(path, error.strerror or str(error)) from error
    with file:
        try:
            size = file.seek(0, io.SEEK_END)
        except OSError as error:  # /proc/self/mem
            raise not_audio(path, error.strerror or str(error)) from error
        if not size:
            raise AudioError("the audio file is empty (0 bytes)", where=path, hint=AGAIN_HINT)
        yield file


def _not_a_file(path: str | Path) -> AudioError | None:
    """The error of a path that exists, but is no file; None if it doesn't exist."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for impossible names
        return AudioError("a folder, not an audio file", where=path, hint="give the files in it")
    if os.path.exists(path):  # noqa: PTH110
        return AudioError("a pipe or device, not an audio file", where=path, hint="read it with: - < PATH")
    return None


class _SequentialFile(soundfile.SoundFile):
    """A sound file that is read from beginning to end.

    ``soundfile`` seeks to the current position after each read. That takes time, and fails at the end of FLAC
    files of unknown length.
    """

    def seekable(self) -> bool:
        """False, so that ``read`` doesn't seek."""
        return False


def _sound_file(content: BinaryIO, path: str | Path) -> tuple[soundfile.SoundFile | None, str]:
    """Open what libsndfile reads well, None for any other file; and what is wrong with the file."""
    content.seek(0)
    if not content.read(HEAD_BYTES).startswith(_LIBSNDFILE):
        return None, ""
    lacking = _lacking_in_ogg(content)
    content.seek(0)
    if isinstance(content, io.BytesIO):
        source = io.BytesIO(content.getvalue())  # with a position of its own; the bytes are shared
    else:  # libsndfile reads a file itself, by its name, which need not be UTF-8
        source = str(path) if sys.platform == "win32" else os.fsencode(path)
    try:
        file = _SequentialFile(source)
    except soundfile.LibsndfileError as error:
        return None, error.error_string if error.code == _MALFORMED else lacking
    except TypeError:  # for *.raw it wants to know the sample rate
        return None, ""
    if _CODINGS.match(file.subtype):
        return file, lacking
    file.close()
    return None, ""


def _checked(file: soundfile.SoundFile, content: BinaryIO, path: str | Path, problem: str) -> Sound:
    """The sound of a file, cut off if there is a problem or if its header promises more than the file has."""
    _check_rate(file.samplerate, path)
    if not file.frames:
        raise cut_off(path, problem) if problem else without_samples(path)
    blocks = _blocks(file, content, path)
    for promised, present in _SHORT_DATA.findall(file.extra_info):
        # Some programs count a padding byte.
        if int(present) + 1 < int(promised) < UNKNOWN_SIZE:
            problem = f"the header promises {promised} bytes, {present} are there"
    if problem:
        return Sound(_then_cut_off(blocks, file.samplerate, problem, path), file.samplerate)
    return Sound(blocks, file.samplerate, file.frames if file.frames < _UNKNOWN_FRAMES else None)


def _check_rate(rate: int, path: str | Path) -> None:
    if rate < LOWEST_RATE:
        raise AudioError(f"a sample rate of {rate} Hz", where=path, hint="make the file again")


def _blocks(file: soundfile.SoundFile, content: BinaryIO, path: str | Path) -> Iterator[np.ndarray]:
    """Blocks of (samples, channels) float32; AudioError if they are fewer than the header says."""
    frames = 0
    try:
        while len(block := file.read(min(file.frames, _BLOCK_FRAMES), dtype="float32", always_2d=True)):
            frames += len(block)
            yield block
    except soundfile.SoundFileError:  # FFmpeg reads on where FLAC is damaged, and says how far
        with open_container([content], path) as (blocks, _):
            for block in blocks:
                if len(block) > frames:
                    yield block[frames:]
                frames = max(0, frames - len(block))
        return
    if frames < file.frames < _UNKNOWN_FRAMES:
        promised, decoded = (count / file.samplerate for count in (file.frames, frames))
        raise cut_off(path, f"the header promises {promised:.1f} s, {decoded:.1f} s can be decoded")


def _lacking_in_ogg(content: BinaryIO) -> str:
    """What the last page of an Ogg file lacks: its header states no length (RFC 3533, section 6)."""
    size = content.seek(0, io.SEEK_END)
    content.seek(0)
    if content.read(len(_PAGE)) != _PAGE:
        return ""
    content.seek(max(0, size - _LARGEST_PAGE))
    end = content.read()
    page = end[end.rfind(_PAGE) :]
    segments = page[_PAGE_HEADER_BYTES - 1] if len(page) >= _PAGE_HEADER_BYTES else 0
    lengths = page[_PAGE_HEADER_BYTES : _PAGE_HEADER_BYTES + segments]
    lacking = _PAGE_HEADER_BYTES + segments + sum(lengths) - len(page)
    if lacking < -TAG_BYTES:
        return f"{-lacking} bytes after the last page of this Ogg file can't be read"
    return f"the last page of this Ogg file lacks {lacking} bytes" if lacking > 0 else ""


def _beginnings(content: BinaryIO) -> list[int]:
    """Positions at which a file of the same kind begins, 0 included: those of the files that were joined."""
    content.seek(0)
    head = content.read(HEAD_BYTES)
    for offset, pattern in _JOINABLE:
        if pattern.match(head, offset):
            found, position, tail = {0}, 0, b""
            content.seek(0)
            while block := content.read(_SEARCHED_BYTES):
                data = tail + block
                start = position - len(tail) - offset
                found.update(start + match.start() for match in pattern.finditer(data))
                position += len(block)
                tail = data[-_LONGEST_BEGINNING:]
            return sorted(found)
    return [0]


def _parts(content: BinaryIO, beginnings: Sequence[int]) -> Iterator[BinaryIO]:
    """The files of which a file was joined, one at a time in memory; the file itself if it is one."""
    content.seek(0)
    if content.read(len(_PAGE)) == _PAGE:  # its tracks begin one after the other
        ends = [-_LONGEST_FIRST_PAGE, *beginnings]
        beginnings = [at for before, at in pairwise(ends) if at - before >= _LONGEST_FIRST_PAGE]
    if len(beginnings) == 1:
        yield content
        return
    for begin, end in zip(beginnings, [*beginnings[1:], None], strict=True):
        content.seek(begin)
        yield io.BytesIO(content.read(-1 if end is None else end - begin))
