"""An installed Python package by name: the command that serves its converter, version, size on disk."""

from __future__ import annotations

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
    """How to find a converter whose library is a Python package.

    Args:
        package: as it is imported, and as it is installed.
        builder: what builds it, ``module:function`` of this folder.
    """

    def find(_: Path) -> Command:
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            raise Missing(f"{package} is not installed: {INSTALL}")
        folders = [Path(place) for place in found.submodule_search_locations]
        return Command(served(builder), importlib.metadata.version(package), bytes_of(folders))

    return find
