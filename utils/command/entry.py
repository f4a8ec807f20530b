"""Runs a command: its ``main`` in, an exit code out; errors of the user are reported without a stack trace.

Every command imports this module before all others (``pyproject.toml`` gives it a section of its own). The
imports of some commands take seconds, and end early if a package is missing or at Ctrl-C. Python then calls
``sys.excepthook``, which reports this as :func:`run_command` reports what happens later.
"""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from utils.errors import OS_ERROR_HINTS, UserError, escape_handler, missing_package
from utils.stop_signals import Stopped

_ROOT = Path(__file__).parents[2]


def run_command(main: Callable[..., int | None]) -> None:
    """Run a script's ``main`` and exit with its return value, or with 2 after an error of the user.

    After a signal the exit code is the one that shells use: 130 for Ctrl-C, 143 for SIGTERM.
    A full disk, a missing file, missing permissions and a package that is not installed are reported like a
    :class:`utils.errors.UserError`. What can't be printed, such as a file name that is not UTF-8, is printed
    as by :func:`utils.errors.printable`.

    Raises:
        SystemExit: always, except after an error that the user can't correct, which is raised again.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=escape_handler())
    try:
        code = main() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has closed the pipe (`| head`): exit quietly, like other Unix tools.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (KeyboardInterrupt, Exception) as error:
        reported = _report(error)
        if reported is None:
            raise
        code = reported
    sys.exit(code)


def _report(error: BaseException) -> int | None:
    """Print the message of an error; returns the exit code, or None for an error of this project."""
    # Compiled modules that Ctrl-C interrupts raise an error of their own, with the interruption as its cause.
    if isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    if isinstance(error, KeyboardInterrupt):
        stopped = error if isinstance(error, Stopped) else Stopped()
        print(stopped, file=sys.stderr)
        return 128 + stopped.number
    shown = _user_error(error)
    if shown is None:
        return None
    print(shown.labelled(), file=sys.stderr)
    return 2


def _user_error(error: BaseException) -> UserError | None:
    if isinstance(error, UserError):
        return error
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        ours = not package or any(_ROOT.glob(f"{package}*"))
        return None if ours else missing_package(package)
    if isinstance(error, OSError) and error.errno in OS_ERROR_HINTS:
        hint = OS_ERROR_HINTS[error.errno]
        return UserError(error.strerror or str(error), where=error.filename or "while writing", hint=hint)
    return None


def _end_import(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """``sys.excepthook``: report what ends a command while it imports its modules.

    Other programs, such as those of users, which import modules of this project, keep Python's stack trace.
    """
    is_command = getattr(sys.modules["__main__"], "run_command", None) is run_command
    code = _report(error) if is_command else None
    if code is None:
        sys.__excepthook__(kind, error, trace)
    else:
        sys.exit(code)


sys.excepthook = _end_import
