"""Cuts a request to convert pinyin into tasks of a few lines, each with the time that it is expected to take.

A worker can't be interrupted within a task. Lines are converted independently of each other, so a text is cut
between them. A line is not cut, because it decides as a whole how a syllable without a tone is read.
"""

from collections.abc import Iterator
from dataclasses import replace

from serving.errors import RequestError
from serving.work.fair_queue import Task
from serving.work.models import ConvertJob
from utils.mandarin.typed_pinyin import read_line

SPEED = 10.0
"""Assumed seconds of audio that a worker recognises in a second."""
LONGEST_LINE = 500
"""Syllables of a line: a worker converts them within a few seconds."""
_TASK_SYLLABLES = 100  # of several lines together
_SYLLABLE_SECONDS = 0.006  # to convert one with reasons, also with a second pass
_RECOGNISED_FACTOR = 1.5  # how much longer it takes if errors are corrected


def conversion_tasks(job: ConvertJob) -> list[Task]:
    """The tasks of a request, in the order of its lines.

    Raises:
        RequestError: a line has too many syllables.
    """
    counts = [_syllables(line) for line in job.lines]
    for number, count in enumerate(counts, start=1):
        if count > LONGEST_LINE:
            raise RequestError(
                400,
                f"line {number} has {count:,} syllables; {LONGEST_LINE} are the most",
                hint="begin a new line after each sentence",
                param="text",
            )
    syllable = SPEED * _SYLLABLE_SECONDS * (_RECOGNISED_FACTOR if job.recognised else 1.0)
    return [
        Task(
            replace(job, lines=job.lines[first:end], first_number=first + 1),
            0.1 + syllable * sum(counts[first:end]),
        )
        for first, end in _blocks(counts)
    ]


def _syllables(line: str) -> int:
    return sum(len(piece.readings[0]) for piece in read_line(line) if piece.readings)


def _blocks(counts: list[int]) -> Iterator[tuple[int, int]]:
    """First line and end of each task: as many lines as have few syllables together, or one long line."""
    first = syllables = 0
    for number, count in enumerate(counts):
        if number > first and syllables + count > _TASK_SYLLABLES:
            yield first, number
            first, syllables = number, 0
        syllables += count
    yield first, len(counts)
