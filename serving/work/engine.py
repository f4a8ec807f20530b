"""Recognises uploaded files piece by piece, and converts pinyin, in processes that hold the models.

It joins the reader of an upload (``uploads``), the queue (``fair_queue``), by which requests share the
processes, and the processes themselves. A thread feeds each of them and waits for it. When one dies, a new
one takes its place; the tasks that it had are tried once more, by whichever is free first, and then refused.
The others notice nothing.
"""

import asyncio
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from model_language.pinyin_to_hanzi import ConvertedLine
from model_language.punctuation import Punctuator, load_punctuation
from recognition.channels import channel_names, interleaved
from recognition.options import MIX, SEPARATE
from serving.errors import LIMIT, SERVER, RequestError
from serving.metrics import Metrics
from serving.settings import Settings
from serving.work.child import Child, ChildDied, ChildTimeout
from serving.work.conversion_tasks import SPEED, conversion_tasks
from serving.work.fair_queue import FairQueue, Flow, Task
from serving.work.models import ConvertJob, Failure, RecogniseJob, Search
from serving.work.shared import models_of
from serving.work.uploads import ReadLimits, SoundEnd, UploadReader
from utils.errors import UserError
from utils.hypotheses.recognition import Ending, Recognition

LOG = logging.getLogger("serving")
Result = TypeVar("Result")
_LONGEST_WAIT = 60  # seconds that a client is asked to wait
_ATTEMPTS = 2  # of a task, after whose process has died
_NICENESS = 3  # below the live streams, which can't wait
_LOAD_SECONDS = 600.0  # at most, to load the models
_PAUSE_SECONDS = 1.0  # before a process that died while it loaded is replaced
# Longest time of a batch: this, and _SLOWEST seconds more for each second of its audio.
_BATCH_SECONDS = 120.0
_SLOWEST = 10.0
_INTERNAL = Failure("the recognition failed", "try again; the log of the service says why", internal=True)
_DIED = Failure("the recognition of this request ended a process twice", "send other audio", internal=True)


@dataclass(frozen=True)
class Channels:
    """What becomes of several channels of an upload.

    Attributes:
        kind: one of :data:`recognition.options.CHANNELS`.
        names: of the channels, where they are separate.
    """

    kind: str = MIX
    names: tuple[str, ...] = ()


MIXED = Channels()


class Engine:
    """The processes with the models, their queue and the readers of uploads.

    Args:
        settings: settings of the service.
        metrics: counters of the service.

    Attributes:
        sample_rate: future of Hz, of the models; a UserError if they can't be loaded.
    """

    def __init__(self, settings: Settings, metrics: Metrics):
        self._settings, self._metrics, self._punctuation = settings, metrics, load_punctuation()
        self._queue = FairQueue()
        self._active = 0
        # Each request needs one thread at a time: to start a reader, to wait for it, or to end it.
        self._threads = ThreadPoolExecutor(settings.requests, thread_name_prefix="upload")
        self.sample_rate: Future[int] = Future()
        self._lock = threading.Lock()
        self._ready: set[int] = set()  # numbers of the processes that have loaded the models
        self._feeders = [
            threading.Thread(target=self._feed, args=(number,), name=f"worker-{number}", daemon=True)
            for number in range(settings.workers)
        ]
        metrics.watch_queue(self._queue.waiting)
        metrics.watch_workers(lambda: len(self._ready))

    def start(self) -> None:
        """Start the processes; requests may come at once, and wait for the models."""
        for feeder in self._feeders:
            feeder.start()

    def stop(self) -> None:
        """Wait for the tasks in the queue, and end the processes."""
        self._queue.close()
        for feeder in self._feeders:
            feeder.join()
        self._threads.shutdown()

    @property
    def ready(self) -> bool:
        """Whether a process has loaded the models."""
        return bool(self._ready)

    def check_places(self) -> None:
        """Check that one more request can be processed now.

        Raises:
            RequestError: there are too many (429).
        """
        if self._active >= self._settings.requests:
            self._metrics.refused.labels("queue").inc()
            seconds = self._queue.waiting() / (SPEED * self._settings.workers)
            raise RequestError(
                429,
                f"{self._active} requests are being processed, which is the limit",
                hint="try again after the seconds in Retry-After",
                kind=LIMIT,
                code="overloaded",
                headers={"Retry-After": str(min(_LONGEST_WAIT, 1 + math.ceil(seconds)))},
            )

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Inside, a request is one of those that are processed.

        Raises:
            RequestError: there are too many (429).
        """
        self.check_places()
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1

    async def segments(
        self, path: Path, search: Search, channels: Channels = MIXED
    ) -> AsyncGenerator[Recognition | Ending, None]:
        """Recognise a file; close the iterator if it is not read to the end.

        Args:
            path: the file.
            search: what is to be recognised.
            channels: what becomes of several channels.

        Raises:
            RequestError: the file can't be decoded, or the words or phrases can't be used.
            ConfigError: there are not as many names as channels.
        """
        found: list[list[Recognition | Ending]] = []  # of each channel that is recognised by itself
        count = 1
        while len(found) < count:
            number = None if channels.kind == MIX else len(found)
            events: list[Recognition | Ending] = []
            async with aclosing(self._recognised(path, search, number)) as parts:
                async for part in parts:
                    if isinstance(part, SoundEnd):
                        count = part.channels if channels.kind == SEPARATE else 1
                        part = Ending(part.seconds)
                    if number is None:
                        yield part
                    events.append(part)
            found.append(events)
        if channels.kind != MIX:
            for event in interleaved(found, channel_names(count, channels.names)):
                yield event

    async def _recognised(
        self, path: Path, search: Search, channel: int | None
    ) -> AsyncGenerator[Recognition | SoundEnd, None]:
        rate = await asyncio.shield(asyncio.wrap_future(self.sample_rate))
        limits = ReadLimits(self._settings.upload_seconds)
        reader = await self._in_thread(lambda: UploadReader(path, rate, limits, channel))
        flow, punctuator = Flow(), Punctuator(self._punctuation)
        pending: deque[asyncio.Future] = deque()  # results, in the order of the pieces
        reading: asyncio.Future | None = None
        end: SoundEnd | None = None
        try:
            while end is None or pending:
                # A few pieces ahead, so that all workers are busy with a single file, and no more.
                if end is None and reading is None and len(pending) <= self._settings.workers:
                    reading = asyncio.ensure_future(self._in_thread(reader.next))
                await asyncio.wait(
                    [*([reading] if reading else []), *([pending[0]] if pending else [])],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if reading and reading.done():
                    part, reading = reading.result(), None
                    if isinstance(part, SoundEnd):
                        end = part
                    else:
                        task = Task(RecogniseJob(part, search), len(part.samples) / rate)
                        self._queue.put(task, flow)
                        pending.append(asyncio.wrap_future(task.result))
                while pending and pending[0].done():
                    for segment in _checked(pending.popleft().result()):
                        yield await asyncio.to_thread(punctuator, segment)
            if end.problem:
                raise RequestError(400, end.problem, hint=end.hint, param="file", code="invalid_audio")
            self._metrics.audio_seconds.observe(end.seconds)
            yield end
        finally:
            for result in pending:
                result.cancel()
            await self._in_thread(reader.stop)
            if reading:
                with suppress(asyncio.CancelledError):
                    await reading
            await self._in_thread(reader.close)

    async def convert(self, job: ConvertJob) -> list[ConvertedLine]:
        """Convert lines of pinyin, as several tasks, so that short requests overtake a long text.

        Raises:
            RequestError: a line has too many syllables, with ``strict`` a word is not pinyin, or a user word
                can't be used.
        """
        flow = Flow()
        pending: list[asyncio.Future] = []
        try:
            for task in await asyncio.to_thread(conversion_tasks, job):
                self._queue.put(task, flow)
                pending.append(asyncio.wrap_future(task.result))
            return [line for result in pending for line in _checked(await result)]
        finally:
            for result in pending:
                result.cancel()

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _feed(self, number: int) -> None:
        child = None
        while child := child or self._loaded(number):
            tasks = self._queue.take(self._settings.batch_seconds)
            if tasks is None:
                break
            if not self._compute(child, tasks):
                self._ready.discard(number)
                self._metrics.worker_deaths.inc()
                child.kill()
                child = None
        self._ready.discard(number)
        if child:
            child.close()

    def _loaded(self, number: int) -> Child | None:
        """A process that has loaded the models; None: none can load them, or the service ends."""
        while not self._queue.closed:
            child = Child(_work, self._settings.speech, self._settings.language, method="forkserver")
            try:
                response = child.receive(_LOAD_SECONDS)
            except (ChildDied, ChildTimeout) as error:
                child.kill()
                self._metrics.worker_deaths.inc()
                LOG.error("a worker ended while it loaded the models", extra={"reason": str(error)})
                time.sleep(_PAUSE_SECONDS)
                continue
            if isinstance(response, Failure):
                child.close()
                LOG.critical("the models can't be loaded", extra=asdict(response))
                self._set_rate(UserError(response.problem, where=response.where, hint=response.hint))
                return None
            self._set_rate(response)
            self._ready.add(number)
            LOG.info("a worker is ready", extra={"worker": number, "pid": child.pid})
            return child
        return None

    def _set_rate(self, rate: int | UserError) -> None:
        """The first process to load the models says which sample rate they have, or why there are none."""
        with self._lock:
            if self.sample_rate.done():
                return
            if isinstance(rate, UserError):
                self.sample_rate.set_exception(rate)
            else:
                self.sample_rate.set_result(rate)

    def _compute(self, child: Child, tasks: Sequence[Task]) -> bool:
        """Compute a batch and hand out the results; False: the process has died."""
        seconds = sum(task.seconds for task in tasks)
        started = time.monotonic()
        try:
            child.send([task.job for task in tasks])
            results = child.receive(_BATCH_SECONDS + _SLOWEST * seconds)
        except (ChildDied, ChildTimeout) as error:
            LOG.error("a worker died", extra={"pid": child.pid, "reason": str(error) or "it took too long"})
            for task in tasks:
                task.attempts += 1
            self._queue.put_back([task for task in tasks if task.attempts < _ATTEMPTS])
            for task in tasks:
                if task.attempts >= _ATTEMPTS:
                    task.result.set_result(_DIED)
            return False
        sound = sum(task.seconds for task in tasks if isinstance(task.job, RecogniseJob))
        self._metrics.batch(len(tasks), sound, time.monotonic() - started)
        for task, result in zip(tasks, results, strict=True):
            task.result.set_result(result)
        return True


def _work(pipe: Connection, speech: Path, language: Path) -> None:
    """The process: loads the models, then answers lists of jobs."""
    try:
        os.nice(_NICENESS)
        models = models_of(speech, language)
        rate = models.sample_rate
    except UserError as error:
        pipe.send(Failure.of(error))
        return
    pipe.send(rate)
    while True:
        jobs = pipe.recv()
        try:
            results = models.compute(jobs)
        except Exception:
            LOG.exception("a batch can't be computed")
            results = [_INTERNAL] * len(jobs)
        pipe.send(results)


def _checked(result: Any) -> Any:
    """The result of a worker.

    Raises:
        RequestError: it is a failure.
    """
    if isinstance(result, Failure):
        if result.internal:
            raise RequestError(500, result.problem, hint=result.hint, kind=SERVER, code="worker_failed")
        raise RequestError(400, result.message, hint=result.hint, code="invalid_search")
    return result
