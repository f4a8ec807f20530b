"""Decodes audio with FFmpeg (package ``av``): compressed files, videos, and what libsndfile can't read.

FFmpeg would also follow playlists and addresses inside a file. For safety it gets an open file instead of a
name, and only the formats of ``_FORMATS``, which hold their own sound. The package is imported at the first
such file: a WAV file does not need it.
"""

import importlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from utils.audio.problems import AGAIN_HINT, not_audio, note, without_samples
from utils.errors import AudioError, printable

SLACK_SECONDS = 0.1  # encoders and containers count the first and the last samples differently
_FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dts,eac3,flac,flv,loas,matroska,mov,mp3,mpc,mpc8,mpeg,mpegts,nistsphere,"
    "nut,ogg,rm,tak,tta,voc,w64,wav,wv"
)
# Formats whose header does not state the length: FFmpeg estimates it from the bit rate.
_ESTIMATED = {"aac", "ac3", "amr", "dts", "eac3", "loas"}
# The number of frames of an MP3 file, where its first frame states it.
_FRAME_COUNT = re.compile(rb"(?:Xing|Info)\0\0\0[\1\3\5\7\x09\x0b\x0d\x0f](.{4})", re.DOTALL)
_FIRST_FRAME_BYTES = 2048  # more than a frame of MP3 has
TAG_BYTES = 4096  # behind the sound, such as a title, that decoders may not understand
_BLOCK_SAMPLES = 1 << 18  # of each channel in a decoded block
_SILENT = 1e-8  # mean square of a track without sound
_QUIETER = 1e-3  # a track with so much less power than another is not the one to listen to


@contextmanager
def open_container(
    parts: Iterable[BinaryIO], path: str | Path, ignore_length: bool = False
) -> Iterator[tuple[Iterator[np.ndarray], int]]:
    """Open a file: its sound track, or the best if there are several.

    Args:
        parts: the content; several for files that were joined, which are decoded one after the other.
        path: of the file, for messages.
        ignore_length: read a WAV file to its end, whatever its header states.

    Yields:
        An iterator of blocks, (samples, channels) float32, and the sample rate in Hz; both as in the first
        frame, to which the others are converted. Reading a block raises AudioError if the file is damaged or
        cut off.

    Raises:
        AudioError: the file can't be opened, or has no sound.
    """
    options = {"ignore_length": "1"} if ignore_length else {}
    frames_of_all = (frame for part in parts for frame in _frames(part, path, options))
    with closing(frames_of_all) as frames:
        first = next(frames, None)
        if first is None:
            raise without_samples(path)
        yield _blocks(chain([first], frames), first, path), first.sample_rate


def frames_follow(head: bytes) -> bool:
    """Whether bytes begin with frames of MP3 or AAC, one after the other: raw samples may look like one."""
    av = _library()
    try:
        with _opened(io.BytesIO(head), {}) as container:
            packets = [packet for packet in container.demux() if packet.size]
    except (av.FFmpegError, ValueError):
        return False
    ends = [packet.pos + packet.size for packet in packets[:-1]]
    starts = [packet.pos for packet in packets[1:]]
    return len(packets) > 1 and packets[0].pos < _FIRST_FRAME_BYTES and ends == starts


def _library() -> Any:
    return importlib.import_module("av")


def _opened(content: BinaryIO, options: Mapping[str, str]) -> Any:
    content.seek(0)
    allowed = {"format_whitelist": _FORMATS, **options}
    return _library().open(content, options=allowed, metadata_errors="replace")


def _frames(content: BinaryIO, path: str | Path, options: Mapping[str, str]) -> Iterator[Any]:
    """The decoded frames of one part; AudioError after the last one if there should be more."""
    reading = _Reading()
    try:
        with _opened(content, options) as container:
            track = _best_track(container, content, path, options)
            yield from _decoded(container, track.index, reading)
            promised = _promised_seconds(container, track, content, reading.first)
    except (_library().FFmpegError, ValueError, OSError) as error:
        raise not_audio(path, _reason(error)) from error
    if reading.failure and not reading.decoded:
        raise not_audio(path, reading.failure)
    if problem := reading.problem(promised, content.seek(0, io.SEEK_END)):
        counts = f"{problem}, {reading.decoded:.1f} s can be decoded"
        raise AudioError(f"the audio file is {counts}", where=path, hint=AGAIN_HINT)


@dataclass
class _Reading:
    """What the decoding of a part has come to.

    Attributes:
        decoded: seconds of sound.
        lost: seconds of sound whose packets are damaged.
        failure: why it ended before the end; empty if it did not.
        first: the first packet.
        last: the last packet of each stream, also of those with pictures.
        position: end of what was read, in bytes.
        skipped: whether the decoder has skipped bytes since the last packet of sound.
    """

    decoded: float = 0.0
    lost: float = 0.0
    failure: str = ""
    first: Any = None
    last: dict[int, Any] = field(default_factory=dict)
    position: int = 0
    skipped: bool = False

    def add(self, packet: Any, is_sound: bool) -> None:
        """Note the next packet; a gap in the times of the sound is damage where bytes were skipped."""
        self.skipped |= (packet.pos or 0) - self.position > TAG_BYTES
        self.position = max(self.position, (packet.pos or 0) + packet.size)
        before = self.last.get(packet.stream_index)
        self.first, self.last[packet.stream_index] = self.first or packet, packet
        if is_sound:
            end = before.pts + (before.duration or 0) if before else packet.pts
            self.lost += max(0.0, _seconds(packet.pts - end, packet.time_base)) if self.skipped else 0.0
            self.skipped = False

    def problem(self, promised: float, size: int) -> str:
        """What is missing of a part of ``size`` bytes whose header states ``promised`` seconds."""
        packets = self.last.values()
        # The picture of a video may be longer than its sound.
        ends = [_seconds(packet.pts + (packet.duration or 0), packet.time_base) for packet in packets]
        begin = _seconds(self.first.pts, self.first.time_base) if self.first else 0.0
        if max(self.decoded, *(end - begin for end in ends), 0.0) < promised - SLACK_SECONDS:
            return f"cut off: the header promises {promised:.1f} s"
        if self.lost > SLACK_SECONDS:
            return f"damaged: {self.lost:.1f} s can't be decoded"
        unread = size - self.position
        if self.failure and unread > TAG_BYTES:
            return f"damaged: {unread} bytes can't be read ({self.failure})"
        return ""


def _decoded(container: Any, index: int, reading: _Reading) -> Iterator[Any]:
    """The frames of the track with an index; notes in ``reading`` what it has come to."""
    failures = (_library().FFmpegError, ValueError, OSError)
    packets = container.demux()
    while True:
        try:
            packet = next(packets, None)
        except failures as error:
            reading.failure = _reason(error)
            return
        if packet is None:
            return
        if packet.pts is not None:
            reading.add(packet, packet.stream_index == index)
        if packet.stream_index == index:
            try:
                for frame in packet.decode():
                    reading.decoded += frame.samples / frame.sample_rate
                    yield frame
            except failures:
                reading.lost += _seconds(packet.duration, packet.time_base)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _best_track(container: Any, content: BinaryIO, path: str | Path, options: Mapping[str, str]) -> Any:
    """The sound track that a player chooses; the loudest one where that is silent. Others are named."""
    tracks = container.streams.audio
    if not tracks:
        raise AudioError("there is no audio in this file", where=path, hint="give a file with an audio track")
    if len(tracks) == 1:
        return tracks[0]
    position = content.tell()
    power, seconds = _measured_tracks(content, options)
    content.seek(position)
    chosen, loudest = container.streams.best("audio").index, max(power, key=power.__getitem__)
    if power[chosen] < _QUIETER * power[loudest]:
        chosen = loudest
    number = {track.index: position + 1 for position, track in enumerate(tracks)}
    others = [
        f"{seconds[index]:.1f} s of track {number[index]}"
        for index in number
        if index != chosen and power[index] > _SILENT
    ]
    if others:
        text = f"only sound track {number[chosen]} of {printable(path)} is read, not {', '.join(others)}"
        note(text, "extract others, e.g. the second with ffmpeg -i FILE -map 0:a:1 FILE.wav")
    return container.streams[chosen]


def _measured_tracks(
    content: BinaryIO, options: Mapping[str, str]
) -> tuple[dict[int, float], dict[int, float]]:
    """Mean square and length in seconds of each sound track, by its index."""
    av = _library()
    with _opened(content, options) as container:
        tracks = container.streams.audio
        energy, seconds = ({track.index: 0.0 for track in tracks} for _ in range(2))
        to_float = {track.index: av.AudioResampler("fltp", "mono") for track in tracks}
        for packet in container.demux(tracks):
            index = packet.stream.index
            with suppress(av.FFmpegError, ValueError):
                for frame in packet.decode():
                    seconds[index] += frame.samples / frame.sample_rate
                    for mono in to_float[index].resample(frame):
                        energy[index] += float(np.square(mono.to_ndarray()).sum()) / mono.sample_rate
    return {index: energy[index] / max(seconds[index], 1e-9) for index in energy}, seconds


def _blocks(frames: Iterable[Any], first: Any, path: str | Path) -> Iterator[np.ndarray]:
    """Blocks of (samples, channels) float32, in the layout and at the rate of the first frame."""

    def start(frame: Any) -> tuple[Any, tuple]:
        resampler = _library().AudioResampler(
            "flt", first.layout, first.sample_rate, frame_size=_BLOCK_SAMPLES
        )
        return resampler, _form(frame)

    resampler, form = start(first)
    error = None
    try:
        for frame in frames:
            if _form(frame) != form:
                yield from map(_samples, resampler.resample(None))
                resampler, form = start(frame)
            yield from map(_samples, resampler.resample(frame))
    except AudioError as caught:  # after the samples before it
        error = caught
    except (_library().FFmpegError, ValueError) as caught:  # such as 257 channels
        raise not_audio(path, _reason(caught)) from caught
    yield from map(_samples, resampler.resample(None))
    if error:
        raise error


def _form(frame: Any) -> tuple:
    return frame.format.name, frame.layout.name, frame.sample_rate


def _samples(frame: Any) -> np.ndarray:
    # Not planar: PyAV 18 counts nine planes where there are eight, and reads beyond the last.
    return frame.to_ndarray().reshape(-1, frame.layout.nb_channels)


def _promised_seconds(container: Any, track: Any, content: BinaryIO, first: Any) -> float:
    """The length that the header states; 0 if it states none. ``first``: the first packet."""
    name = container.format.name
    if name in _ESTIMATED or first is None:
        return 0.0
    if name == "avi":  # FFmpeg computes the length from the size of the file
        return _seconds(track.frames, track.time_base)
    if name == "mp3":  # its length is in the frame before the first one with sound
        length = min(first.pos, _FIRST_FRAME_BYTES)
        content.seek(first.pos - length)
        count = _FRAME_COUNT.search(content.read(length))
        return int.from_bytes(count[1], "big") * _seconds(first.duration, first.time_base) if count else 0.0
    return _seconds(track.duration, track.time_base) or (container.duration or 0) / 1e6


def _seconds(count: int | None, time_base: Fraction | None) -> float:
    return float(count * time_base) if count and time_base else 0.0
