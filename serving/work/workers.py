"""Runs the processes that hold the models, and has them compute the tasks of the queue.

A thread feeds each process and waits for it. When a process dies, a new one takes its place; the tasks that
it had are tried once more, by whichever process is free first, and then refused. The other processes notice
nothing.
"""

import logging
import os
import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection
from pathlib import Path

from serving.metrics import Metrics
from serving.settings import Settings
from serving.work.child import Child, ChildDied, ChildTimeout
from serving.work.fair_queue import FairQueue, Task
from serving.work.models import Failure, Models, RecogniseJob
from utils.errors import UserError

LOG = logging.getLogger("serving")
_ATTEMPTS = 2  # of a task, after whose process has died
_NICENESS = 3  # below the live streams, which can't wait
_LOAD_SECONDS = 600.0  # at most, to load the models
_PAUSE_SECONDS = 1.0  # before a process that died while it loaded is replaced
# Longest time of a batch: this, and _SLOWEST seconds more for each second of its audio.
_BATCH_SECONDS = 120.0
_SLOWEST = 10.0
_INTERNAL = Failure("the recognition failed", "try again; the log of the service says why", internal=True)
_DIED = Failure("the recognition of this request ended a process twice", "send other audio", internal=True)


class Workers:
    """The processes with the models.

    Args:
        settings: run folders and the number of processes.
        queue: their tasks; they end when it is closed and empty.
        metrics: counts what happens.
    """

    def __init__(self, settings: Settings, queue: FairQueue, metrics: Metrics):
        self._settings, self._queue, self._metrics = settings, queue, metrics
        self.sample_rate: Future[int] = Future()
        self._lock = threading.Lock()
        self._alive: dict[int, int] = {}  # number → process id
        self._threads = [
            threading.Thread(target=self._feed, args=(number,), name=f"worker-{number}", daemon=True)
            for number in range(settings.workers)
        ]
        metrics.watch_workers(lambda: len(self._alive))

    def start(self) -> None:
        """Start the processes; they load their models while this returns."""
        for thread in self._threads:
            thread.start()

    @property
    def pids(self) -> list[int]:
        """The process ids of those that have loaded their models."""
        return list(self._alive.values())

    def join(self) -> None:
        """Wait until the queue is closed and empty and the processes have ended."""
        for thread in self._threads:
            thread.join()

    def _feed(self, number: int) -> None:
        child = None
        while child := child or self._loaded(number):
            tasks = self._queue.take(self._settings.batch_seconds)
            if tasks is None:
                break
            if not self._compute(child, tasks):
                self._alive.pop(number, None)
                self._metrics.worker_deaths.inc()
                child.kill()
                child = None
        self._alive.pop(number, None)
        if child:
            child.close()

    def _loaded(self, number: int) -> Child | None:
        """A process that has loaded the models; None: none can load them, or the service ends."""
        while not self._queue.closed:
            child = Child(_work, self._settings.speech, self._settings.language)
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
                LOG.critical("the models can't be loaded", extra={"reason": response.problem})
                self._set_rate(UserError(response.problem, where=response.where, hint=response.hint))
                return None
            self._set_rate(response)
            self._alive[number] = child.pid or 0
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
        models = Models(speech, language)
    except UserError as error:
        pipe.send(Failure.of(error))
        return
    pipe.send(models.sample_rate)
    while True:
        jobs = pipe.recv()
        try:
            results = models.compute(jobs)
        except Exception:
            traceback.print_exc()
            results = [_INTERNAL] * len(jobs)
        pipe.send(results)
