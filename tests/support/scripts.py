"""A script in the project folder as a module, by its path: the standard library has a package `test` too."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def load_script(name: str) -> ModuleType:
    """Run ``name`` (``test.py``) as an import would."""
    spec = importlib.util.spec_from_file_location(f"{Path(name).stem}_command", ROOT / name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # data classes look their module up
    spec.loader.exec_module(module)
    return module
