"""Shows the syllables of live audio while they are spoken, and writes its transcript while it is recognised.

:class:`LiveText` prints a line that grows or is revised in place. Until the audio ends, the transcript is
called ``microphone.partial.txt``. A killed process leaves it; it is never removed or replaced. The counts at
the beginning of a TextGrid are known only at the end: until then, its file is empty.
"""

import os
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

from utils.errors import AudioError, TranscriptError
from utils.files import named_errors
from utils.hypotheses.recognition import Ending, Recognition
from utils.hypotheses.transcript_formats import Events, TranscriptFormat

_CLEAR = "\r\x1b[K"  # moves to the beginning of the line and erases it


class LiveText:
    """Shows the syllables of an utterance while it is spoken.

    A terminal shows each partial result in place of the one before; of a long one only the end, which fits
    into the line. Elsewhere (a file, a pipe) a line grows by syllables that will probably stay, and ends as
    the segment has them.
    """

    def __init__(self, out: TextIO):
        self._out, self._in_place = out, out.isatty()
        self._written: tuple[str, ...] = ()  # syllables of the current line, if it is not a terminal

    def show(self, event: Recognition) -> None:
        """Show a partial result, or the final one of an utterance."""
        ended = event.is_final or not event.pinyin  # without syllables: withdrawn
        if self._in_place:
            text = "" if ended else _last_columns(" ".join(event.pinyin))
            self._out.write(_CLEAR + text)
        elif ended:
            self._end(event.pinyin)
        else:
            self._append(event.pinyin[: event.stable])
        self._out.flush()

    def _append(self, pinyin: tuple[str, ...]) -> None:
        for syllable in pinyin[len(self._written) :]:
            self._out.write(f"{syllable} ")
        self._written += pinyin[len(self._written) :]

    def _end(self, pinyin: tuple[str, ...]) -> None:
        """A line with the syllables of the segment; a new one if other syllables were written already."""
        if self._written != pinyin[: len(self._written)]:
            self._out.write("\n")
            self._written = ()
        self._append(pinyin)
        if self._written:
            self._out.write("\n")
        self._written = ()


def _last_columns(text: str) -> str:
    columns = shutil.get_terminal_size().columns - 1
    return text if len(text) <= columns else "…" + text[1 - columns :]


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
    partial = partial_path(transcript)
    errors: list[AudioError] = []
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


def _until_error(events: Events, errors: list[AudioError]) -> Iterator[Recognition | Ending]:
    """The same events; the error of the audio, if there is one, is added to ``errors``."""
    for event in events:
        if isinstance(event, Ending) and event.error:
            errors.append(event.error)
        yield event
