"""Lets Ctrl-C and SIGTERM stop a command between two steps of its work, or while it waits for a file in vain.

A call on a mounted file system whose server is gone may never return: the command waits without a word, and
goes on when the server is back. :func:`watched` surrounds such calls; a thread looks at them every second,
and names the file. Ctrl-C ends such a call in the main thread; while other threads or processes wait, it is
this thread that ends the command.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from types import FrameType
from typing import TypeVar

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
STALLED_SECONDS = 20.0  # a call that takes longer is named; after Ctrl-C, it ends the command

_Call = tuple[float, str, object]
_calls: dict[int, _Call] = {}  # the call for which a thread waits: since when, what for
_stopped: list[float] = []  # when Ctrl-C was pressed, and SIGTERM where it is noted

Item = TypeVar("Item")


class Stopped(KeyboardInterrupt):
    """The command was stopped by a signal.

    Args:
        number: the signal, one of :data:`STOP_SIGNALS`.
    """

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
        _stopped.append(time.monotonic())

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


class watched:  # of contextlib it would take twice as long, and large corpora have many files
    """Watch a short block that calls the file system or waits for processes; blocks are not nested.

    Args:
        action: what it does, for the message: ``read``.
        item: the file.
    """

    __slots__ = ("_action", "_item")

    def __init__(self, action: str, item: object):
        self._action, self._item = action, item

    def __enter__(self) -> None:
        _start_watch()
        _calls[threading.get_ident()] = time.monotonic(), self._action, self._item

    def __exit__(self, *exception: object) -> None:
        _calls.pop(threading.get_ident(), None)


def note_ctrl_c() -> None:
    """Let Ctrl-C end this process also if a thread or process of it waits in vain."""

    def stop(number: int, frame: FrameType | None) -> None:
        _stopped.append(time.monotonic())
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)


@cache
def _start_watch() -> None:
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    named: set[_Call] = set()
    while True:
        time.sleep(1.0)
        limit = time.monotonic() - STALLED_SECONDS
        stalled = {call for call in list(_calls.values()) if call[0] < limit}
        for _, action, item in stalled - named:
            waiting = f"still waiting after {STALLED_SECONDS:.0f} s to {action} {item}"
            print(f"note: {waiting}: do its disk and network answer?", file=sys.stderr, flush=True)
        named = stalled
        if stalled and _stopped and _stopped[0] < limit:
            print(Stopped(), file=sys.stderr, flush=True)
            os._exit(128 + signal.SIGINT)
