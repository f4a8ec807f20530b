"""Reads audio files of any usual format as mono float32 samples at one sample rate, or says what is wrong.

libsndfile decodes (``containers`` for m4a, mp4 and webm), channels are averaged, soxr resamples. All
recordings are read here, so that damaged ones are found before they become wrong features: files that are
cut off, text named ``.wav``, NaN samples, floats that are not scaled to ±1.
"""

import contextlib
import io
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile
import soxr

from utils.audio.containers import container_format, open_container
from utils.audio.formats import AUDIO_SUFFIXES, CONVERT_HINT, audio_names, is_audio, warn_unreadable
from utils.audio.incomplete import cut_off, without_samples
from utils.audio.missing_lengths import with_length
from utils.audio.ogg_pages import is_chained, lacking_bytes
from utils.errors import AudioError
from utils.files import is_file, replacing
from utils.object_store import open_file
from utils.stop_signals import watched

SAMPLE_RATE = 16000  # Hz, used by all configs unless they set another one
HIGHEST_RATE = 1_000_000  # Hz, of a config
INT16_SCALE = 32768.0  # 1.0 as a 16-bit integer, the sample format of most corpora

_BLOCK_FRAMES = 1 << 20  # samples of each channel that are decoded at once
# Float files may slightly exceed ±1; a peak above this is an error: integers were stored as floats.
_UNSCALED_PEAK = 64.0
# Programs that write WAV to a pipe leave a huge size in the header: the length is unknown, nothing is cut
# off.
UNKNOWN_SIZE = 0x7FFF0000
_UNKNOWN_FRAMES = (1 << 63) - 1  # libsndfile's SF_COUNT_MAX, e.g. for FLAC written to a pipe
LOWEST_RATE = 1000  # Hz; a lower rate is refused as a wrong header, because resampling would fill the memory
# In libsndfile's log: a header that states more bytes than the file has, for WAV, AIFF, W64, RF64, AU.
_SHORT_DATA = re.compile(
    r"^\s*(?:data|SSND|riff|Riff size|Data Size)\s*: (\d+) \(should be (\d+)\)", re.MULTILINE
)


def read_audio(path: str | Path, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
    """Read a recording as mono samples at ``sample_rate``.

    Several channels are averaged. Samples beyond ±1 (float files, lossy codecs, resampling) are clipped. The
    format is determined by the content of the file, not by its name.

    Args:
        path: WAV, FLAC, OGG, MP3, another format of libsndfile, or one of :mod:`utils.audio.containers`; or
            the address of such a file (:mod:`utils.object_store`), whose content is held in memory.
        sample_rate: Hz.

    Returns:
        (samples,) float32 in [-1, 1].

    Raises:
        AudioError: the file is missing, empty, not audio, cut off, or holds NaN or unscaled samples.
        StoreError: a store does not answer.
    """
    blocks = list(audio_blocks(path, sample_rate))
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def audio_blocks(path: str | Path, sample_rate: int = SAMPLE_RATE) -> Iterator[np.ndarray]:
    """Read a recording of any length block by block; the blocks together equal :func:`read_audio`.

    Args:
        path, sample_rate: as for :func:`read_audio`.

    Yields:
        (samples,) float32 in [-1, 1], of about a minute.

    Raises:
        AudioError: as for :func:`read_audio`; damage after the header is found when it is reached.
    """
    with _source(path) as (blocks, rate):
        mono = (_checked_mono(block, path) for block in blocks)
        empty = True
        for block in at_rate(mono, rate, sample_rate):
            empty = False
            yield np.clip(block, -1.0, 1.0)
        if empty:
            raise AudioError(
                f"too short for a sample at {sample_rate} Hz", where=path, hint="remove it from the list"
            )


def pcm_blocks(
    stream: BinaryIO, rate: int, sample_rate: int = SAMPLE_RATE, seconds: float = 1.0
) -> Iterator[np.ndarray]:
    """Read mono sound without a header (16-bit integers, little-endian) while it arrives, e.g. from a pipe.

    Args:
        stream: bytes, read to the end.
        rate: Hz, of the stream.
        sample_rate: Hz, of the result.
        seconds: length of a block.

    Yields:
        (samples,) float32 in [-1, 1], of ``seconds`` or less.

    Raises:
        AudioError: the stream is empty, or ends within a sample.
    """
    yield from at_rate(_pcm_samples(stream, max(1, round(seconds * rate))), rate, sample_rate)


def read_channels(path: str | Path) -> tuple[np.ndarray, int]:
    """Read a recording unchanged: (samples, channels) float32, and its sample rate in Hz.

    Raises:
        AudioError: the file is missing, empty, not audio, cut off, or holds NaN or unscaled samples.
    """
    with _source(path) as (blocks, rate):
        samples = _joined(blocks)
    _check_samples(samples, path)
    return samples, rate


def audio_seconds(path: str | Path) -> float:
    """Length of a recording in seconds, from its header (the samples are not decoded).

    Raises:
        AudioError: the file is missing, empty, not audio, or its header shows that it is cut off.
    """
    return seconds_and_rate(path)[0]


def seconds_and_rate(path: str | Path) -> tuple[float, int]:
    """As :func:`audio_seconds`, and the sample rate in Hz."""
    with _opened(path) as content:
        if name := container_format(content):  # its header need not say how long it is
            with open_container(content, name, path) as (blocks, rate):
                return sum(map(len, blocks)) / rate, rate
        with _sound_file(content, path) as file:
            frames = file.frames if file.frames < _UNKNOWN_FRAMES else len(_joined(_blocks(file, path)))
            return frames / file.samplerate, file.samplerate


def sample_rates_of(paths: Sequence[str | Path], count: int = 50) -> Counter[int]:
    """Count the sample rates (Hz) of up to ``count`` evenly chosen recordings; unreadable ones are ignored.

    Only headers are read, which is fast enough before each training.
    """
    rates: Counter[int] = Counter()
    for path in paths[:: -(-len(paths) // count) or 1]:
        with contextlib.suppress(AudioError):
            rates[seconds_and_rate(path)[1]] += 1
    return rates


def write_wav(path: str | Path, samples: np.ndarray, sample_rate: int = SAMPLE_RATE) -> None:
    """Write (samples,) floats as a mono 16-bit WAV; values outside [-1, 1] are clipped.

    Raises:
        OSError: the file can't be written.
    """
    # Written by Python, because libsndfile reports a full disk as "System error".
    content = io.BytesIO()
    soundfile.write(content, as_int16(samples), sample_rate, subtype="PCM_16", format="WAV")
    with replacing(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def as_int16(samples: np.ndarray) -> np.ndarray:
    """(samples,) floats as 16-bit integers, as :func:`write_wav` writes them."""
    return np.clip(np.rint(samples * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype(np.int16)


def find_recordings(folder: str | Path) -> list[Path]:
    """All audio files in a folder and its subfolders, by the suffixes of their names, sorted.

    Hidden files and folders are left out. Audio files of formats that can't be read are named on standard
    error.

    Raises:
        AudioError: the folder has no recording that can be read.
    """
    files = sorted(Path(folder, name) for name in audio_names(folder))
    found = [path for path in files if is_audio(path)]
    unreadable = [path for path in files if not is_audio(path)]
    if not found:
        hint = f"formats: {', '.join(sorted(AUDIO_SUFFIXES))}"
        if unreadable:
            left_out = f"{len(unreadable)} files have a format that can't be read, e.g. {unreadable[0]}"
            hint = f"{left_out}: {CONVERT_HINT}"
        raise AudioError("no recordings in this folder", where=folder, hint=hint)
    warn_unreadable(folder, unreadable)
    return found


def resample(samples: np.ndarray, from_rate: float, to_rate: float, quality: str = "HQ") -> np.ndarray:
    """Resample (samples,) float32, band-limited, with soxr; rates in Hz, ``LQ`` takes half the time."""
    if from_rate == to_rate:
        return samples
    return soxr.resample(samples, from_rate, to_rate, quality)


def at_rate(blocks: Iterable[np.ndarray], from_rate: float, to_rate: float) -> Iterator[np.ndarray]:
    """Like :func:`resample` of all blocks (samples,) together; empty blocks are left out."""
    if from_rate == to_rate:
        yield from blocks
        return
    resampler = soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32")
    for block in blocks:
        resampled = resampler.resample_chunk(block)
        if len(resampled):
            yield resampled
    rest = resampler.resample_chunk(np.zeros(0, np.float32), last=True)
    if len(rest):
        yield rest


class _SequentialFile(soundfile.SoundFile):
    """A sound file that is read from beginning to end.

    ``soundfile`` seeks to the current position after each read. That takes time, and fails at the end of FLAC
    files of unknown length.
    """

    states_length = True  # whether fewer samples than ``frames`` mean that the file is cut off

    def seekable(self) -> bool:
        """False, so that ``read`` doesn't seek."""
        return False


@contextlib.contextmanager
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
        raise _not_audio(path, error) from error
    with file:
        try:
            size = file.seek(0, io.SEEK_END)
        except OSError as error:  # /proc/self/mem
            raise _not_audio(path, error) from error
        if not size:
            raise AudioError(
                "the audio file is empty (0 bytes)", where=path, hint="copy or download it again"
            )
        if lacking := lacking_bytes(file, size):
            raise cut_off(path, f"the last page of this Ogg file lacks {lacking} bytes")
        if is_chained(file, size):
            raise AudioError(
                "several Ogg recordings in one file: only the first can be read",
                where=path,
                hint=CONVERT_HINT,
            )
        yield file


def _sound_file(content: BinaryIO, path: str | Path) -> soundfile.SoundFile:
    """Open what libsndfile decodes, and check the header."""
    try:
        # By its name, if it has one: libsndfile then reads it itself.
        with watched("read", path):
            file = _SequentialFile(content if isinstance(content, io.BytesIO) else _system_name(path))
            if completed := with_length(content, file.format, file.frames, path):
                file.close()
                file = _SequentialFile(completed)
                file.states_length = False
    except (soundfile.SoundFileError, TypeError, OSError) as error:
        # TypeError: soundfile requires a sample rate for files without a header (*.raw).
        raise _not_audio(path, error) from error
    try:
        _check_header(file, path)
    except AudioError:
        file.close()
        raise
    return file


def _system_name(path: str | Path) -> str | bytes:
    """A name for libsndfile; it need not be UTF-8, which soundfile requires of a ``str``."""
    return str(path) if sys.platform == "win32" else os.fsencode(path)


def _check_header(file: soundfile.SoundFile, path: str | Path) -> None:
    for promised, present in _SHORT_DATA.findall(file.extra_info):
        # Some programs count a padding byte.
        if int(present) + 1 < int(promised) < UNKNOWN_SIZE:
            raise cut_off(path, f"the header promises {promised} bytes, {present} are there")
    if file.samplerate < LOWEST_RATE:
        raise AudioError(f"a sample rate of {file.samplerate} Hz", where=path, hint="make the file again")
    if file.frames == 0:
        raise without_samples(path)


@contextlib.contextmanager
def _source(path: str | Path) -> Iterator[tuple[Iterator[np.ndarray], int]]:
    """Blocks of (samples, channels) float32 of a file of any format, and its sample rate in Hz."""
    with _opened(path) as content:
        if name := container_format(content):
            with open_container(content, name, path) as source:
                yield source
        else:
            with _sound_file(content, path) as file:
                yield _blocks(file, path), file.samplerate


def _joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    """All samples (samples, channels) float32; read in blocks, since a header may be wrong."""
    blocks = list(parts)
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _blocks(file: soundfile.SoundFile, path: str | Path) -> Iterator[np.ndarray]:
    """Blocks of (samples, channels) float32; refuses fewer samples than the header says, and none at all."""
    frames, size = 0, min(file.frames, _BLOCK_FRAMES)
    try:
        while len(block := _read_block(file, size, path)):
            frames += len(block)
            yield block
    except soundfile.SoundFileError as error:
        raise cut_off(path, f"decoding stops after {frames} samples") from error
    if file.states_length and frames < file.frames < _UNKNOWN_FRAMES:
        raise cut_off(path, f"the header promises {file.frames} samples, {frames} can be decoded")
    if not frames:
        raise without_samples(path)


def _read_block(file: soundfile.SoundFile, size: int, path: str | Path) -> np.ndarray:
    with watched("read", path):
        return file.read(size, dtype="float32", always_2d=True)


def _checked_mono(block: np.ndarray, path: str | Path) -> np.ndarray:
    """The mean of the channels, after a check: (samples, channels) → (samples,)."""
    _check_samples(block, path)
    return np.ascontiguousarray(block[:, 0]) if block.shape[1] == 1 else block.mean(axis=1)


def _pcm_samples(stream: BinaryIO, size: int) -> Iterator[np.ndarray]:
    """Blocks of ``size`` 16-bit integers as (samples,) float32."""
    count = 0
    while data := stream.read(2 * size):
        count += len(data)
        if len(data) > 1:
            yield np.frombuffer(data, "<i2", len(data) // 2).astype(np.float32) / np.float32(INT16_SCALE)
        if len(data) % 2:
            raise AudioError(
                f"half a sample at the end, of {count} bytes",
                where="standard input",
                hint="it must be 16-bit mono audio",
            )
    if not count:
        raise AudioError("there are no samples", where="standard input", hint="pipe audio into it")


def _check_samples(samples: np.ndarray, path: str | Path) -> None:
    peak = np.abs(samples).max()  # NaN if there is a NaN
    if not np.isfinite(peak):
        count = int(np.size(samples) - np.isfinite(samples).sum())
        raise AudioError(f"{count} samples are NaN or infinite", where=path, hint="make the file again")
    if peak > _UNSCALED_PEAK:
        raise AudioError(
            f"float samples up to {peak:.0f}, expected -1 to 1",
            where=path,
            hint="divide by 32768, or save as 16-bit integers",
        )


def _not_a_file(path: str | Path) -> AudioError | None:
    """The error of a path that exists, but is no file; None if it doesn't exist."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for impossible names
        return AudioError("a folder, not an audio file", where=path, hint="give the files in it")
    if os.path.exists(path):  # noqa: PTH110
        return AudioError("a pipe or device, not an audio file", where=path, hint="read it with: - < PATH")
    return None


def _not_audio(path: str | Path, error: Exception) -> AudioError:
    reason = str(error).rsplit(": ", 1)[-1].strip() or type(error).__name__
    return AudioError(f"not readable as audio ({reason})", where=path, hint=CONVERT_HINT)
