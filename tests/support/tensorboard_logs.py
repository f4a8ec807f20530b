"""Reads the TensorBoard logs of a run."""

from collections.abc import Iterator
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary


def events(folder: Path) -> Iterator[Event]:
    """All events in the files of a folder, in order."""
    for path in sorted(folder.glob("events*")):
        yield from LegacyEventFileLoader(str(path)).Load()


def summaries(folder: Path) -> Iterator[Summary.Value]:
    """All values of these events."""
    for event in events(folder):
        yield from event.summary.value


def tags_of(logs: Path) -> dict[str, set[str]]:
    """Names of the values in each folder of ``logs/``."""
    return {
        folder.name: {value.tag for value in summaries(folder)}
        for folder in logs.iterdir()
        if folder.is_dir()
    }
