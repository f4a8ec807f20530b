"""Which recordings a command transcribes, into which files, and which of them it has finished before."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.audio.folders import find_recordings
from utils.errors import UserError
from utils.hypotheses.live import require_new_live_transcript
from utils.hypotheses.transcript_formats import FORMATS
from utils.hypotheses.transcript_marks import TranscriptMarks

PIPE = Path("-")
"""Stands for live audio: standard input, or the microphone."""


@dataclass(frozen=True)
class Job:
    """A recording and the path of its transcript; ``target`` None: standard output."""

    audio: Path
    target: Any

    @property
    def file(self) -> Path | None:
        """The file of the recording; None for live audio."""
        return None if self.audio == PIPE else self.audio


def find_jobs(paths: Iterable[Path], live_name: str, output: Path | None, form: str) -> list[Job]:
    """Find the recordings, and choose the transcript file of each.

    Folders and their subfolders are searched for audio files of formats that can be read; audio files of
    other formats are named.

    Args:
        paths: files, folders and :data:`PIPE`.
        live_name: of the transcript of live audio, without suffix.
        output: folder of the transcripts; None: they are printed.
        form: one of ``FORMATS``.

    Raises:
        UserError: two transcripts would have the same name, or can't be printed one after the other.
    """
    files: dict[
        Path, Path
    ] = {}  # the path of each transcript in the folder, with the suffix of the recording
    for path in paths:
        if path == PIPE:
            files[path] = Path(live_name)
        elif path.is_dir():
            files.update((file, file.relative_to(path)) for file in find_recordings(path))
        else:
            files[path] = Path(path.name)
    if not output:
        if len(files) > 1 and form in ("srt", "vtt", "textgrid"):
            message = "several transcripts of this format can't be printed one after another"
            raise UserError(message, hint=f"give --output DIR for the {len(files)} {form} files")
        return [Job(path, None) for path in files]
    suffix = FORMATS[form].suffix
    # a.wav and a.mp3 in the same folder become a.wav.txt and a.mp3.txt.
    common = Counter(name.with_suffix("") for name in files.values())
    names = {
        path: name.with_suffix(suffix) if common[name.with_suffix("")] == 1 else Path(f"{name}{suffix}")
        for path, name in files.items()
    }
    for name, times in Counter(names.values()).items():
        if times > 1:
            raise UserError(f"{times} files would be written as '{name}'", hint="transcribe them separately")
    return [Job(path, output / name) for path, name in names.items()]


def unfinished_jobs(jobs: Sequence[Job], marks: TranscriptMarks | None) -> list[Job]:
    """The jobs that no earlier call with the same settings and recordings has finished.

    Raises:
        TranscriptError: a transcript would replace another file.
    """
    if marks is None:
        return list(jobs)
    for job in jobs:
        if job.file is None:
            require_new_live_transcript(job.target)
    return [job for job in jobs if job.file is None or not marks.is_finished(job.target, job.file)]
