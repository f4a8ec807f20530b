"""Recognises an uploaded file piece by piece, and converts pinyin, with workers shared fairly by requests.

It joins the reader of the upload (``uploads``), the queue (``fair_queue``) and the processes with the models
(``workers``).
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from model_language.pinyin_to_hanzi import ConvertedLine
from serving.errors import LIMIT, SERVER, RequestError
from serving.metrics import Metrics
from serving.settings import Settings
from serving.work.conversion_tasks import SPEED, conversion_tasks
from serving.work.fair_queue import FairQueue, Flow, Task
from serving.work.models import ConvertJob, Failure, RecogniseJob, Search
from serving.work.uploads import ReadLimits, SoundEnd, UploadReader
from serving.work.workers import Workers
from utils.hypotheses.recognition import Ending, Recognition

Result = TypeVar("Result")
_LONGEST_WAIT = 60  # seconds that a client is asked to wait


class Engine:
    """The workers, their queue and the readers of uploads.

    Args:
        settings: settings of the service.
        metrics: counters of the service.
    """

    def __init__(self, settings: Settings, metrics: Metrics):
        self._settings, self._metrics = settings, metrics
        self._queue = FairQueue()
        self.workers = Workers(settings, self._queue, metrics)
        self._active = 0
        # Each request needs one thread at a time: to start a reader, to wait for it, or to end it.
        self._threads = ThreadPoolExecutor(settings.requests, thread_name_prefix="upload")
        metrics.watch_queue(self._queue.waiting)

    def start(self) -> None:
        """Start the processes; requests may come at once, and wait for the models."""
        self.workers.start()

    def stop(self) -> None:
        """Wait for the tasks in the queue, and end the processes."""
        self._queue.close()
        self.workers.join()
        self._threads.shutdown()

    @property
    def ready(self) -> bool:
        """Whether a worker has loaded the models."""
        return bool(self.workers.pids)

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

    async def segments(self, path: Path, search: Search) -> AsyncIterator[Recognition | Ending]:
        """Recognise a file; close the iterator if it is not read to the end.

        Raises:
            RequestError: the file can't be decoded, or the words or phrases can't be used.
        """
        rate = await asyncio.shield(asyncio.wrap_future(self.workers.sample_rate))
        limits = ReadLimits(self._settings.upload_seconds)
        reader = await self._in_thread(lambda: UploadReader(path, rate, limits))
        flow = Flow()
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
                        yield segment
            if end.problem:
                raise RequestError(400, end.problem, hint=end.hint, param="file", code="invalid_audio")
            self._metrics.audio_seconds.observe(end.seconds)
            yield Ending(end.seconds)
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
