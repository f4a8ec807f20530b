"""The process that decodes one live stream: receives WebM or Ogg through a pipe, sends 16-bit samples back.

FFmpeg decodes, through the package ``av``. The module imports little, because it is forked for each stream.
"""

import importlib
from multiprocessing.connection import Connection
from typing import Any

from serving.work.uploads import ReadLimits, limit_process

SAMPLE_RATE = 16_000  # Hz, of the result
_FORMATS = {b"\x1a\x45\xdf\xa3": "matroska", b"OggS": "ogg"}
_BUFFER_BYTES = 4096  # that FFmpeg reads at once
_PROBED_BYTES = 2048  # the header; more is not waited for


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


def decode(pipe: Connection, limits: ReadLimits) -> None:
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
