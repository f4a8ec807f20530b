"""Remembers in an output folder which transcripts are finished, so that a repeated command skips them.

The file ``.transcribed.jsonl`` has a line of JSON for each transcript, with the recording, the settings it
was made with and its content: ``[transcript, recording, size, modified, settings, content]``. The line is
appended before the transcript gets its name. Even after a kill, a file without a line is therefore not of
this program, and a transcript with another content was edited. Neither is overwritten.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from utils.errors import TranscriptError
from utils.files import replacing
from utils.run_folder.checksum_files import file_hash

MARKS = ".transcribed.jsonl"
_ENCODING = ("utf-8", "surrogateescape")  # names of files need not be UTF-8
_HINT = "choose another --output folder, or move or delete this file"


@dataclass(frozen=True)
class Mark:
    """The recording and settings of a transcript.

    Attributes:
        recording: absolute path.
        size: size of the recording in bytes.
        modified: time of the last change, in nanoseconds since the epoch.
        settings: a digest of everything except the recording that determines the transcript.
        content: SHA-256 of the transcript.
    """

    recording: str
    size: int
    modified: int
    settings: str
    content: str


class TranscriptMarks:
    """The marks of one output folder.

    Args:
        folder: folder of the transcripts; need not exist yet.
        settings: settings of this call that determine the transcripts, as plain values.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        self._folder, self._file = folder, folder / MARKS
        text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
        self._settings = sha256(text.encode(*_ENCODING)).hexdigest()[:16]
        self._marks = _read(self._file)

    def is_finished(self, transcript: Path, recording: Path) -> bool:
        """Whether a transcript of the unchanged recording with the same settings exists.

        Raises:
            TranscriptError: the transcript would replace a file of another origin, the transcript of another
                recording, or an edited one.
        """
        if not os.path.lexists(transcript):
            return False
        mark = self._mark_of_content(transcript)
        known = mark or self._last_mark(transcript)
        if known is None:
            raise self._refusal(transcript)
        if not recording.is_file():
            return False
        now = self._mark(recording, known.content)
        if known.recording != now.recording and not _is_moved(known, now):
            message = f"{transcript} is the transcript of {known.recording}, not of {recording}"
            raise TranscriptError(message, hint=_HINT)
        if (known.size, known.modified, known.settings) == (now.size, now.modified, now.settings):
            return True
        if mark is None:
            raise self._refusal(transcript)
        return False

    def write(self, transcript: Path, recording: Path, texts: Iterable[str]) -> None:
        """Write a transcript, completely or not at all, and record that it is finished.

        Args:
            transcript: the file.
            recording: the file of the recording.
            texts: the parts of the transcript; errors that they raise leave no file.

        Raises:
            TranscriptError: another program has made or changed the file in the meantime.
            OSError: the file can't be written.
        """
        with replacing(transcript) as temporary:
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(texts)
            if os.path.lexists(transcript) and not self._mark_of_content(transcript):
                self._marks = _read(self._file)  # another process may write into the same folder
                if not self._mark_of_content(transcript):
                    raise self._refusal(transcript)
            self._add(transcript, self._mark(recording, file_hash(temporary)))

    def _mark_of_content(self, transcript: Path) -> Mark | None:
        """The mark of an existing transcript as it is now; None if there is none, or it was edited.

        After a kill this need not be the last mark, whose transcript may not have got its name.
        """
        content = file_hash(transcript) if transcript.is_file() else None
        marks = reversed(self._marks.get(self._name(transcript), []))
        return next((mark for mark in marks if mark.content == content), None)

    def _last_mark(self, transcript: Path) -> Mark | None:
        marks = self._marks.get(self._name(transcript))
        return marks[-1] if marks else None

    def _refusal(self, transcript: Path) -> TranscriptError:
        """The error of a file that has no mark of its content."""
        if self._last_mark(transcript):
            message = "this transcript was edited after transcribe.py had written it"
        else:
            message = "this file was not written by transcribe.py"
        return TranscriptError(f"{message}; it would be replaced", where=transcript, hint=_HINT)

    def _add(self, transcript: Path, mark: Mark) -> None:
        name = self._name(transcript)
        self._marks.setdefault(name, []).append(mark)
        line = json.dumps([name, *astuple(mark)], ensure_ascii=False)
        with self._file.open("a+b") as file:
            # A killed process may have left an incomplete line.
            complete = file.tell() == 0 or _last_byte(self._file) == b"\n"
            file.write((b"" if complete else b"\n") + line.encode(*_ENCODING) + b"\n")
            file.flush()
            os.fsync(file.fileno())  # a power failure must not keep the transcript without its mark

    def _name(self, transcript: Path) -> str:
        return transcript.relative_to(self._folder).as_posix()

    def _mark(self, recording: Path, content: str) -> Mark:
        status = recording.stat()
        return Mark(str(recording.resolve()), status.st_size, status.st_mtime_ns, self._settings, content)


def text_hash(path: Path | None) -> str:
    """SHA-256 of a text on which transcripts depend; of an empty one for None."""
    text = path.read_text(encoding="utf-8", errors="replace") if path else ""
    return sha256(text.encode()).hexdigest()


def weights_state(run: Path) -> list[list[Any]]:
    """Name, size and time (ns) of each file in a run folder that determines a transcript, sorted by name."""
    found = sorted(
        path
        for path in run.glob("*")
        if path.suffix in (".h5", ".npz", ".onnx", ".yaml") or path.name == "confidence.json"
    )
    return [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in found]


def _is_moved(before: Mark, now: Mark) -> bool:
    """Whether a recording was moved: its old path is gone, size and time are the same."""
    same = (before.size, before.modified) == (now.size, now.modified)
    return same and not Path(before.recording).exists()


def _read(path: Path) -> dict[str, list[Mark]]:
    """The marks of each transcript in their order."""
    marks: dict[str, list[Mark]] = {}
    with suppress(FileNotFoundError):
        for line in (raw.decode(*_ENCODING) for raw in path.read_bytes().splitlines()):
            with suppress(ValueError, TypeError):  # the incomplete line of a killed process
                name, *values = json.loads(line)
                marks.setdefault(name, []).append(Mark(*values))
    return marks


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1)
