"""Decodes Opus in WebM or Ogg, as browsers record it, while it arrives: 16-bit samples for a live stream.

FFmpeg decodes, through the package ``av``, in a process for each stream with limits of memory and time: sound
that crashes a decoder ends its own stream only. The process is forked from one that has loaded this module,
which therefore imports little.
"""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from serving.work.child import Child, ChildDied
from serving.work.uploads import ReadLimits, limit_process

if TYPE_CHECKING:
    from serving.live.workers import ClientStream

SAMPLE_RATE = 16_000  # Hz, of the result
_FORMATS = {b"\x1a\x45\xdf\xa3": "matroska", b"OggS": "ogg"}
_BUFFER_BYTES = 4096  # that FFmpeg reads at once
_PROBED_BYTES = 2048  # the header; more is not waited for
_PROCESSOR_SECONDS = 1200  # processor time of a decoder; enough for more than a day of sound


class OpusDecoder:
    """Decodes the sound of one stream.

    Args:
        stream: takes the samples; it is ended after the last one.
        threads: threads for waiting: two for each decoder.
        longest: seconds of audio that are decoded.

    Attributes:
        problem: what is wrong with the sound, when the stream has ended.
        too_long: whether the stream was ended because it was longer than ``longest``.
    """

    def __init__(self, stream: ClientStream, threads: ThreadPoolExecutor, longest: float):
        self._stream, self._threads, self._left = stream, threads, 2 * SAMPLE_RATE * longest
        limits = ReadLimits(longest, processor_seconds=_PROCESSOR_SECONDS)
        self._child = Child(_decode, limits, method="forkserver")
        self._loop = asyncio.get_running_loop()
        self.problem: str | None = None
        self.too_long = False
        self._loop.run_in_executor(threads, self._receive)

    async def feed(self, data: bytes | None) -> None:
        """Send the next bytes to the decoder, None after the last one; waits while it is behind."""
        with suppress(ChildDied):
            await self._loop.run_in_executor(self._threads, self._child.send, data)

    async def close(self) -> None:
        """End the process."""
        await self._loop.run_in_executor(None, self._child.kill)

    def _receive(self) -> None:
        """In a thread: samples to the stream, as fast as it takes them."""
        try:
            while isinstance(part := self._child.receive(), bytes) and self._left > 0:
                self._left -= len(part)
                asyncio.run_coroutine_threadsafe(self._stream.feed(part), self._loop).result()
            self.too_long = self._left <= 0
            self.problem = None if self.too_long else part
        except ChildDied:
            self.problem = "decoding takes too much time or memory, or the sound is damaged"
        self._loop.call_soon_threadsafe(self._stream.end)


class _PipeReader:
    """The bytes of a pipe as a file that can only be read."""

    def __init__(self, pipe: Connection):
        self._pipe, self._rest, self._ended = pipe, b"", False

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes; waits for the first one. ``b""`` at the end."""
        while not self._rest and not self._ended:
            data = self._pipe.recv()
            self._ended, self._rest = data is None, data or b""
        part, self._rest = self._rest[:size], self._rest[size:]
        return part

    def peek(self, size: int) -> bytes:
        """The first ``size`` bytes, which are read again."""
        while len(self._rest) < size and not self._ended:
            data = self._pipe.recv()
            self._ended, self._rest = data is None, self._rest + (data or b"")
        return self._rest[:size]


def _decode(pipe: Connection, limits: ReadLimits) -> None:
    """The process: bytes in, samples out; last it sends None, or what is wrong with the sound."""
    av: Any = importlib.import_module("av")

    limit_process(limits)
    source = _PipeReader(pipe)
    form = _FORMATS.get(source.peek(4))  # FFmpeg may not choose: some of its formats open other files
    problem: str | None = None if form else "the sound is not WebM or Ogg"
    try:
        if form:
            _send_samples(av, source, form, pipe)
    except (av.error.FFmpegError, ValueError, IndexError):
        problem = "the sound is damaged"
    pipe.send(problem)


def _send_samples(av: Any, source: _PipeReader, form: str, pipe: Connection) -> None:
    options = {"probesize": str(_PROBED_BYTES), "analyzeduration": "0", "fflags": "nobuffer"}
    with av.open(source, format=form, buffer_size=_BUFFER_BYTES, options=options) as container:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
        for frame in container.decode(container.streams.audio[0]):
            for part in resampler.resample(frame):
                pipe.send(part.to_ndarray().tobytes())
        for part in resampler.resample(None):
            pipe.send(part.to_ndarray().tobytes())
