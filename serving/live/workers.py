"""Runs the processes that recognise live streams, and connects each stream to one of them.

Each process follows some of the streams. If it dies, its streams end with an error, a new process takes its
place, and the streams of the others notice nothing.
"""

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from dataclasses import asdict
from queue import SimpleQueue
from typing import Any

from serving.errors import LIMIT, SERVER, RequestError
from serving.live.messages import Message
from serving.live.worker import Drop, End, Open, Output, Ready, follow_streams
from serving.metrics import Metrics
from serving.settings import Settings
from serving.work.child import Child, ChildDied, ChildTimeout
from serving.work.models import Failure

LOG = logging.getLogger("serving")
AHEAD_SECONDS = 2.0  # sound of a stream that may wait for its process; more of it is not received
_LOAD_SECONDS = 600.0  # at most, to load the models
_WAIT_SECONDS = 60.0  # of a new stream, for models that are being loaded
# A process that sends nothing for so long is replaced: it hangs. 100,000 phrases take a minute or more.
_SILENT_SECONDS = 300.0
_PAUSE_SECONDS = 1.0  # before a process that died while it loaded is replaced
_CLOSED = Failure("the stream is closed", internal=True)
_DIED = Failure("the process that followed this stream has died", "connect again", internal=True)


class LiveWorkers:
    """The processes; to be used in the event loop in which it was started.

    Args:
        settings: run folders, the number of processes and of streams.
        metrics: counts what happens.
    """

    def __init__(self, settings: Settings, metrics: Metrics):
        self._settings, self._metrics = settings, metrics
        self._workers: list[_Worker] = []
        self._numbers = itertools.count()
        metrics.watch_streams(lambda: sum(worker.count for worker in self._workers))

    def start(self) -> None:
        """Start the processes; they load their models while this returns."""
        loop = asyncio.get_running_loop()
        self._workers = [
            _Worker(self._settings, self._metrics, loop) for _ in range(self._settings.live_workers)
        ]

    def stop(self) -> None:
        """End the processes; may be called in another thread."""
        for worker in self._workers:
            worker.stop()

    @property
    def pids(self) -> list[int]:
        """The process ids of those that have loaded their models."""
        return [worker.pid for worker in self._workers if worker.pid]

    async def open(self, settings: Open) -> "ClientStream":
        """Begin a stream in the process that has the fewest.

        Raises:
            RequestError: there are too many streams (429), or the models take long to load (503).
        """
        self._check_places()
        late = time.monotonic() + _WAIT_SECONDS
        while not (ready := [worker for worker in self._workers if worker.ready]):
            if time.monotonic() > late:
                problem, hint = "the models are being loaded", "try again in some seconds"
                raise RequestError(503, problem, hint=hint, kind=SERVER, code="loading")
            await asyncio.sleep(0.1)
        self._check_places()  # others may have waited too
        worker = min(ready, key=lambda each: each.count)
        return ClientStream(worker, next(self._numbers), settings)

    def _check_places(self) -> None:
        if sum(worker.count for worker in self._workers) >= self._settings.streams:
            self._metrics.refused.labels("streams").inc()
            problem = f"{self._settings.streams} live streams are open, which is the limit"
            raise RequestError(429, problem, hint="try again later", kind=LIMIT, code="streams")


class ClientStream:
    """A stream of one client.

    Args:
        worker: the process that follows it.
        number: number of the stream.
        settings: sample rate and search of the stream.

    Attributes:
        sample_rate: Hz, of the model.
        look_ahead_seconds: latency of the model.
    """

    def __init__(self, worker: "_Worker", number: int, settings: Open):
        self.sample_rate, self.look_ahead_seconds = worker.ready.sample_rate, worker.ready.look_ahead_seconds
        self._worker, self._number = worker, number
        self._ahead, self._limit = 0, int(AHEAD_SECONDS * 2 * settings.rate)  # bytes
        self._free = asyncio.Event()
        self._free.set()
        self._outbox: deque[Message] = deque()
        self._end: float | Failure | None = None
        self._news = asyncio.Event()
        worker.streams[number] = self
        worker.send(number, settings)

    async def feed(self, sound: bytes) -> None:
        """Send samples to the process; waits while it is behind, and returns when the stream has failed."""
        for start in range(0, len(sound), self._limit):
            await self._free.wait()
            part = sound[start : start + self._limit]
            self._ahead += len(part)
            if self._ahead >= self._limit and self._end is None:
                self._free.clear()
            self._worker.send(self._number, part)

    def end(self) -> None:
        """No more sound; the last messages follow."""
        self._worker.send(self._number, End())

    def close(self) -> None:
        """Forget the stream, whether it has ended or not; who waits to feed it does so no longer."""
        if self._worker.streams.pop(self._number, None):
            self._worker.send(self._number, Drop())
        self._end = self._end if self._end is not None else _CLOSED
        self._free.set()

    async def receive(self) -> Message | float | Failure:
        """The next message; the seconds of the stream when it has ended; or why it has failed."""
        while not self._outbox:
            if self._end is not None:
                return self._end
            self._news.clear()
            await self._news.wait()
        return self._outbox.popleft()

    def deliver(self, output: Output) -> None:
        """Take what the process sends. Of unread partial results only the last one counts."""
        self._ahead -= output.taken
        for message in output.messages:
            if self._outbox and self._outbox[-1]["type"] == "partial":
                self._outbox.pop()  # replaced by the partial result or the final that follows
            self._outbox.append(message)
        if output.failure or output.seconds is not None:
            self._end = output.failure or output.seconds
        if self._ahead < self._limit or self._end is not None:
            self._free.set()
        self._news.set()


class _Worker:
    """A process, the thread that waits for it, and the thread that sends to it."""

    def __init__(self, settings: Settings, metrics: Metrics, loop: asyncio.AbstractEventLoop):
        self._settings, self._metrics, self._loop = settings, metrics, loop
        self.streams: dict[int, ClientStream] = {}
        self.ready: Any = None  # Ready, while there is a process with models
        self._child: Child | None = None
        self._stopped = False
        self._messages: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=target, name="live", daemon=True)
            for target in (self._receive, self._send)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def count(self) -> int:
        """The number of streams."""
        return len(self.streams)

    @property
    def pid(self) -> int | None:
        """The process id, if the models are loaded."""
        return self._child.pid if self.ready and self._child else None

    def send(self, number: int, message: Any) -> None:
        """Send a message to the process; does not wait."""
        self._messages.put((number, message))

    def stop(self) -> None:
        """End the process."""
        self._stopped = True
        self._messages.put(None)
        if self._child:
            self._child.kill()
        for thread in self._threads:
            thread.join()

    def _receive(self) -> None:
        while not self._stopped:
            runs = self._settings.speech, self._settings.language
            self._child = child = Child(follow_streams, *runs, method="forkserver")
            if self._stopped:  # while the process was started, which takes seconds the first time
                child.kill()
                return
            try:
                ready = child.receive(_LOAD_SECONDS)
                if not isinstance(ready, Ready):
                    LOG.critical("the models can't be loaded", extra=asdict(ready))
                    return
                self._loop.call_soon_threadsafe(self._begin, ready)
                LOG.info("a worker of live streams is ready", extra={"pid": child.pid})
                while True:
                    if news := child.receive(_SILENT_SECONDS):
                        self._loop.call_soon_threadsafe(self._deliver, *news)
            except (ChildDied, ChildTimeout) as error:
                child.kill()
                if self._stopped:
                    return
                self._metrics.worker_deaths.inc()
                reason = str(error) or "it sent nothing for too long"
                LOG.error("a worker of live streams died", extra={"pid": child.pid, "reason": reason})
                if self.ready is None:
                    time.sleep(_PAUSE_SECONDS)
                self._loop.call_soon_threadsafe(self._fail)

    def _send(self) -> None:
        while (message := self._messages.get()) is not None:
            assert self._child  # no stream begins before it is ready
            try:
                self._child.send(message)
            except ChildDied:
                continue  # the other thread notices, and ends the streams

    def _begin(self, ready: Ready) -> None:
        self.ready = ready

    def _deliver(self, number: int, output: Output) -> None:
        if stream := self.streams.get(number):
            stream.deliver(output)

    def _fail(self) -> None:
        self.ready = None
        for stream in self.streams.values():
            stream.deliver(Output(failure=_DIED))
        self.streams.clear()
