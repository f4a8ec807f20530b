"""The run folder: everything a training leaves behind, and all that test, transcribe and export need.

What goes in: a config and a model's files. What comes out: named paths, and clear errors for missing parts.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import psutil
import yaml

from utils.config import build_config, flatten, save_yaml
from utils.errors import RunError
from utils.run_folder import checksums
from utils.run_folder.checksums import CHECKSUMS, CONFIG, verified

ENVIRONMENT = "environment"
SECTIONS = ("features", "data", "model", "optimiser", "training", ENVIRONMENT)
PRETRAINED = Path(__file__).parents[2] / "pretrained" / "pinyin_to_hanzi"
"""The run folder of the converter that comes with this project."""
Section = TypeVar("Section")
_AGAIN = "copy the run folder again, or train anew"
_WHOLE = "copy the whole folder that train.py wrote"
_DIFFERENCES_SHOWN = 5
PACKAGES = ("tensorflow", "jax", "torch", "keras", "numpy", "scipy", "soundfile", "soxr", "pypinyin")


@dataclass(frozen=True)
class RunFolder:
    """Paths inside one run folder. The folder may be moved: nothing in it depends on where it lies."""

    path: Path

    @property
    def config_file(self) -> Path:
        """Every hyper-parameter, and the environment the run was made in."""
        return self.path / CONFIG

    @property
    def checksums(self) -> Path:
        """SHA-256 of each file that other commands read, see :mod:`utils.run_folder.checksums`."""
        return self.path / CHECKSUMS

    @property
    def best_weights(self) -> Path:
        """Weights of the epoch with the lowest error on the dev set."""
        return self.path / "best.weights.h5"

    @property
    def last_weights(self) -> Path:
        """Weights after the last finished epoch."""
        return self.path / "last.weights.h5"

    @property
    def kept_weights(self) -> Path:
        """Folder of the weights of single epochs, named by step and accuracy."""
        return self.path / "weights"

    @property
    def checkpoint(self) -> Path:
        """Weights, optimiser, step and data position: where a killed run goes on."""
        return self.path / "checkpoint" / "state.npz"

    @property
    def history(self) -> Path:
        """One line an epoch: losses, error rates, learning rate, seconds."""
        return self.path / "history.csv"

    @property
    def metrics(self) -> Path:
        """The figures of the finished run; its presence says that the run is complete."""
        return self.path / "metrics.json"

    @property
    def log(self) -> Path:
        """What was printed, with times."""
        return self.path / "train.log"

    @property
    def lock(self) -> Path:
        """Names the process that trains in this folder; see ``utils/run_folder/lock.py``."""
        return self.path / ".lock"

    @property
    def logs(self) -> Path:
        """TensorBoard's folder (``train`` and ``validation`` inside)."""
        return self.path / "logs"

    def vocabulary(self, name: str) -> Path:
        """A vocabulary's file: ``acoustic.txt``, ``pinyin.txt``, ``hanzi.txt`` or ``lexicon.tsv``."""
        return self.path / "vocabulary" / name

    @property
    def labels(self) -> Path:
        """The labels of a keyword model, one a line, in the order of its outputs."""
        return self.path / "labels.txt"

    def part(self, path: Path) -> Path:
        """A file of this folder, given back if it is there and what was written.

        Raises:
            RunError: it is missing or has changed.
        """
        if not path.is_file():
            missing = f"the run folder holds no {path.relative_to(self.path)}"
            hint = f"{_WHOLE}, or let the training finish an epoch"
            raise RunError(missing, where=self.path, hint=hint)
        return verified(path)

    def weights(self, which: str) -> Path:
        """The weights file that ``which`` means: ``best``, ``last``, or a path.

        Raises:
            RunError: this folder holds no such file, or the file has changed since it was written to its run.
        """
        own = {"best": self.best_weights, "last": self.last_weights}
        return self.part(own[which]) if which in own else verified(which)

    def section(self, name: str, schema: type[Section]) -> Section:
        """A section of config.yaml as its data class.

        Raises:
            RunError: as :meth:`config`, or there is no such section.
            ConfigError: an option in it is unknown or wrong.
        """
        config = self.config()
        if name not in config:
            raise RunError(f"config.yaml has no section '{name}'", where=self.path, hint=_WHOLE)
        return build_config(schema, config[name], where=f"{self.config_file}, {name}")

    def record(self, name: str, values: Any) -> None:
        """Write into config.yaml's environment what a training has found out: nested plain values."""
        config = self.config()
        save_yaml(self.config_file, {**config, ENVIRONMENT: {**config.get(ENVIRONMENT, {}), name: values}})

    def config(self) -> dict[str, Any]:
        """The saved config as plain nested values.

        Raises:
            RunError: the file is missing, damaged or changed.
        """
        if not self.config_file.is_file():
            raise RunError(
                "not a run folder: it holds no config.yaml", where=self.path, hint=_runs_nearby(self)
            )
        try:
            values = yaml.safe_load(verified(self.config_file).read_text(encoding="utf-8"))
        except (
            yaml.YAMLError,
            ValueError,
            RecursionError,
        ) as error:  # e.g. no UTF-8, the 31st of June
            reason = " ".join(str(error).split())
            raise RunError(f"config.yaml is damaged ({reason})", where=self.path, hint=_AGAIN) from error
        if not isinstance(values, dict):
            raise RunError("config.yaml is empty or no mapping", where=self.path, hint=_AGAIN)
        for name in SECTIONS:
            if not isinstance(values.get(name) or {}, dict):
                what = f"config.yaml is damaged ('{name}' is no section)"
                raise RunError(what, where=self.path, hint=_AGAIN)
        return values

    def manifests(self, split: str) -> list[Path]:
        """The lists of a split that the config names; none if it has no such split.

        Raises:
            RunError: as :meth:`config`.
        """
        paths = (self.config().get("data") or {}).get(split) or []
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            what = f"config.yaml is damaged (data.{split} is no list of files)"
            raise RunError(what, where=self.path, hint=_AGAIN)
        return [Path(path) for path in paths]


def open_run(path: str | Path, task: str | None = None) -> RunFolder:
    """An existing run folder, optionally checked to be of one task (``speech``, ``language``, ``keyword``).

    Raises:
        RunError: no such folder, no config in it, or a run of another task.
    """
    run = RunFolder(Path(path))
    found = run.config().get("task")
    _note_missing_checksums(run)
    if task and found != task:
        hint = f"give a run of train.py {task}"
        if task != "keyword":
            hint = "the speech run comes first, then the language run"
        raise RunError(f"this is a run of task '{found}', not '{task}'", where=run.path, hint=hint)
    return run


def start_run(path: str | Path, config: Mapping[str, Any]) -> RunFolder:
    """Make a run folder for ``config``, or find the one that an earlier call with the same config made.

    Raises:
        RunError: the folder holds a run of another config; the differing keys are named.
    """
    run = RunFolder(Path(path))
    if run.config_file.is_file():
        differing = config_differences(run.config(), config)
        if differing:
            what = f"the run was made with another config ({describe_differences(differing)})"
            hint = "choose another --run, or delete the folder to start anew"
            raise RunError(what, where=run.path, hint=hint)
        _note_missing_checksums(run)
        return run
    return create_run(path, {**config, ENVIRONMENT: environment()})


def create_run(path: str | Path, config: Mapping[str, Any]) -> RunFolder:
    """Make a run folder that holds ``config``; from now on every file in it gets a checksum."""
    run = RunFolder(Path(path))
    checksums.begin(run.path)
    save_yaml(run.config_file, config)
    return run


def config_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Dotted keys whose values differ between two configs, the environment left aside."""
    flat = [flatten({k: v for k, v in config.items() if k != ENVIRONMENT}) for config in (one, other)]
    keys = dict.fromkeys([*flat[0], *flat[1]])
    return [(key, flat[0].get(key), flat[1].get(key)) for key in keys if flat[0].get(key) != flat[1].get(key)]


def describe_differences(differing: Sequence[tuple[str, Any, Any]]) -> str:
    """The first few of :func:`config_differences` in words, and how many more there are."""
    shown = "; ".join(f"{key}: {old} there, {new} asked" for key, old, new in differing[:_DIFFERENCES_SHOWN])
    more = len(differing) - _DIFFERENCES_SHOWN
    return f"{shown}; {more} more" if more > 0 else shown


def environment() -> dict[str, Any]:
    """What a run was made with: git revision, package versions, machine."""
    return {
        "git_revision": _git("rev-parse", "HEAD") or "unknown",
        "git_changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": platform.python_version(),
        "keras_backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        "packages": _versions(PACKAGES),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def _versions(packages: Iterable[str]) -> dict[str, str]:
    """Of those that are installed: of the backends, one is enough."""
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


def find_run(path: str | Path) -> RunFolder | None:
    """The run folder of a file beside its config.yaml or one folder below it; None if it lies in no run."""
    beside = Path(path).parent
    above = beside / ".." if beside.name in ("", "..") else beside.parent
    return next((RunFolder(folder) for folder in (beside, above) if (folder / CONFIG).is_file()), None)


@cache
def _note_missing_checksums(run: RunFolder) -> None:
    if not checksums.exist(run.path):
        what = (
            f"note: {run.path} has no checksums (an older version made it): no damage to it can be noticed;"
        )
        print(f"{what} 'python inspect_model.py accept {run.path}' adds them", file=sys.stderr)


def _runs_nearby(run: RunFolder) -> str:
    found = sorted(str(path.parent) for path in run.path.parent.glob("*/config.yaml"))
    return f"runs nearby: {', '.join(found[:5])}" if found else "give the folder that train.py wrote"
