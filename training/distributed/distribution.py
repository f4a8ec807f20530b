"""Trains on several devices and processes (``--distribute``): what the training loop calls for it.

Every process plans the same batches, reads its shard of each, and gets the losses of the whole batch after
the step; the first process, the chief, evaluates and writes the run folder. TensorFlow's part is in
``training/distributed/replicas.py``, the reading of ``TF_CONFIG`` in ``training/distributed/cluster.py``.
"""

import importlib
import io
import json
import logging
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import numpy as np

from training.backends.step import Losses, make_train_step
from training.distributed.cluster import VARIABLE, read_cluster, wait_for_workers
from utils.errors import TrainingError, require
from utils.files import replacing
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")

KINDS = ("mirrored", "multi_worker")

TrainStep = Callable[[dict[str, np.ndarray], int], tuple[np.ndarray, dict[str, float]]]


@dataclass(frozen=True)
class Distribution:
    """The devices and processes of a training run; by default one device in one process.

    The methods keep all processes in the same state; all processes must call them in the same order.

    Attributes:
        strategy: TensorFlow's strategy; None for one device in one process.
        index: index of this process.
        count: number of processes.
        broadcast: ``data, source → the data of process source``.
    """

    strategy: Any = None
    index: int = 0
    count: int = 1
    broadcast: Callable[[bytes, int], bytes] = lambda data, source: data

    @property
    def chief(self) -> bool:
        """Whether this process writes the run folder."""
        return self.index == 0

    @property
    def devices(self) -> int:
        """Number of devices of all processes."""
        return self.strategy.num_replicas_in_sync if self.strategy else 1

    @property
    def shard(self) -> tuple[int, int]:
        """(index, count): process i % count reads row i of a batch."""
        return self.index, self.count

    def describe(self) -> str:
        """One line for the log."""
        if self.devices == 1:
            return "there is one device: trained as without --distribute"
        return f"process {self.index + 1} of {self.count}, {self.devices} devices in all"

    def build(self, build: Callable[[], keras.Model]) -> keras.Model:
        """Call ``build`` and copy the model to every device."""
        return build() if self.strategy is None else _replicas().build_replicated(self.strategy, build)

    def optimised(self, model: keras.Model) -> list[Any]:
        """The variables to build an optimiser on."""
        return self.first_copies(model.trainable_variables)

    def first_copies(self, variables: list[Any]) -> list[Any]:
        """The copies on this process's first device, with which a model is evaluated and saved."""
        return variables if self.strategy is None else _replicas().first_copies(self.strategy, variables)

    def vary_dropout(self, model: keras.Model) -> None:
        """Call this when the model has its initial values, or those of a checkpoint: see ``replicas.py``."""
        if self.strategy is not None:
            _replicas().vary_dropout(self.strategy, model)

    def make_step(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer,
        losses: Losses,
        xla: bool,
        accepts_padding: bool,
        received: list[int],
    ) -> tuple[TrainStep, list[int]]:
        """``arrays of this process's shard, rows of the whole batch → losses (rows,), figures`` of the batch.

        See :func:`training.backends.step.make_train_step`.

        Args:
            received: the stop signals that this process has received so far.

        Returns:
            The step, and a list that has the stop signals after it. It is the same list after the same step
            in all processes: a signal of any process reaches it at the next step.
        """
        stop = received if self.count == 1 else []
        if self.strategy is None:
            step = make_train_step(model, optimizer, losses, xla, accepts_padding)
            return lambda arrays, rows: _as_numbers(*step(arrays)), stop
        replicated = _replicas().make_replicated_step(
            self.strategy, self.shard, model, optimizer, losses, xla, received, stop
        )
        return lambda arrays, rows: _as_numbers(*replicated(arrays, rows)), stop

    def from_chief(self, metrics: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Compute metrics in the chief and return them in all processes."""
        text = json.dumps(metrics()) if self.chief else ""
        return json.loads(self.broadcast(text.encode(), 0))

    def gather(self, lines: list[str]) -> list[str]:
        """The lines of all processes, in the order of the processes."""
        sent = [self.broadcast(json.dumps(lines).encode(), source) for source in range(self.count)]
        return [line for text in sent for line in json.loads(text)]

    def check_same(self, name: str, value: object) -> None:
        """Check that all processes have the same value.

        Raises:
            TrainingError: the values differ; the error names ``name``.
        """
        if self.count == 1:
            return
        sums = self.gather([f"{zlib.crc32(repr(value).encode()):08x}"])
        other = [index for index, found in enumerate(sums) if found != sums[0]]
        if other:
            raise TrainingError(
                f"process {other[0]} has another {name} than the chief",
                hint="the same code, command, manifests and recordings must be on all machines",
            )

    def copy_run(self, run: RunFolder) -> None:
        """Copy the chief's vocabulary, checkpoint and metrics to the run folders of the other processes."""
        if self.count == 1:
            return
        parts = [
            *run.vocabulary("").glob("*"),
            *run.checkpoint.parent.glob("*"),
            *([run.metrics] if run.metrics.is_file() else []),
        ]
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for path in parts if self.chief else ():
                archive.write(path, path.relative_to(run.path))
        data = self.broadcast(content.getvalue(), 0)
        if not self.chief:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for name in archive.namelist():
                    with replacing(run.path / name) as temporary:
                        temporary.write_bytes(archive.read(name))


SINGLE_PROCESS = Distribution()


@contextmanager
def distributed(kind: str | None, virtual_devices: int = 0) -> Iterator[Distribution]:
    """Set up the devices and processes of ``--distribute``; inside the block errors name lost processes.

    Args:
        kind: one of :data:`KINDS`; None for one device.
        virtual_devices: number of virtual CPU devices to use instead of the GPUs, with ``mirrored``.

    Raises:
        ConfigError: the settings are not available: see the message.
        TrainingError: a process did not start, or was lost.
    """
    _check(kind, virtual_devices)
    if kind is None:
        yield SINGLE_PROCESS
    elif kind == "mirrored":
        yield Distribution(_replicas().mirrored_strategy(virtual_devices))
    else:
        cluster = read_cluster(os.environ)
        wait_for_workers(cluster)
        with _replicas().lost_workers_named(cluster):
            strategy, count = _replicas().multi_worker_strategy(), len(cluster.names)
            broadcast = _replicas().make_broadcast(strategy, (cluster.index, count))
            distribution = Distribution(strategy, cluster.index, count, broadcast)
            yield distribution
            distribution.gather([])  # wait for all: the others may still need this process


@contextmanager
def run_path_of(distribution: Distribution, path: Path) -> Iterator[Path]:
    """The run folder of this process: ``path`` for the chief, a temporary folder for the others."""
    if distribution.chief:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="training-worker-") as folder:
        yield Path(folder) / path.name


def _as_numbers(losses: Any, figures: dict[str, Any]) -> tuple[np.ndarray, dict[str, float]]:
    return np.asarray(losses), {name: float(np.asarray(value)) for name, value in figures.items()}


def _check(kind: str | None, virtual_devices: int) -> None:
    require(
        virtual_devices == 0 or (virtual_devices > 0 and kind == "mirrored"),
        f"--virtual-devices {virtual_devices}",
        hint="above 0, with --distribute mirrored",
    )
    if kind is None:
        if VARIABLE in os.environ:
            log.warning("%s is set, but not --distribute multi_worker: this process trains alone", VARIABLE)
        return
    require(kind in KINDS, f"--distribute {kind}", hint=f"one of: {', '.join(KINDS)}")
    backend = keras.backend.backend()
    require(
        backend == "tensorflow",
        f"--distribute works on TensorFlow only, not on '{backend}'",
        hint="leave it out, or set KERAS_BACKEND=tensorflow",
    )


def _replicas() -> ModuleType:
    """TensorFlow's part, imported by name: other backends must not load TensorFlow."""
    return importlib.import_module("training.distributed.replicas")
