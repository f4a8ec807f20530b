"""Remembers in an output folder which transcripts are finished, so that a repeated command skips them.

The file ``.transcribed.jsonl`` has a line of JSON for each finished transcript, with the recording and the
settings it was made with: ``[transcript, recording, size, modified, settings]``. Lines are appended, so that
a killed process loses none.
"""

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
    """The recording and settings of a transcript.

    Attributes:
        recording: absolute path.
        size: size of the recording in bytes.
        modified: time of the last change, in nanoseconds since the epoch.
        settings: a digest of everything except the recording that determines the transcript.
    """

    recording: str
    size: int
    modified: int
    settings: str


class TranscriptMarks:
    """The marks of one output folder.

    Args:
        folder: folder of the transcripts; need not exist yet.
        settings: settings of this call that determine the transcripts, as plain values.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        self._folder, self._file = folder, folder / MARKS
        text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
        self._settings = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._marks = _read(self._file)

    def is_finished(self, transcript: Path, recording: Path) -> bool:
        """Whether a transcript of the unchanged recording with the same settings exists.

        Raises:
            UserError: there is a transcript of another recording.
        """
        mark = self._marks.get(self._name(transcript))
        if mark is None or not transcript.is_file() or not recording.is_file():
            return False
        now = self._mark(recording)
        if mark.recording != now.recording and not _is_moved(mark, now):
            raise UserError(
                f"{transcript} is the transcript of {mark.recording}, not of {recording}",
                hint="choose another --output, or move the transcript away",
            )
        return (mark.size, mark.modified, mark.settings) == (now.size, now.modified, now.settings)

    def add(self, transcript: Path, recording: Path) -> None:
        """Record that the transcript of a recording is finished."""
        name, mark = self._name(transcript), self._mark(recording)
        self._marks[name] = mark
        line = json.dumps([name, *astuple(mark)], ensure_ascii=False)
        with self._file.open("a+b") as file:
            # A killed process may have left an incomplete line.
            complete = file.tell() == 0 or _last_byte(self._file) == b"\n"
            file.write((b"" if complete else b"\n") + line.encode() + b"\n")

    def _name(self, transcript: Path) -> str:
        return transcript.relative_to(self._folder).as_posix()

    def _mark(self, recording: Path) -> Mark:
        status = recording.stat()
        return Mark(str(recording.resolve()), status.st_size, status.st_mtime_ns, self._settings)


def _is_moved(before: Mark, now: Mark) -> bool:
    """Whether a recording was moved: its old path is gone, size and time are the same."""
    same = (before.size, before.modified) == (now.size, now.modified)
    return same and not Path(before.recording).exists()


def _read(path: Path) -> dict[str, Mark]:
    """The last mark of each transcript; incomplete lines are skipped."""
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
