"""Limits NumPy's matrix products to one thread, also if several threads of the process ask for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside = 0  # blocks of one_blas_thread that have not ended
_limit: Any = None  # what restores the number of threads


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """In this block a matrix product uses one thread. The number is that of the process.

    The first block sets it and the last one to end restores it: a block that began within another one would
    otherwise restore the one thread of that one, for good.
    """
    global _inside, _limit
    with _lock:
        if not _inside:
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
