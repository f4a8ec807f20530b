"""Runs a function in a child process with a pipe to it, which may die or be killed at any time.

``multiprocessing.Pool`` hangs or breaks as a whole when a process dies; here each process has a pipe of its
own, whose end raises an exception in every caller that waits for a response.
"""

import contextlib
import logging
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from serving.logs import log_to_standard_error
from utils.processes import main_module_hidden
from utils.stop_signals import STOP_SIGNALS

LOG = logging.getLogger("serving")
_GRACE_SECONDS = 2.0  # from the end of the pipe to SIGKILL


class ChildDied(Exception):
    """The process ended without a response; ``code`` is its exit code, -N after signal N."""

    def __init__(self, code: int | None):
        self.code = code
        super().__init__(f"exit code {code}")


class ChildTimeout(Exception):
    """The process has sent nothing for too long."""


@contextlib.contextmanager
def stop_signals_blocked() -> Iterator[None]:
    """Block SIGINT and SIGTERM in this thread, and in the processes that it starts inside the block.

    Signals of a terminal or a supervisor go to all processes, but only the first one acts on them: the others
    finish what they were given. Blocked signals are inherited, so there is no gap at the start.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Child:
    """A process with a pipe; it ends when the pipe is closed.

    Args:
        run: called there with its end of the pipe and ``arguments``; a function at module level.
        arguments: can be pickled.
        method: ``spawn``, or ``forkserver`` for processes that have to start within milliseconds.
    """

    def __init__(self, run: Callable[..., None], *arguments: Any, method: str = "spawn"):
        context: Any = multiprocessing.get_context(method)
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_main, args=(run, other, *arguments), daemon=True)
        resource_tracker.ensure_running()  # it unblocks these signals when it is started
        with stop_signals_blocked(), main_module_hidden():
            self._process.start()
        other.close()

    @property
    def pid(self) -> int | None:
        """The process id."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message.

        Raises:
            ChildDied: the process has ended.
        """
        try:
            self._pipe.send(message)
        except OSError as error:
            raise self._died() from error

    def receive(self, timeout: float | None = None) -> Any:
        """Wait for a message.

        Raises:
            ChildDied: the process has ended.
            ChildTimeout: it has sent nothing for ``timeout`` seconds.
        """
        try:
            if not self._pipe.poll(timeout):
                raise ChildTimeout
            return self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error

    def close(self) -> None:
        """Close the pipe, so that the process ends; one that does not is killed. Nobody may wait for it."""
        self._pipe.close()
        self._process.join(_GRACE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the process at once; a thread that waits for a message gets :class:`ChildDied`."""
        self._process.kill()
        self._process.join()

    def _died(self) -> ChildDied:
        self._process.join(_GRACE_SECONDS)
        return ChildDied(self._process.exitcode)


def _main(run: Callable[..., None], pipe: Connection, *arguments: Any) -> None:
    log_to_standard_error()
    try:
        run(pipe, *arguments)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the other end of the pipe was closed: no caller waits for the result
    except Exception:
        LOG.exception("a process has failed")
        sys.exit(1)
