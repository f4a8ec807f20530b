"""Writes the transcript of live audio while it is recognised: each utterance is in a file when it ends.

Until the audio ends, the file is called ``microphone.partial.txt``. A killed process leaves it; it is never
removed or replaced. The counts at the beginning of a TextGrid are known only at the end: until then, its file
is empty.
"""

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from utils.errors import AudioError, TranscriptError
from utils.files import named_errors
from utils.hypotheses.recognition import Ending, Segment
from utils.hypotheses.transcript_formats import Events, TranscriptFormat

_HINT = "choose another --output folder, or move or delete this file"


def partial_path(transcript: Path) -> Path:
    """The file of a live transcript until its audio ends: ``microphone.partial.txt``."""
    return transcript.with_suffix(f".partial{transcript.suffix}")


def require_new_live_transcript(transcript: Path) -> None:
    """Check that a live transcript would replace no file: its audio is not that of an earlier call.

    Raises:
        TranscriptError: the transcript exists, or its partial file, which a killed call has left.
    """
    for path in (transcript, partial_path(transcript)):
        if os.path.lexists(path):
            message = "this file exists, and live audio is not that of an earlier call"
            raise TranscriptError(message, where=path, hint=_HINT)


def write_live_transcript(transcript: Path, form: TranscriptFormat, name: str, events: Events) -> None:
    """Write a transcript while its audio is recognised; the file gets its name when the audio ends.

    Args:
        transcript: the file; it is not made if the audio fails before its first segment.
        form: the format.
        name: of the audio.
        events: of the audio.

    Raises:
        AudioError: the audio has failed; what was recognised before is in the file that the error names.
        TranscriptError: another program has made the file in the meantime.
        OSError: the file can't be written.
    """
    events = iter(events)
    first = next(events)
    if isinstance(first, Ending) and first.error:
        raise first.error
    partial, errors = partial_path(transcript), []
    partial.parent.mkdir(parents=True, exist_ok=True)
    # Each segment ends a line, which line buffering writes at once.
    with named_errors(partial), partial.open("x", encoding="utf-8", newline="\n", buffering=1) as file:
        file.writelines(form.write(name, _until_error(chain([first], events), errors)))
    if os.path.lexists(transcript):
        message = f"another program has made this file; the transcript is in {partial}"
        raise TranscriptError(message, where=transcript, hint="rename one of the two files")
    partial.rename(transcript)
    for error in errors:
        message = f"{error.message}; what was recognised before is in {transcript}"
        raise AudioError(message, where=error.where, hint=error.hint) from error


def _until_error(events: Events, errors: list[AudioError]) -> Iterator[Segment | Ending]:
    """The same events; the error of the audio, if there is one, is added to ``errors``."""
    for event in events:
        if isinstance(event, Ending) and event.error:
            errors.append(event.error)
        yield event
