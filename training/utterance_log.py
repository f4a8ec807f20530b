"""Writes the utterances of each optimiser step to ``utterances.tsv`` in the run folder."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from utils.files import write_text


class UtteranceLog:
    """One line for each step: epoch, step, ids separated by spaces; a resumed run repeats no line.

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()

    def add(self, epoch: int, step: int, ids: Sequence[str]) -> None:
        """Write the line of a step at once, before the checkpoint of the step."""
        if self._file:
            self._file.write(f"{epoch}\t{step}\t{' '.join(ids)}\n")
            self._file.flush()
