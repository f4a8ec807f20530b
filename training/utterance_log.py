"""Which utterances each optimiser step has seen → ``utterances.tsv`` in the run folder, if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from utils.files import write_text


class UtteranceLog:
    """One line a step: epoch, step, the ids with spaces between; the steps of a resumed run are there once.

    Args:
        path: the file; None writes nothing.
        done: steps that the checkpoint holds: lines of later ones, done again now, are taken out.
    """

    def __init__(self, path: Path | None, done: int):
        self._file = None
        if path:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
            write_text(path, "".join(lines[:done]))  # line n is step n
            self._file = path.open("a", encoding="utf-8", newline="\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()

    def add(self, epoch: int, step: int, ids: Sequence[str]) -> None:
        """A step is done; the line is written at once, so that it is there before the step's checkpoint."""
        if self._file:
            self._file.write(f"{epoch}\t{step}\t{' '.join(ids)}\n")
            self._file.flush()
