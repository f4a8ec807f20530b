"""Which recording each transcript of an output folder is of, and made with what settings; kept in the folder.

A call that goes on where an earlier one stopped asks here what is finished. A line of JSON is appended for
each finished transcript, so that a killed process loses none: ``[transcript, recording, size, …]``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from utils.errors import UserError

MARKS = ".transcribed.jsonl"


@dataclass(frozen=True)
class Mark:
    """What a transcript was made of.

    Attributes:
        recording: its absolute path.
        size: in bytes.
        modified: in nanoseconds since the epoch.
        settings: a digest of all that determines a transcript beside the recording.
    """

    recording: str
    size: int
    modified: int
    settings: str


class TranscriptMarks:
    """The marks of one output folder.

    Args:
        folder: of the transcripts; may not be there yet.
        settings: of this call, as plain values.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        self._folder, self._file = folder, folder / MARKS
        text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
        self._settings = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._marks = _read(self._file)

    def is_finished(self, transcript: Path, recording: Path) -> bool:
        """Whether a transcript is there that was made of this recording, as it is now, with these settings.

        Raises:
            UserError: the transcript that is there is of another recording.
        """
        mark = self._marks.get(self._name(transcript))
        if mark is None or not transcript.is_file() or not recording.is_file():
            return False
        now = self._mark(recording)
        if mark.recording != now.recording and not _is_moved(mark, now):
            what = f"{transcript} is the transcript of {mark.recording}, not of {recording}"
            raise UserError(what, hint="choose another --output, or move the transcript away")
        return (mark.size, mark.modified, mark.settings) == (now.size, now.modified, now.settings)

    def add(self, transcript: Path, recording: Path) -> None:
        """Remember that a transcript of a recording is finished."""
        name, mark = self._name(transcript), self._mark(recording)
        self._marks[name] = mark
        line = json.dumps([name, *astuple(mark)], ensure_ascii=False)
        with self._file.open("a+b") as file:
            # A process that was killed may have left half a line.
            whole = file.tell() == 0 or _last_byte(self._file) == b"\n"
            file.write((b"" if whole else b"\n") + line.encode() + b"\n")

    def _name(self, transcript: Path) -> str:
        return transcript.relative_to(self._folder).as_posix()

    def _mark(self, recording: Path) -> Mark:
        facts = recording.stat()
        return Mark(str(recording.resolve()), facts.st_size, facts.st_mtime_ns, self._settings)


def _is_moved(before: Mark, now: Mark) -> bool:
    """Whether a recording of another path is the same one: it lies there no more, and looks the same."""
    same = (before.size, before.modified) == (now.size, now.modified)
    return same and not Path(before.recording).exists()


def _read(path: Path) -> dict[str, Mark]:
    """The last mark of each transcript; half a line is passed over."""
    marks: dict[str, Mark] = {}
    with contextlib.suppress(FileNotFoundError):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError):
                name, *values = json.loads(line)
                marks[name] = Mark(*values)
    return marks


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1)
