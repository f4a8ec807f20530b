"""Describes the environment of a training for config.yaml: git revision, package versions, machine."""

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("tensorflow", "jax", "torch", "keras", "numpy", "scipy", "soundfile", "soxr", "pypinyin")


def environment() -> dict[str, Any]:
    """The git revision, package versions and machine of this process, as plain values."""
    return {
        "git_revision": _git("rev-parse", "HEAD") or "unknown",
        "git_changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "keras_backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        "packages": package_versions(PACKAGES),
        **machine(),
    }


def machine() -> dict[str, Any]:
    """Operating system, cores and memory (GiB) of this machine, as plain values."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the packages that are installed under these names.

    Only one of the backends is needed, and a module may be of another package (tensorflow of tensorflow-cpu).
    """
    versions = {}
    for name in packages:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _git(*arguments: str) -> str:
    root = Path(__file__).parents[2]
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
