"""Queues the tasks of many requests and chooses the next ones, fairly by seconds of audio.

Self-clocked fair queueing (Golestani, "A self-clocked fair queueing scheme for broadband applications",
1994): each task gets a tag, the tag of the request's task before it (or of the task that was taken last, if
that is higher) plus its seconds, and the lowest tag is next. A request of three seconds overtakes all that an
hour's file still has to do, whenever it comes, and requests with much to do share the workers equally.
"""

import heapq
import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Task:
    """A job for a worker.

    Attributes:
        job: what the worker gets.
        seconds: length of the audio; for other jobs, that of audio which takes about the same time.
        result: future that the worker sets; cancelling it takes the task out of the queue.
        attempts: number of workers that died while they computed it.
    """

    job: Any
    seconds: float
    result: Future = field(default_factory=Future)
    attempts: int = 0


class Flow:
    """The tasks of one request."""

    def __init__(self):
        self.tag = 0.0  # of its last task


class FairQueue:
    """Tasks that wait for a worker; all methods may be called by any thread."""

    def __init__(self):
        self._heap: list[tuple[float, int, Task]] = []
        self._count = itertools.count()
        self._clock = 0.0  # the tag of the task that was taken last
        self._changed = threading.Condition()
        self._closed = False

    def put(self, task: Task, flow: Flow) -> None:
        """Add the next task of a request."""
        with self._changed:
            flow.tag = max(self._clock, flow.tag) + task.seconds
            heapq.heappush(self._heap, (flow.tag, next(self._count), task))
            self._changed.notify()

    def put_back(self, tasks: Sequence[Task]) -> None:
        """Add tasks that were taken and not computed; they are next."""
        with self._changed:
            for task in tasks:
                heapq.heappush(self._heap, (self._clock, -next(self._count), task))
            self._changed.notify(len(tasks))

    def take(self, longest: float) -> list[Task] | None:
        """Wait for a task; the result is this one and those after it, of ``longest`` seconds together.

        A worker that has nothing to do takes a task at once; what arrives while all are busy is joined. None:
        the queue was closed.
        """
        with self._changed:
            while True:
                while not self._heap and not self._closed:
                    self._changed.wait()
                if not self._heap:
                    return None
                taken: list[Task] = []
                seconds = 0.0
                while self._heap and (not taken or seconds + self._heap[0][2].seconds <= longest):
                    # What a worker died over is tried alone, so that it harms the others only once.
                    if taken and (taken[0].attempts or self._heap[0][2].attempts):
                        break
                    tag, _, task = heapq.heappop(self._heap)
                    self._clock = max(self._clock, tag)
                    # False: cancelled while it waited. A task that was put back is running already.
                    if task.attempts or task.result.set_running_or_notify_cancel():
                        taken.append(task)
                        seconds += task.seconds
                if taken:
                    return taken

    def waiting(self) -> float:
        """Seconds of all tasks that wait."""
        with self._changed:
            return sum(task.seconds for _, _, task in self._heap)

    @property
    def closed(self) -> bool:
        """Whether no more tasks come."""
        return self._closed

    def close(self) -> None:
        """No more tasks come: :meth:`take` returns None as soon as the queue is empty."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
