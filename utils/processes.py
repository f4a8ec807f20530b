"""A function and its jobs in, results as they come out: workers that start clean and end with us."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_in_processes(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Result]:
    """Results of ``work(job)`` in no fixed order; with one worker in this process, in theirs.

    Other processes are started afresh: forks of one with TensorFlow's threads can lock up.

    Args:
        work: a function at the top of a module, as it is found there by name.
        jobs: what can be pickled.
        workers: processes.

    Raises:
        BrokenExecutor: a process died.
    """
    if workers <= 1:
        yield from map(work, jobs)
        return
    pool = WorkerPool(min(workers, len(jobs)))
    try:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            yield future.result()
    finally:
        pool.close()


class WorkerPool:
    """Worker processes for jobs that arrive one after another; the processes start with the first job.

    Args:
        workers: processes.
        prepare: called once in each with ``arguments``; at the top of a module, as the jobs.
    """

    def __init__(self, workers: int, prepare: Callable[..., None] | None = None, *arguments: Any):
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_start_worker, initargs=(prepare, arguments)
        )

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Run ``work(*arguments)`` in a process."""
        with _main_module_hidden(), _ctrl_c_later():
            return self._pool.submit(work, *arguments)

    def in_order(
        self, work: Callable[..., Result], jobs: Iterable[Sequence[Any]], most: int
    ) -> Iterator[Result]:
        """Results of ``work(*job)`` in the jobs' order; no more than ``most`` are under way or waited for.

        Raises:
            BrokenExecutor: a process died.
        """
        pending: deque[Future[Result]] = deque()
        for job in jobs:
            pending.append(self.submit(work, *job))
            if len(pending) >= most:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    def close(self) -> None:
        """Drop what has not begun and end the processes."""
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def thread_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for jobs; when the block ends, by Ctrl-C for one, what has not begun is dropped."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Processes started inside never hear Ctrl-C, which a terminal sends them as well; we do, afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Processes started inside don't import the script that runs: it may take seconds (TensorFlow)."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start_worker(prepare: Callable[..., None] | None, arguments: Sequence[Any]) -> None:
    """Leave Ctrl-C to the parent, and don't outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare:
        prepare(*arguments)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
