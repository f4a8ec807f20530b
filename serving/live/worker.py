"""The process that recognises several live streams: receives their sound, sends back their messages.

The streams take turns, a tenth of a second of audio each, so that one that is sent faster than it is spoken
delays no other. A stream with much audio waiting has fewer partial results.
"""

import logging
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import soxr

from serving.live.messages import Message, final_message, partial_message
from serving.work.models import Failure, Models, Search
from serving.work.shared import models_of
from utils.audio.reading import INT16_SCALE
from utils.errors import UserError
from utils.hypotheses.recognition import Recognition

LOG = logging.getLogger("serving")
SLICE_SECONDS = 0.1  # sound of one turn of a stream
BEHIND_SECONDS = 0.6  # if more audio than this waits, partial results become rarer
ALIVE_SECONDS = 5.0  # a worker that has nothing to do reports this often that it is alive
_INTERNAL = Failure("the stream can't be recognised", "the log of the service says why", internal=True)


@dataclass(frozen=True)
class Ready:
    """The models are loaded: their sample rate in Hz, and the latency of a live stream in seconds."""

    sample_rate: int
    look_ahead_seconds: float


@dataclass(frozen=True)
class Open:
    """Begin a stream.

    Attributes:
        rate: of its samples, in Hz.
        search: what is to be recognised.
        second_pass: see :meth:`serving.work.models.Models.live_stream`.
    """

    rate: int
    search: Search
    second_pass: bool = True


class End:
    """No more sound: the rest of a stream is to be recognised."""


class Drop:
    """Nobody wants the results of a stream any more."""


@dataclass(frozen=True)
class Output:
    """What a stream gives after a piece of audio.

    Attributes:
        messages: messages for the client.
        taken: bytes of sound that were processed.
        seconds: length of the stream, when it has ended.
        failure: why it can't go on.
    """

    messages: list[Message] = field(default_factory=list)
    taken: int = 0
    seconds: float | None = None
    failure: Failure | None = None


def follow_streams(pipe: Connection, speech: Path, language: Path) -> None:
    """Answer ``(number of a stream, Open | bytes | End | Drop)`` with ``(number, Output)``.

    Sends :class:`Ready` first, or a failure if the models can't be loaded. Bytes are 16-bit samples. An
    unexpected error ends the stream in which it happened, not the others. None, every :data:`ALIVE_SECONDS`
    or more often, says that the process is alive.
    """
    try:
        models = models_of(speech, language)
        ready = Ready(models.sample_rate, models.load_networks())
    except UserError as error:
        pipe.send(Failure.of(error))
        return
    streams: dict[int, _Stream] = {}
    pipe.send(ready)
    while True:
        received = False
        while pipe.poll(0 if received or _waiting(streams) else ALIVE_SECONDS):
            received = True
            number, message = pipe.recv()
            if isinstance(message, Open):
                try:
                    streams[number] = _Stream(models, message)
                except Exception as error:
                    pipe.send((number, Output(failure=_failure(error))))
                pipe.send(None)  # many phrases take seconds
            elif isinstance(message, Drop):
                streams.pop(number, None)
            elif number in streams:
                streams[number].take(message)
        if not _waiting(streams):
            pipe.send(None)
        for number in _waiting(streams):
            try:
                output = streams[number].advance()
            except Exception as error:
                output = Output(failure=_failure(error))
            pipe.send((number, output))
            if output.seconds is not None or output.failure:
                del streams[number]


def _failure(error: Exception) -> Failure:
    if isinstance(error, UserError):
        return Failure.of(error)
    LOG.error("a stream can't be recognised", exc_info=error)
    return _INTERNAL


def _waiting(streams: Mapping[int, "_Stream"]) -> list[int]:
    """The numbers of the streams that have something to do."""
    return [number for number, stream in streams.items() if stream.waiting]


class _Stream:
    """A stream: its sound that waits, and the state of its recognition."""

    def __init__(self, models: Models, settings: Open):
        self._live = models.live_stream(settings.search, settings.second_pass)
        self._rate = settings.rate
        self._resampler = None
        if settings.rate != models.sample_rate:
            self._resampler = soxr.ResampleStream(settings.rate, models.sample_rate, 1, dtype="float32")
        self._slice = 2 * max(1, round(SLICE_SECONDS * settings.rate))  # bytes
        self._sound: deque[bytes] = deque()  # no longer than a slice each
        self._bytes = self._taken = self._utterance = 0
        self._ended = False

    @property
    def waiting(self) -> bool:
        """Whether there is something to do."""
        return bool(self._sound) or self._ended

    def take(self, message: bytes | End) -> None:
        """Add sound, a whole number of samples, or the end."""
        if isinstance(message, End):
            self._ended = True
            return
        self._sound.extend(
            message[start : start + self._slice] for start in range(0, len(message), self._slice)
        )
        self._bytes += len(message)

    def advance(self) -> Output:
        """Process a slice, or the end."""
        if not self._sound:
            events = self._live.feed(self._at_rate(np.zeros(0, np.float32), last=True)) + self._live.flush()
            return Output(list(self._messages(events)), seconds=self._taken / (2 * self._rate))
        data = self._sound.popleft()
        self._bytes -= len(data)
        self._taken += len(data)
        samples = np.frombuffer(data, "<i2").astype(np.float32) / np.float32(INT16_SCALE)
        behind = self._bytes > BEHIND_SECONDS * 2 * self._rate
        events = self._live.feed(self._at_rate(samples), behind)
        return Output(list(self._messages(events)), len(data))

    def _at_rate(self, samples: np.ndarray, last: bool = False) -> np.ndarray:
        return self._resampler.resample_chunk(samples, last=last) if self._resampler else samples

    def _messages(self, events: list[Recognition]) -> Iterator[Message]:
        for event in events:
            if event.is_final:
                yield final_message(self._utterance, event)
                self._utterance += 1
            else:
                yield partial_message(self._utterance, event)
