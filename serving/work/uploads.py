"""Decodes an uploaded file into pieces cut at pauses, in a process with limits of memory and time.

Decoders of audio formats are large programs in C. A file that crashes one, fills the memory or never ends
harms nothing but its own request: each upload has a process, forked within milliseconds from one that has
loaded the decoders, and it ends with the request.
"""

import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from recognition.voice_activity import speech_stretches
from serving.work.child import Child, ChildDied, ChildTimeout
from utils.audio.properties import channel_count
from utils.audio.reading import audio_blocks
from utils.errors import AudioError

_CONVERT = "convert it, e.g. ffmpeg -i FILE -ac 1 -ar 16000 FILE.wav"


@dataclass(frozen=True)
class ReadLimits:
    """What the decoding of a file may take.

    Attributes:
        audio_seconds: longest recording.
        memory_megabytes: memory of the process beyond what it has at its start.
        processor_seconds: processor time of the process.
        silent_seconds: time that the process may take until its next piece.
    """

    audio_seconds: float
    memory_megabytes: float = 512.0
    processor_seconds: int = 120
    silent_seconds: float = 180.0


@dataclass(frozen=True)
class SoundPiece:
    """A stretch of a recording: its start in seconds, and its (samples,) float32 at the model's rate."""

    start: float
    samples: np.ndarray


@dataclass(frozen=True)
class SoundEnd:
    """The end of a recording of so many seconds, or what is wrong with it and what to do.

    Attributes:
        channels: of the file, where one channel was asked for.
    """

    seconds: float
    problem: str = ""
    hint: str | None = None
    channels: int = 1


class UploadReader:
    """The pieces of an uploaded file; the process may be ahead by what fits into a pipe.

    Args:
        path: the file; its format is determined by its content.
        rate: Hz, of the pieces.
        limits: limits of the decoding.
        channel: the only channel to read, from 0; None: all are mixed.
    """

    def __init__(self, path: Path, rate: int, limits: ReadLimits, channel: int | None = None):
        self._limits, self._ended = limits, False
        self._child = Child(_read, str(path), rate, limits, channel, method="forkserver")

    def next(self) -> SoundPiece | SoundEnd:
        """Wait for the next piece, or for the end; not to be called again after the end."""
        try:
            part = self._child.receive(self._limits.silent_seconds)
            self._ended = isinstance(part, SoundEnd)
            return part
        except ChildDied:
            return SoundEnd(
                0.0, "decoding the file takes too much time or memory, or it is damaged", _CONVERT
            )
        except ChildTimeout:
            return SoundEnd(0.0, "decoding the file takes too long", _CONVERT)

    def stop(self) -> None:
        """End the process if it has more to say; a thread that waits in :meth:`next` returns."""
        if not self._ended:
            self._child.kill()

    def close(self) -> None:
        """Wait for the process, and free what is left of it."""
        self._child.close()


def _read(pipe: Connection, path: str, rate: int, limits: ReadLimits, channel: int | None = None) -> None:
    limit_process(limits)
    length = 0

    def counted() -> Iterator[np.ndarray]:
        nonlocal length
        for block in audio_blocks(path, rate, channel):
            length += len(block)
            if length > limits.audio_seconds * rate:
                raise AudioError(
                    f"the recording is longer than {limits.audio_seconds:g} s", hint="cut it into parts"
                )
            yield block

    try:
        for stretch in speech_stretches(counted(), rate):
            pipe.send(SoundPiece(stretch.start / rate, stretch.samples))
        end = SoundEnd(length / rate, channels=1 if channel is None else channel_count(path))
    except AudioError as error:
        end = SoundEnd(length / rate, error.message, error.hint)
    except MemoryError:
        end = SoundEnd(length / rate, "decoding the file takes too much memory", _CONVERT)
    pipe.send(end)


def limit_process(limits: ReadLimits) -> None:
    """Limit what this process may take from now on."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    now = pages * resource.getpagesize()
    # Where the system gives no such limit, the others hold.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (now + int(limits.memory_megabytes * 1e6),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (limits.processor_seconds,) * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
