"""Finds a converter in a Python package: the command that serves it, its version, its size on disk."""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.converters.entry import Command, Missing, bytes_of

INSTALL = "pip install -r requirements/bench.txt"


def served(builder: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a converter of this folder, named ``module:function``."""
    return (
        sys.executable,
        "-m",
        "benchmarks.converters.serve",
        f"benchmarks.converters.{builder}",
        *arguments,
    )


def in_package(package: str, builder: str) -> Callable[[Path], Command]:
    """A function that finds a converter whose library is a Python package.

    Args:
        package: name of the package, for its import and its installation.
        builder: ``module:function`` of this folder that builds the converter.
    """

    def find(_: Path) -> Command:
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise Missing(f"{package} is not installed: {INSTALL}")
        folders = [Path(folder) for folder in found.submodule_search_locations]
        return Command(served(builder), importlib.metadata.version(package), bytes_of(folders))

    return find
