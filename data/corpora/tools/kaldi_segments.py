"""Cuts long recordings into separate files, one for each line of Kaldi's ``segments`` file.

A manifest lists whole files, so each segment is written to ``RECORDING/SEGMENT_FROM_TO.wav`` (milliseconds),
mono, 16 bit, at the rate of the recording. An existing file that is not older than its recording is kept, so
that an interrupted run continues; other times in ``segments`` give another file name.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import soundfile

from data.corpora.tools.preparation import Problem
from data.corpora.tools.transcripts import utf8_lines
from utils.audio.reading import audio_seconds, write_wav
from utils.errors import AudioError

# Seconds that a segment may exceed the end of its recording, as in Kaldi's extract-segments; with more it is
# rejected.
MAX_OVERSHOOT = 0.5
_TO_THE_END = -1.0  # an end that stands for the end of the recording
_LONGEST_NAME = 200  # bytes; a segment with a longer file name is rejected (file systems allow 255)
_LOUDEST = 64.0  # a segment with a larger float sample is rejected: integers stored without scaling


@dataclass(frozen=True)
class KaldiSegment:
    """A line of ``segments``.

    Attributes:
        id: id of the utterance.
        recording: id of the recording.
        start: start of the segment, in seconds.
        end: end of the segment, in seconds; -1 for the end of the recording.
        problem: what is wrong with the line; start and end are then 0.
    """

    id: str
    recording: str
    start: float = 0.0
    end: float = 0.0
    problem: Problem | None = None


def read_segments(path: Path) -> Iterator[KaldiSegment]:
    """Read the lines of a ``segments`` file, ``UTTERANCE RECORDING START END``.

    Raises:
        CorpusError: the file can't be read.
    """
    for number, line, readable in utf8_lines(path):
        fields = line.split()
        where = f"{path.name}:{number}"
        name, recording = (*fields, "", "")[:2]
        if len(fields) != 4 or not readable:
            problem = Problem("not a line of segments", f"{where}: UTTERANCE RECORDING START END expected")
            yield KaldiSegment(name, recording, problem=problem)
            continue
        start, end = map(_seconds, fields[2:])
        problem = None
        if not (start >= 0 and (end > start or end == _TO_THE_END)):  # rejects NaN too
            problem = Problem("not a valid start and end", f"{where}: {fields[2]} to {fields[3]}")
        elif max(map(len, _file_name(KaldiSegment(name, recording, start, end)).parts)) > _LONGEST_NAME:
            problem = Problem("segment's name is too long for a file", where)
        if problem:
            start, end = 0.0, 0.0
        yield KaldiSegment(name, recording, start, end, problem)


def cut_segments(audio: Path, segments: Sequence[KaldiSegment], folder: Path) -> dict[str, Path | Problem]:
    """Write the segments of one recording, one at a time to save memory.

    Args:
        audio: the recording; several channels are averaged.
        segments: its segments, without those that have a problem.
        folder: where the files are written.

    Returns:
        The id of each segment → its file, or why there is none.

    Raises:
        OSError: a file can't be written.
    """
    results: dict[str, Path | Problem] = {}
    try:
        length = audio_seconds(audio)
        with soundfile.SoundFile(audio) as recording:
            for segment in sorted(segments, key=lambda segment: segment.start):
                results[segment.id] = _cut(recording, length, segment, folder / _file_name(segment))
    except (AudioError, soundfile.SoundFileError) as error:
        reason = error.message if isinstance(error, AudioError) else str(error)
        problem = Problem("the segment's recording can't be read", f"{audio}: {reason}")
        return {segment.id: results.get(segment.id, problem) for segment in segments}
    return results


def missing_seconds(audio: Path, segments: Sequence[KaldiSegment], folder: Path) -> float:
    """Estimate how many seconds of a recording :func:`cut_segments` still has to write."""
    new = [segment for segment in segments if not _is_current(folder / _file_name(segment), audio)]
    new = [segment for segment in new if segment.end != _TO_THE_END]
    try:
        length = audio_seconds(audio) if new else 0.0
    except AudioError:  # nothing is cut: cut_segments says why
        return 0.0
    return sum(max(0.0, min(segment.end, length) - segment.start) for segment in new)


def _cut(recording: soundfile.SoundFile, length: float, segment: KaldiSegment, file: Path) -> Path | Problem:
    if segment.start >= length or segment.end > length + MAX_OVERSHOOT:
        detail = f"{segment.start} to {segment.end} s, {segment.recording} has {length:.3f} s"
        return Problem("segment exceeds the end of its recording", detail)
    if _is_current(file, Path(recording.name)):
        return file
    end = length if segment.end == _TO_THE_END else min(segment.end, length)
    first, last = (round(seconds * recording.samplerate) for seconds in (segment.start, end))
    recording.seek(first)
    samples = recording.read(last - first, dtype="float32", always_2d=True)  # (samples, channels)
    if not len(samples) or not np.abs(samples).max() <= _LOUDEST:  # "not": NaN compares as false
        return Problem(
            "segment has no samples, or NaN, or floats not scaled to 1", f"{recording.name} {first}"
        )
    write_wav(file, samples.mean(axis=1), recording.samplerate)
    return file


def _is_current(file: Path, audio: Path) -> bool:
    return file.is_file() and audio.is_file() and file.stat().st_mtime_ns >= audio.stat().st_mtime_ns


def _file_name(segment: KaldiSegment) -> Path:
    """``RECORDING/SEGMENT_FROM_TO.wav``; ids may contain anything but spaces, also ``/`` and ``..``."""
    end = "end" if segment.end == _TO_THE_END else round(segment.end * 1000)
    return Path(_quoted(segment.recording), f"{_quoted(segment.id)}_{round(segment.start * 1000)}_{end}.wav")


def _quoted(name: str) -> str:
    quoted = quote(name, safe="")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


def _seconds(text: str) -> float:
    """Parse a number of seconds; NaN if the text is not a finite number."""
    try:
        seconds = float(text)
    except ValueError:
        return math.nan
    return seconds if math.isfinite(seconds) else math.nan
