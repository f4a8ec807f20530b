"""Signals that ask a command to stop: noted between two steps of its work, reported by name."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """The command has stopped because a signal asked it to.

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
    """Inside the block Ctrl-C and SIGTERM only append their number to the list; a second one acts at once.

    Outside the main thread (a notebook's worker, a test) signals are left alone.

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
def forward_sigterm(process: subprocess.Popen) -> Iterator[None]:
    """Inside the block SIGTERM goes to a child process, which stops in its own way; this one waits for it.

    Ctrl-C needs no passing on: a terminal sends it to both.
    """

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
