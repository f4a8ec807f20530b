"""Writes the records of a training run: ``history.csv``, TensorBoard logs, ``train.log``.

``history.csv`` has a row of metrics for each evaluation, and config.yaml gets the devices (``computed_on``).
"""

import csv
import io
import logging
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import keras
from keras import ops
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from utils.backend.devices import describe_devices, unused_gpu_reason
from utils.config import flatten
from utils.errors import escape_handler, printable
from utils.files import write_text
from utils.run_folder.run import ENVIRONMENT, RunFolder

log = logging.getLogger("train")


@dataclass(frozen=True)
class Example:
    """What the model makes of an utterance of the dev set."""

    id: str
    reference: str
    hypothesis: str


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
    """Writes one row for each evaluation; rewrites the whole CSV, so that a resumed run repeats no row."""

    def __init__(self, run: RunFolder, rows: list[dict[str, float]]):
        self._run, self._rows = run, list(rows)
        self._train = EventFile(run.logs / "train")
        self._validation = EventFile(run.logs / "validation")
        self._write_hparams()

    def __exit__(self, *_: object) -> None:
        self._train.close()
        self._validation.close()

    def train_step(self, figures: Mapping[str, float], step: int) -> None:
        """Write the figures of a training step to TensorBoard."""
        _add(self._train, _scalars(figures), step)

    def examples(self, examples: Sequence[Example], step: int) -> None:
        """Write hypotheses of the dev set as text to TensorBoard."""
        if examples:
            lines = [f"{each.id}\n\n    {each.reference}\n    {each.hypothesis}" for each in examples]
            _add(self._validation, text_pb("examples", "\n\n".join(lines)).value, step)

    def weights(self, model: keras.Model, step: int) -> None:
        """Write histograms of the model's weights to TensorBoard."""
        for variable in model.trainable_variables:
            _add(self._train, histogram_pb(variable.path, ops.convert_to_numpy(variable)).value, step)

    def graph(self, model: keras.Model) -> None:
        """Write the layers and operations of a functional model as a graph to TensorBoard."""
        graph = GraphDef()
        for operation in getattr(model, "operations", ()):
            node = graph.node.add(name=operation.name, op=type(operation).__name__)
            inputs = [each for call in operation._inbound_nodes for each in call.input_tensors]
            node.input.extend(dict.fromkeys(each._keras_history.operation.name for each in inputs))
        self._train.add(Event(wall_time=time.time(), graph_def=graph.SerializeToString()))

    def add(self, row: dict[str, float]) -> None:
        """Write the metrics of an evaluation."""
        self._rows.append(row)
        write_text(self._run.history, history_csv(self._rows))
        dev = {name.removeprefix("dev_"): row[name] for name in row if name.startswith("dev_")}
        # Under the tags of the dev set, so that TensorBoard shows both curves in one chart.
        train = {name.removeprefix("train_"): row[name] for name in row if name.startswith("train_")}
        others = {name: row[name] for name in ("epoch", "seconds")}
        for writer, figures in ((self._validation, dev), (self._train, train | others)):
            _add(writer, _scalars(figures), int(row["step"]))

    def _write_hparams(self) -> None:
        config = {key: value for key, value in self._run.config().items() if key != ENVIRONMENT}
        values = {key: _hparam(value) for key, value in flatten(config).items() if value is not None}
        event = Event(wall_time=time.time(), summary=hparams.hparams_pb(values))
        self._validation.add(event)


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


def _scalars(figures: Mapping[str, float]) -> list[Summary.Value]:
    return [Summary.Value(tag=name, simple_value=value) for name, value in figures.items()]


def _add(writer: EventFile, values: Iterable[Summary.Value], step: int) -> None:
    writer.add(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
