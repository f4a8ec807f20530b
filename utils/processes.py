"""A function and its jobs in, results as they come out: worker processes that start clean and end with us."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_processes(work: Callable[[Job], Result], jobs: Sequence[Job], workers: int) -> Iterator[Result]:
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
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(jobs)), mp_context=context, initializer=_start_worker)
    try:
        with _main_module_hidden():
            futures = [pool.submit(work, job) for job in jobs]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Processes started inside don't import the script that runs: it may take seconds (TensorFlow)."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and don't outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)
