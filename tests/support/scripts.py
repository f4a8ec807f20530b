"""Loads a script of the project folder by its path, and runs a command's ``main`` as its last lines do.

The standard library also has a package `test`.
"""

from utils.command.entry import run_command

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def load_script(name: str) -> ModuleType:
    """Import the script ``name``, for example ``test.py``."""
    spec = importlib.util.spec_from_file_location(f"{Path(name).stem}_command", ROOT / name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # data classes need their module in sys.modules
    spec.loader.exec_module(module)
    return module


def exit_code(main: Callable[[Sequence[str]], int | None], arguments: Sequence[str]) -> int:
    """The exit code of a command that runs in this process; its messages are those of the streams."""
    try:
        run_command(lambda: main(arguments))
    except SystemExit as ended:
        return ended.code
    raise AssertionError("a command ends with an exit code")
