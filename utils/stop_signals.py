"""Lets Ctrl-C and SIGTERM stop a command between two steps of its work."""

import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from types import FrameType
from typing import TypeVar

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Item = TypeVar("Item")


class Stopped(KeyboardInterrupt):
    """The command was stopped by a signal."""

    def __init__(self, number: int = signal.SIGINT):
        self.number = number
        super().__init__(f"stopped by {signal_name(number)}")


def signal_name(number: int) -> str:
    """``Ctrl-C`` or ``SIGTERM``."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


@contextmanager
def note_stop_signals() -> Iterator[list[int]]:
    """Inside the block, Ctrl-C and SIGTERM append their number to the yielded list; a second one raises.

    Outside the main thread (a worker of a notebook, a test) signals are not handled.

    Raises:
        Stopped: at the second signal.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if noted:
            raise Stopped(number)
        noted.append(number)

    try:
        before = {number: signal.signal(number, note) for number in STOP_SIGNALS}
    except ValueError:  # not in the main thread
        before = {}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def until_stopped(items: Iterable[Item]) -> Iterator[Iterator[Item]]:
    """The items of a live source; Ctrl-C and SIGTERM end them, and what was read can still be processed.

    Raises:
        Stopped: after the block, if a signal has ended the items; at the second signal, at once.
    """
    with note_stop_signals() as noted:
        yield takewhile(lambda _: not noted, items)
    if noted:
        raise Stopped(noted[0])


@contextmanager
def forward_sigterm(process: subprocess.Popen) -> Iterator[None]:
    """Inside the block, SIGTERM is sent on to a child process; this process waits until the child stops.

    Ctrl-C needs no forwarding: a terminal sends it to both processes.
    """

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
