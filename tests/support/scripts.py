"""Loads a script of the project folder by its path: the standard library also has a package `test`."""

import importlib.util
import sys
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
