"""A run folder, what a training run writes: paths, config, opening and creating it, one writer at a time.

A missing, damaged or changed file is reported by name. Training creates run folders (:func:`start_run`);
testing, transcription and export open them (:func:`open_run`).
"""

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from utils.config import build_config, flatten, save_yaml, with_overrides
from utils.errors import RunError, require
from utils.files import named_errors
from utils.run_folder import checksums
from utils.run_folder.checksums import CHECKSUMS, CONFIG, verified
from utils.run_folder.environment import environment

log = logging.getLogger("train")

ENVIRONMENT = "environment"
SEARCH = "search"
"""The section of config.yaml with the weights of the joint search that suit an acoustic model."""
NOT_OF_THE_RECIPE = (ENVIRONMENT, SEARCH, "transfer")
"""Sections of config.yaml that no recipe has."""
BUNDLE = "bundle.json"  # in a folder of exported models, which is often taken for a run
NOT_FINITE = "not finite"
"""In the last line of ``train.log`` if the training ended because of such a value."""
LOWER_RATE = "train again (another --run) with a lower optimiser.learning_rate or optimiser.clip_norm"
"""The advice after a training that has diverged."""
HERE_ONLY = ("data.cache", "data.workers")
"""Settings that do not change a training: they may differ when a run is continued."""
EPOCHS = "training.epochs"
SECTIONS = ("features", "data", "model", "optimiser", "training", ENVIRONMENT)
PRETRAINED = Path(__file__).parents[2] / "pretrained" / "pinyin_to_hanzi"
"""The run folder of the converter that is part of this project."""
PRETRAINED_SPEECH = PRETRAINED.with_name("audio_to_pinyin")
"""The packed run of the acoustic model that is part of this project."""
PRETRAINED_STREAMING = PRETRAINED.with_name("audio_to_pinyin_streaming")
"""The packed run of the causal acoustic model that is part of this project, for live audio."""
PRETRAINED_LANGUAGE_MODEL = PRETRAINED.with_name("hanzi_language_model")
"""The run folder of the language model of hanzi that is part of this project."""
PRETRAINED_PUNCTUATION = PRETRAINED.with_name("punctuation")
"""The packed run of the punctuation network that is part of this project."""
Section = TypeVar("Section")
_AGAIN = "copy the run folder again, or repeat the training"
_WHOLE = "copy the whole folder that train.py wrote"
_DIFFERENCES_SHOWN = 5


def _file(name: str) -> property:
    return property(lambda run: run.path / name)


@dataclass(frozen=True)
class RunFolder:
    """The paths in one run folder. The folder can be moved: its files don't contain its path."""

    path: Path

    config_file = _file(CONFIG)
    """Every hyper-parameter, and the environment of the training."""
    checksums = _file(CHECKSUMS)
    """SHA-256 of each file that other commands read, see :mod:`utils.run_folder.checksums`."""
    best_weights = _file("best.weights.h5")
    """Weights of the epoch with the lowest error on the dev set."""
    last_weights = _file("last.weights.h5")
    """Weights after the last finished epoch."""
    kept_weights = _file("weights")
    """Folder with the weights of single evaluations, named by step and accuracy."""
    checkpoint = _file("checkpoint/state.npz")
    """Weights, optimiser, step and data position: a killed training continues from here."""
    history = _file("history.csv")
    """One line per epoch: losses, error rates, learning rate, seconds."""
    metrics = _file("metrics.json")
    """The results of the finished training; the file exists only for a complete run."""
    log = _file("train.log")
    """The printed output, with times."""
    lock = _file(".lock")
    """Names the process that last trained in this folder; see ``utils/run_folder/run.py``."""
    logs = _file("logs")
    """Folder for TensorBoard (with ``train`` and ``validation``)."""
    labels = _file("labels.txt")
    """The labels of a keyword model, one per line, in the order of its outputs."""
    model_summary = _file("model_summary.txt")
    """The layers of the model with their sizes, or the n-grams of a counted one."""
    last_accuracy = _file("accuracy_last.txt")
    """Accuracy of the last weights of a keyword model on the test set, in percent."""
    flags, flags_json = _file("flags.txt"), _file("flags.json")
    """The settings of a keyword training as lines ``key=value`` and as JSON, for programs without YAML."""
    skipped = _file("skipped.tsv")
    """Training utterances that are too short for their labels."""
    tests = _file("test")
    """Folder with the results of ``test.py``, one folder a test set."""
    export = _file("export")
    """The bundle that ``export.py`` writes."""
    packed_network = _file("network.onnx")
    """The network of a packed run, in place of the weights."""
    confidence = _file("confidence.json")
    """How certain the syllables of a speech run are, see :mod:`recognition.confidence`."""
    phrase_thresholds = _file("phrase_thresholds.json")
    """From which score on a phrase counts, see :mod:`recognition.phrases.thresholds`."""
    syllable_ngram = _file("syllables.npz")
    """A counted n-gram of syllables."""
    ngram = _file("ngram.npz")
    """A counted n-gram of hanzi, of the converter ``ngram``."""
    ngrams, emissions, words = map(_file, ("ngrams.npz", "emissions.npz", "words.npz"))
    """The parts of the converter ``combined`` beside its packed network: n-grams, readings and words."""
    causal_network = _file("hanzi_model.npz")
    """The network of a language model of hanzi."""

    def last_logged(self) -> str:
        """The last line of ``train.log``; empty if there is none."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.is_file() else ""
        return text.rstrip("\n").rpartition("\n")[2]

    def vocabulary(self, name: str) -> Path:
        """The file of a vocabulary: ``acoustic.txt``, ``pinyin.txt``, ``hanzi.txt`` or ``lexicon.tsv``."""
        return self.path / "vocabulary" / name

    def part(self, path: Path) -> Path:
        """Check that a file of this folder exists and is unchanged, and return its path.

        Raises:
            RunError: the file is missing or has changed.
        """
        if not path.is_file():
            raise RunError(
                f"the run folder has no {path.relative_to(self.path)}",
                where=self.path,
                hint=f"{_WHOLE}, or let the training finish an epoch",
            )
        return verified(path)

    def weights(self, which: str) -> Path:
        """The weights file for ``which``: ``best``, ``last``, or a path.

        Raises:
            RunError: the folder has no such file, or the file has changed since it was written.
        """
        own = {"best": self.best_weights, "last": self.last_weights}
        return self.part(own[which]) if which in own else verified(which)

    def section(self, name: str, schema: type[Section]) -> Section:
        """A section of config.yaml as an instance of its data class.

        Raises:
            RunError: as for :meth:`config`, or there is no such section.
            ConfigError: an option in the section is unknown or wrong.
        """
        config = self.config()
        if name not in config:
            raise RunError(f"config.yaml has no section '{name}'", where=self.path, hint=_WHOLE)
        return build_config(schema, config[name], where=f"{self.config_file}, {name}")

    def record(self, name: str, values: Any) -> None:
        """Add nested plain values, found during training, to the environment in config.yaml."""
        config = self.config()
        save_yaml(self.config_file, {**config, ENVIRONMENT: {**config.get(ENVIRONMENT, {}), name: values}})

    def config(self) -> dict[str, Any]:
        """The saved config as plain nested values.

        Raises:
            RunError: the file is missing, damaged or changed.
        """
        if not self.config_file.is_file():
            if (self.path / BUNDLE).is_file():
                raise RunError(
                    "this is a bundle of exported models, not a run", where=self.path, hint=_source_of(self)
                )
            raise RunError(
                f"not a run folder: {_what_is_wrong(self.path)}", where=self.path, hint=_runs_nearby(self)
            )
        try:
            values = yaml.safe_load(verified(self.config_file).read_text(encoding="utf-8"))
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # e.g. not UTF-8, a 31st of June
            reason = " ".join(str(error).split())
            raise RunError(f"config.yaml is damaged ({reason})", where=self.path, hint=_AGAIN) from error
        if not isinstance(values, dict):
            raise RunError("config.yaml is empty or not a mapping", where=self.path, hint=_AGAIN)
        if not isinstance(values.get("task") or "", str):
            raise RunError("config.yaml is damaged ('task' is no name)", where=self.path, hint=_AGAIN)
        for name in SECTIONS:
            if not isinstance(values.get(name) or {}, dict):
                raise RunError(
                    f"config.yaml is damaged ('{name}' is not a section)", where=self.path, hint=_AGAIN
                )
        return values

    def data_section(self, overrides: Sequence[str]) -> dict[str, Any]:
        """The section ``data`` of the config, with overrides for data that were moved (``data.folder=…``).

        Raises:
            RunError: as for :meth:`config`.
            ConfigError: an override is wrong, or concerns another section.
        """
        for override in overrides:
            require(
                override.startswith("data."),
                f"'{override}' can't be changed after the training",
                hint="only data.* can be given: the new place of recordings or texts",
            )
        return with_overrides({"data": self.config().get("data") or {}}, overrides)["data"]

    def manifests(self, split: str) -> list[Path]:
        """The manifests of a split in the config; empty if there is no such split.

        Raises:
            RunError: as for :meth:`config`.
        """
        paths = (self.config().get("data") or {}).get(split) or []
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise RunError(
                f"config.yaml is damaged (data.{split} is not a list of files)", where=self.path, hint=_AGAIN
            )
        return [Path(path) for path in paths]


def arrays_not_finite(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Names of the arrays, of any shape and type, with NaN or infinite values."""
    return [name for name, a in arrays.items() if a.dtype.kind == "f" and not np.isfinite(a).all()]


def check_finite(weights: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Check that weights by name have neither NaN nor infinite values, whose outputs would look like results.

    Args:
        weights: arrays of any shape and type; only floating-point numbers are checked.
        path: their file.

    Raises:
        RunError: some have; ``path``, their file, is named.
    """
    if bad := arrays_not_finite(weights):
        raise RunError(
            f"weights that are {NOT_FINITE}: {len(bad)} of {len(weights)} arrays, e.g. {bad[0]}",
            where=path,
            hint=f"the training has diverged: {LOWER_RATE}",
        )


def open_run(path: str | Path, task: str | None = None) -> RunFolder:
    """Open an existing run folder; check its task if given (``speech``, ``language``, ``keyword``).

    Raises:
        RunError: there is no such folder, it has no config, or the run is of another task.
    """
    run = RunFolder(Path(path))
    found = run.config().get("task")
    if task and found != task:
        hint = f"give a run of train.py {task}"
        if {found, task} == {"speech", "language"}:
            hint += "; `test.py pipeline` takes the speech run first, then the language run"
        raise RunError(f"this is a run of task '{found}', not '{task}'", where=run.path, hint=hint)
    return run


def start_run(
    path: str | Path, config: Mapping[str, Any], search: Mapping[str, float] | None = None
) -> RunFolder:
    """Make a run folder for ``config``, or find the one that an earlier call with the same config made.

    Args:
        path: the run folder.
        config: nested plain values.
        search: the section :data:`SEARCH` of a new run.

    Where ``config`` has more epochs, the run is extended: it is no longer finished.

    Raises:
        RunError: the folder has a run with another config; the keys that differ are named, except
            :data:`HERE_ONLY`.
    """
    run = RunFolder(Path(path))
    if run.config_file.is_file():
        found = config_differences(run.config(), config)
        differing = [difference for difference in found if difference[0] not in HERE_ONLY]
        if [key for key, *_ in differing] == [EPOCHS] and differing[0][2] > differing[0][1]:
            run.metrics.unlink(missing_ok=True)  # first: killed in between, the same command extends it
            saved = run.config()
            save_yaml(run.config_file, {**saved, "training": dict(config["training"])})
        elif differing:
            raise RunError(
                f"the run was made with another config ({describe_differences(differing)})",
                where=run.path,
                hint="choose another --run, or delete the folder to start again",
            )
        return run
    sections = {SEARCH: dict(search)} if search else {}
    return create_run(path, {**config, **sections, ENVIRONMENT: environment()})


def require_new_run(path: str | Path) -> None:
    """Check that a new run would replace nothing.

    Raises:
        RunError: there is a file, a folder or a link of this name.
    """
    if os.path.lexists(path):
        raise RunError("the new run already exists", where=path, hint="choose another name for it")


def create_run(path: str | Path, config: Mapping[str, Any]) -> RunFolder:
    """Create a run folder with ``config``; from now on its files get checksums."""
    run = RunFolder(Path(path))
    checksums.begin(run.path)
    save_yaml(run.config_file, config)
    return run


def config_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(dotted key, old value, new value) where two configs differ, apart from environment and search."""
    before, after = (
        flatten({key: value for key, value in config.items() if key not in (ENVIRONMENT, SEARCH)})
        for config in (old, new)
    )
    keys = dict.fromkeys([*before, *after])
    return [(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]


def describe_differences(differing: Sequence[tuple[str, Any, Any]]) -> str:
    """The first few of :func:`config_differences` as text, and the number of the others."""
    shown = "; ".join(f"{key}: {old} there, {new} asked" for key, old, new in differing[:_DIFFERENCES_SHOWN])
    more = len(differing) - _DIFFERENCES_SHOWN
    return f"{shown}; {more} more" if more > 0 else shown


def find_run(path: str | Path) -> RunFolder | None:
    """The run folder of a file in it or in one of its subfolders; None if the file lies in no run folder."""
    beside = Path(path).parent
    above = beside / ".." if beside.name in ("", "..") else beside.parent
    return next((RunFolder(folder) for folder in (beside, above) if (folder / CONFIG).is_file()), None)


def _what_is_wrong(path: Path) -> str:
    if path.is_dir():
        return "it has no config.yaml"
    return "it is a file" if path.exists() else "there is no such folder"


def _runs_nearby(run: RunFolder) -> str:
    """Names the runs in this folder, or else those beside it; one without weights was perhaps just begun."""
    folders = (run.path, run.path.parent)
    runs = (
        [str(path.parent) for path in folder.glob("*/config.yaml") if _has_weights(path.parent)]
        for folder in folders
    )
    found = sorted(next(filter(None, runs), []))
    return f"runs nearby: {', '.join(found[:5])}" if found else "give the folder that train.py wrote"


def _has_weights(run: Path) -> bool:
    return any(path.suffix in {".h5", ".npz", ".onnx"} for path in run.glob("*"))


def _source_of(bundle: RunFolder) -> str:
    parent = bundle.path.absolute().parent
    source = f": {parent}" if (parent / CONFIG).is_file() else ""
    return f"give the run that it was exported from{source}; `export.py verify` checks a bundle"


@contextmanager
def locked(run: RunFolder) -> Iterator[None]:
    """Lock the run folder until the block ends or the process dies; create the folder if necessary.

    The lock belongs to the open file, so the file of a killed process is not locked. The file stays in the
    folder; its content only names the holder.

    Raises:
        RunError: another process holds the lock; its process id is named.
        OSError: the folder can't be written.
    """
    run.path.mkdir(parents=True, exist_ok=True)
    with run.lock.open("a+b", buffering=0) as file:
        if not _lock(file):
            raise RunError(
                f"another process writes this folder ({run.lock.read_text(encoding='utf-8')})",
                where=run.path,
                hint="wait until it has finished, stop it, or name another folder",
            )
        _write_holder(file)
        yield


def _lock(file: FileIO) -> bool:
    """Lock the file; False if another process has locked it."""
    try:
        import fcntl  # not on Windows
    except ImportError:
        log.warning("this system has no file locks: two processes in one folder are not detected")
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # some network file systems
        log.warning("%s can't be locked (%s): make sure that only one process writes there", file.name, error)
    return True


def _write_holder(file: FileIO) -> None:
    now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
    with named_errors(Path(file.name)):
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {now}".encode())
