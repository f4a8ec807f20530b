"""Decodes audio in the container formats of phones and browsers (m4a, mp4, webm, amr …) with PyAV, in blocks.

libsndfile, which reads all other files (``reading``), does not support these formats. PyAV (the optional
package ``av``) contains FFmpeg, which would also follow playlists and addresses inside a file. For safety it
therefore gets an open file instead of a name, and only the format that the first bytes of the file show.
"""

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from utils.audio.incomplete import cut_off, without_samples
from utils.errors import AudioError, require

INSTALLED = importlib.util.find_spec("av") is not None
"""Whether the package ``av`` is installed."""
SUFFIXES = (".3gp", ".aac", ".amr", ".m4a", ".m4b", ".mka", ".mkv", ".mov", ".mp4", ".webm")
"""Suffixes of the files that this module decodes."""
_INSTALL = "pip install -r requirements/serve.txt, or convert it, e.g. ffmpeg -i FILE -ac 1 FILE.wav"
# (offset, bytes) at the beginning, and FFmpeg's name of the format.
_SIGNATURES = (
    (4, b"ftyp", "mov"),
    (0, b"\x1a\x45\xdf\xa3", "matroska"),
    (0, b"\xff\xf1", "aac"),
    (0, b"\xff\xf9", "aac"),
    (0, b"#!AMR", "amr"),
)
_BLOCK_SECONDS = 20.0  # least length of a block of decoded samples
_SLACK_SECONDS = 1.0  # a file that decodes to less than its header promises, minus this, is cut off


def container_format(file: BinaryIO) -> str | None:
    """FFmpeg's name of the format that the first bytes of a file show; None for any other file."""
    head = file.read(16)
    file.seek(0)
    return next((name for offset, magic, name in _SIGNATURES if head.startswith(magic, offset)), None)


@contextmanager
def open_container(file: BinaryIO, name: str, path: str | Path) -> Iterator[tuple[Iterator[np.ndarray], int]]:
    """Open the first sound track of a file.

    Args:
        file: the content.
        name: FFmpeg's name of the format, from :func:`container_format`.
        path: of the file, for messages.

    Yields:
        An iterator of blocks, (samples, channels) float32, and the sample rate in Hz. Reading a block raises
        AudioError if the file is damaged or cut off.

    Raises:
        AudioError: the package is missing, the file can't be opened, or has no sound.
    """
    require(INSTALLED, "this format needs the package av", where=path, hint=_INSTALL, error=AudioError)
    av: Any = importlib.import_module("av")
    try:
        container = av.open(file, format=name)
    except (av.FFmpegError, ValueError) as error:
        raise _damaged(path, error) from error
    with container:
        if not container.streams.audio:
            raise AudioError(
                "there is no audio in this file", where=path, hint="give a file with an audio track"
            )
        track = container.streams.audio[0]
        if not track.rate or not track.channels:
            raise AudioError("the sound has no sample rate", where=path, hint="make the file again")
        yield _blocks(av, container, track, path), track.rate


def _blocks(av: Any, container: Any, track: Any, path: str | Path) -> Iterator[np.ndarray]:
    resampler = av.AudioResampler("fltp", track.layout, track.rate)
    pending: list[np.ndarray] = []  # each (channels, samples)
    length = total = 0
    try:
        for frame in container.decode(track):
            for planes in resampler.resample(frame):
                pending.append(planes.to_ndarray())
                length += pending[-1].shape[1]
            if length >= _BLOCK_SECONDS * track.rate:
                yield np.concatenate(pending, axis=1).T
                total += length
                pending, length = [], 0
    except (av.FFmpegError, ValueError) as error:
        raise _damaged(path, error) from error
    if length:
        yield np.concatenate(pending, axis=1).T
        total += length
    if not total:
        raise without_samples(path)
    promised = float(track.duration * track.time_base) if track.duration else 0.0
    estimated = track.container.format.name in ("aac", "amr")  # their headers state no length
    if not estimated and total / track.rate < promised - _SLACK_SECONDS:
        decoded = total / track.rate
        raise cut_off(path, f"the header promises {promised:.1f} s, {decoded:.1f} s can be decoded")


def _damaged(path: str | Path, error: Exception) -> AudioError:
    reason = getattr(error, "strerror", None) or type(error).__name__
    return AudioError(
        f"not readable as audio ({reason})",
        where=path,
        hint="copy or download it again, or convert it, e.g. ffmpeg -i FILE -ac 1 FILE.wav",
    )
