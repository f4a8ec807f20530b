"""An iterable in; its items, computed ahead by a thread, out."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

from utils.processes import thread_pool

Item = TypeVar("Item")

_END = object()


def prefetch(items: Iterable[Item], depth: int) -> Iterator[Item]:
    """Iterate over ``items`` in a thread, at most ``depth`` items ahead.

    An exception in ``items`` is raised here, at its place in the order. Closing this generator, or leaving
    it to be collected, ends the thread.
    """
    iterator = iter(items)
    with thread_pool(1) as pool:
        pending = deque(pool.submit(next, iterator, _END) for _ in range(depth))
        while (item := pending.popleft().result()) is not _END:
            pending.append(pool.submit(next, iterator, _END))
            yield item
