"""Runs jobs in processes, in threads or elsewhere, and collects their results; all end with this process.

Worker processes are spawned, ignore Ctrl-C (this process handles it) and don't import the running script.
:mod:`utils.cluster` sends the same jobs to other machines.
"""

import multiprocessing
import os
import signal
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from functools import cache
from itertools import starmap
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController
from tqdm import tqdm

from utils.errors import UserError

Job = TypeVar("Job")
Result = TypeVar("Result")

_in_worker = False  # whether this process is a worker of WorkerPool
_PENDING = 3  # jobs for each process that wait or whose results were not read yet
_END = object()  # marks the end of an iterator
_HIDDEN = threading.Lock()  # held while the main module is hidden: see main_module_hidden
_elsewhere: list[Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]] = []  # the last one counts


def run_jobs(
    work: Callable[[Job], Result], jobs: Sequence[Job], workers: int, *, threads: bool = False
) -> Iterator[Result]:
    """Compute ``work(job)`` for all jobs; the results come in no fixed order.

    In a block of :func:`jobs_elsewhere` they are computed there. Otherwise, with one worker, this process
    does the work, in the order of the jobs; with more, new processes are started ("spawn"), because a fork of
    a process with TensorFlow's threads can deadlock.

    Args:
        work: a function at module level, since processes find it by its name.
        jobs: arguments that can be pickled.
        workers: number of processes.
        threads: threads instead of processes, for work that waits for the disk.

    Raises:
        BrokenExecutor: a process died.
    """
    if _elsewhere:
        yield from _elsewhere[-1](work, jobs)
        return
    if workers <= 1 or not jobs:
        yield from map(work, jobs)
        return
    with thread_pool(workers) if threads else closing(WorkerPool(min(workers, len(jobs)))) as pool:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            yield future.result()


@contextmanager
def jobs_elsewhere(
    run: Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]],
) -> Iterator[None]:
    """Let ``run(work, jobs)`` compute the jobs of :func:`run_jobs` in this block, as a cluster does."""
    _elsewhere.append(run)
    try:
        yield
    finally:
        _elsewhere.pop()


def are_jobs_elsewhere() -> bool:
    """Whether this is a block of :func:`jobs_elsewhere`."""
    return bool(_elsewhere)


def collect(
    work: Callable[[Job], tuple[int, list[Result]]],
    jobs: Sequence[Job],
    workers: int,
    *,
    items: int,
    title: str,
    died: Exception,
    unit: str = "it",
    threads: bool = False,
) -> list[Result]:
    """Run jobs behind a progress bar, and join the results, in no fixed order.

    Args:
        work: as in :func:`run_jobs`; returns the number of items done and some results.
        jobs, workers, threads: as in :func:`run_jobs`.
        items: number of items in all jobs together.
        title: title of the progress bar.
        died: the error to raise if a process dies.
        unit: name of an item in the progress bar.
    """
    results: list[Result] = []
    try:
        with tqdm(total=items, desc=title, unit=unit, disable=None) as progress:
            for done, found in run_jobs(work, jobs, workers, threads=threads):
                results += found
                progress.update(done)
    except BrokenExecutor as error:
        raise died from error
    return results


class WorkerPool:
    """Worker processes for jobs that arrive one after another; the processes start with the first job.

    Args:
        workers: number of processes.
        prepare: called once in each process with ``arguments``; a function at module level.

    Raises:
        UserError: the system has no shared memory, which the queues between the processes need.
    """

    def __init__(self, workers: int, prepare: Callable[..., None] | None = None, *arguments: Any):
        context = multiprocessing.get_context("spawn")
        try:
            self._pool = ProcessPoolExecutor(
                workers, mp_context=context, initializer=_start_worker, initargs=(prepare, arguments)
            )
        except (OSError, NotImplementedError) as error:
            raise UserError(
                f"worker processes can't be started ({error})",
                hint="they need shared memory: make /dev/shm writable, or use one process (--workers 1, "
                "data.workers=1)",
            ) from error

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Run ``work(*arguments)`` in one of the processes."""
        with main_module_hidden(), _ctrl_c_later():
            return self._pool.submit(work, *arguments)

    def close(self) -> None:
        """Cancel the jobs that have not started, and end the processes."""
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def ordered_workers(
    workers: int, prepare: Callable[..., None] | None = None, *arguments: Any
) -> Iterator[Callable[..., Iterator[Any]]]:
    """Processes whose results come in the order of the jobs; with one worker, this process does the work.

    Args:
        workers: number of processes.
        prepare: called once in each process with ``arguments``; a function at module level.
        arguments: see ``prepare``.

    Yields:
        A function (work, jobs, died) → results of ``work(*job)``, which are read some jobs ahead; ``died`` is
        the error to raise if a process dies.
    """
    if workers == 1:
        if prepare:
            prepare(*arguments)
        yield lambda work, jobs, died: starmap(work, jobs)
        return
    with closing(WorkerPool(workers, prepare, *arguments)) as pool:

        def run(work: Callable, jobs: Iterable[Sequence[Any]], died: Exception) -> Iterator[Any]:
            pending: deque[Future[Any]] = deque()
            try:
                for job in jobs:
                    pending.append(pool.submit(work, *job))
                    if len(pending) >= _PENDING * workers:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            except BrokenExecutor as error:
                raise died from error

        yield run


def usable_cores() -> int:
    """Cores that threads of this process may use: one in a worker process, as the others have workers too."""
    return 1 if _in_worker else os.cpu_count() or 1


@contextmanager
def thread_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for jobs; when the block ends (also by Ctrl-C), jobs that have not started are cancelled."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def prefetch(items: Iterable[Result], depth: int) -> Iterator[Result]:
    """Iterate over ``items`` in a thread, at most ``depth`` items ahead.

    An exception in ``items`` is raised here, at its place in the order. Closing this generator, or leaving
    it to be collected, ends the thread.
    """
    iterator = iter(items)
    with thread_pool(1) as pool:
        pending: deque[Future[Any]] = deque(pool.submit(next, iterator, _END) for _ in range(depth))
        while (item := pending.popleft().result()) is not _END:
            pending.append(pool.submit(next, iterator, _END))
            yield item


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Block Ctrl-C for processes started inside; this process receives it after the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def main_module_hidden() -> Iterator[None]:
    """Keep processes started inside from importing the running script, which may load TensorFlow.

    Threads that start processes at the same time wait for each other.
    """
    with _HIDDEN:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _start_worker(prepare: Callable[..., None] | None, arguments: Sequence[Any]) -> None:
    """Ignore Ctrl-C, which the parent handles, and end together with the parent."""
    global _in_worker
    _in_worker = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare:
        prepare(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a worker
    parent.join()
    os._exit(1)


_blas_lock = threading.Lock()
_blas_blocks = 0  # blocks of one_blas_thread that have not ended
_blas_limit: Any = None  # what restores the number of threads


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """In this block a matrix product uses one thread. The number is that of the process.

    The first block sets it and the last one to end restores it: a block that began within another one would
    otherwise restore the one thread of that one, for good.
    """
    global _blas_blocks, _blas_limit
    with _blas_lock:
        if not _blas_blocks:
            _blas_limit = _controller().limit(limits=1, user_api="blas")
        _blas_blocks += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_blocks -= 1
            if not _blas_blocks:
                _blas_limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_HIDDEN_SECONDS = 2.0

Item = TypeVar("Item")


def bar_if_long(items: Sequence[Item], title: str, unit: str) -> Iterable[Item]:
    """The items, behind a progress bar on a terminal if they take longer than 2 s; it disappears at the end.

    Args:
        items: what the loop goes through.
        title: what the loop does.
        unit: name of several items, with a space in front: ``" lines"``.
    """
    return tqdm(items, title, unit=unit, disable=None, delay=_HIDDEN_SECONDS, leave=False)
