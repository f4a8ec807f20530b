"""Decodes Opus in WebM or Ogg, as browsers record it, while it arrives: 16-bit samples for a live stream.

FFmpeg decodes, in a process for each stream with limits of memory and time: sound
that crashes a decoder ends its own stream only.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

from serving.live import opus_decoding
from serving.live.opus_decoding import SAMPLE_RATE
from serving.live.workers import ClientStream
from serving.work import uploads
from serving.work.child import Child, ChildDied

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
        limits = uploads.ReadLimits(longest, processor_seconds=_PROCESSOR_SECONDS)
        self._child = Child(opus_decoding.decode, limits, method="forkserver")
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


def prepare_decoders() -> None:
    """Decoders of uploads and streams are forked within milliseconds from a process that has loaded both."""
    modules = [module.__name__ for module in (uploads, opus_decoding)]
    get_context("forkserver").set_forkserver_preload([*modules, "av"])
