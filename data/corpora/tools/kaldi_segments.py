"""Cuts long recordings into separate files, one for each line of Kaldi's ``segments`` file.

A manifest lists whole files, so each segment is written to ``RECORDING/SEGMENT_FROM_TO.wav`` (milliseconds),
mono, 16 bit, at the rate of the recording. An existing file that is not older than its recording is kept, so
that an interrupted run continues; other times in ``segments`` give another file name.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np

from data.corpora.tools.preparation import Problem
from data.corpora.tools.transcripts import utf8_lines
from utils.audio.decoding import open_sound
from utils.audio.reading import mix
from utils.audio.samples import write_wav
from utils.errors import AudioError

# Seconds that a segment may exceed the end of its recording, as in Kaldi's extract-segments; with more it is
# rejected.
MAX_OVERSHOOT = 0.5
_TO_THE_END = -1.0  # an end that stands for the end of the recording
_LONGEST_NAME = 200  # bytes; a segment with a longer file name is rejected (file systems allow 255)


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
    """Write the segments of one recording, which is read once; in memory is one segment at a time.

    Args:
        audio: the recording; several channels are mixed.
        segments: its segments, without those that have a problem.
        folder: where the files are written.

    Returns:
        The id of each segment → its file, or why there is none.

    Raises:
        OSError: a file can't be written.
    """
    files = {segment.id: folder / _file_name(segment) for segment in segments}
    results: dict[str, Path | Problem] = {
        name: file for name, file in files.items() if _is_current(file, audio)
    }
    new = sorted((s for s in segments if s.id not in results), key=lambda segment: segment.start)
    try:
        if new:
            with open_sound(audio) as sound:
                for segment, samples, end in _samples_of(new, map(mix, sound.blocks), sound.rate):
                    results[segment.id] = _written(files[segment.id], segment, samples, end, sound.rate)
    except AudioError as error:
        problem = Problem("the segment's recording can't be read", f"{audio}: {error.message}")
        return {segment.id: results.get(segment.id, problem) for segment in segments}
    return results


def _samples_of(
    segments: Sequence[KaldiSegment], blocks: Iterator[np.ndarray], rate: int
) -> Iterator[tuple[KaldiSegment, np.ndarray, int]]:
    """Each segment, its samples, and how many samples of the recording were read: all if some are missing.

    Args:
        segments: sorted by their start.
        blocks: (samples,) of the recording.
        rate: Hz.
    """
    held, position = np.zeros(0, np.float32), 0  # samples, and where the first of them is in the recording
    for segment in segments:
        first, last = round(segment.start * rate), round(segment.end * rate)
        if segment.end == _TO_THE_END:
            last = sys.maxsize
        while True:
            skipped = min(max(first - position, 0), len(held))
            held, position = held[skipped:], position + skipped
            block = next(blocks, None) if position + len(held) < last else None
            if block is None:
                break
            held = np.concatenate([held, block])
        yield segment, held[max(first - position, 0) : last - position], position + len(held)


def _written(file: Path, segment: KaldiSegment, samples: np.ndarray, end: int, rate: int) -> Path | Problem:
    """The file of the segment, written from its samples; ``end``: samples of the recording that were read."""
    if not len(samples) or segment.end > end / rate + MAX_OVERSHOOT:
        detail = f"{segment.start} to {segment.end} s, {segment.recording} has {end / rate:.3f} s"
        return Problem("segment exceeds the end of its recording", detail)
    write_wav(file, samples, rate)
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
