"""Writes the records of a training run: ``history.csv``, TensorBoard logs, utterances, ``train.log``.

``history.csv`` has a row of metrics for each epoch, ``utterances.tsv`` the utterances of each step, and
config.yaml gets the devices (``computed_on``).
"""

import csv
import io
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.summary.writer.record_writer import RecordWriter

from utils.backend.devices import describe_devices, unused_gpu_reason
from utils.config import flatten
from utils.errors import escape_handler, printable
from utils.files import write_text
from utils.run_folder.run import ENVIRONMENT, RunFolder

log = logging.getLogger("train")


class EventFile:
    """A new TensorBoard event file in ``folder``, written without delay.

    TensorBoard's own writer uses a thread, in which a full disk causes a stack trace, and late.
    """

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{now:.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = (folder / name).open("xb", buffering=0)
        self._records = RecordWriter(self._file)
        self.add(Event(wall_time=now, file_version="brain.Event:2"))

    def add(self, event: Event) -> None:
        """Write an event.

        Raises:
            OSError: the write failed; the error names the file.
        """
        try:
            self._records.write(event.SerializeToString())
        except OSError as error:
            error.filename = self._file.name
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class HistoryWriter(AbstractContextManager):
    """Writes one row for each epoch; rewrites the whole CSV, so that a resumed run repeats no row."""

    def __init__(self, run: RunFolder, rows: list[dict[str, float]]):
        self._run, self._rows = run, list(rows)
        self._train = EventFile(run.logs / "train")
        self._validation = EventFile(run.logs / "validation")
        self._write_hparams()

    def __exit__(self, *_: object) -> None:
        self._train.close()
        self._validation.close()

    def train_scalar(self, name: str, value: float, step: int) -> None:
        """Write a metric of the training set at a step to TensorBoard."""
        _add(self._train, name, value, step)

    def add(self, row: dict[str, float]) -> None:
        """Write the metrics of a finished epoch."""
        self._rows.append(row)
        write_text(self._run.history, history_csv(self._rows))
        for name, value in row.items():
            _add(
                writer=self._validation if name.startswith("dev_") else self._train,
                name=name.removeprefix("dev_"),
                value=value,
                step=int(row["step"]),
            )

    def _write_hparams(self) -> None:
        config = {key: value for key, value in self._run.config().items() if key != ENVIRONMENT}
        values = {key: _hparam(value) for key, value in flatten(config).items() if value is not None}
        event = Event(wall_time=time.time(), summary=hparams.hparams_pb(values))
        self._validation.add(event)


class UtteranceLog(AbstractContextManager):
    """Utterances of each step: a line with epoch, step and ids; a resumed run repeats no line.

    Args:
        path: the file; None writes nothing.
        done: number of steps in the checkpoint; lines of later steps are removed, as these are repeated.
    """

    def __init__(self, path: Path | None, done: int):
        self._file = None
        if path:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
            write_text(path, "".join(lines[:done]))  # line n is step n
            self._file = path.open("a", encoding="utf-8", newline="\n")

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def add(self, epoch: int, step: int, ids: Sequence[str]) -> None:
        """Write the line of a step at once, before the checkpoint of the step."""
        if self._file:
            self._file.write(f"{epoch}\t{step}\t{' '.join(ids)}\n")
            self._file.flush()


def record_devices(run: RunFolder) -> None:
    """Log the devices of the Keras backend; record them in config.yaml; warn if a GPU is not used."""
    devices = describe_devices()
    run.record("computed_on", devices)
    log.info("computed on %s", ", ".join(devices["devices"]))
    if reason := unused_gpu_reason():
        log.warning("%s", reason)


def history_csv(rows: list[dict[str, float]]) -> str:
    """Return the rows as CSV text with a header line; figures that earlier rows do not have are empty."""
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, fieldnames=list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """In the block, write the training log to the terminal and, with times, append it to ``path``."""
    logger = logging.getLogger("train")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _LogFile(path, encoding="utf-8", errors=escape_handler())
    file.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    screen = logging.StreamHandler()
    screen.setFormatter(logging.Formatter("%(message)s"))
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in (file, screen):
        logger.addHandler(handler)
    try:
        yield
    finally:
        for handler in (file, screen):
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
        logger.propagate = propagate


class _LogFile(logging.FileHandler):
    """A log file whose write errors end the training with an error message, not with a stack trace."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Raise the error of the write again, with the file's name."""
        error = sys.exception()
        if isinstance(error, OSError):
            error.filename = self.baseFilename
        raise


def _hparam(value: object) -> object:
    """A setting as TensorBoard takes it: no lists, and no file names that are not UTF-8."""
    if isinstance(value, list):
        value = ",".join(map(str, value))
    return printable(value) if isinstance(value, str) else value


def _add(writer: EventFile, name: str, value: float, step: int) -> None:
    summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
    writer.add(Event(wall_time=time.time(), step=step, summary=summary))
