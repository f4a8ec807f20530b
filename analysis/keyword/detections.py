"""Keywords heard and keywords said in a long recording → hits, misses, false alarms, and their trade-off.

What the literature of keyword spotting calls false reject rate and false alarms per hour; drawn against each
other over all thresholds they are its detection error trade-off (Martin et al., "The DET curve in assessment
of detection task performance", Eurospeech 1997), on a linear axis of alarms an hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from data.manifest import read_rows
from utils.errors import CorpusError

LATE_SECONDS = 1.0
"""A keyword may fire so long after its end: the smoothing's delay, and a window that it still stands in."""
COLUMNS = ("start", "end", "keyword")


@dataclass(frozen=True)
class Spoken:
    """A keyword that was said, in seconds since the recording's start."""

    start: float
    end: float
    keyword: str


class Heard(Protocol):
    """A keyword that a detector heard."""

    seconds: float
    keyword: str


@dataclass(frozen=True)
class Matched:
    """What became of what was said.

    Attributes:
        hits: index of what was heard for each keyword said; None: missed.
        false_alarms: indices of what was heard and not said (or said once and heard twice).
    """

    hits: tuple[int | None, ...]
    false_alarms: tuple[int, ...]

    @property
    def misses(self) -> int:
        """Keywords said that nobody heard."""
        return self.hits.count(None)


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and what it brings.

    Attributes:
        false_reject_rate: share of the keywords said that were missed; 0 when none was said.
        false_alarms_per_hour: of recording.
    """

    threshold: float
    false_reject_rate: float
    false_alarms_per_hour: float
    said: int
    missed: int
    false_alarms: int


def read_spoken(path: str | Path) -> list[Spoken]:
    """Read what was said when: a TSV with the header ``start end keyword``, in seconds.

    Raises:
        CorpusError: naming file and line.
    """
    rows = read_rows(path)
    if not rows or tuple(rows[0][1]) != COLUMNS:
        hint = f"the first line is {' '.join(COLUMNS)}, separated by tabs; times in seconds"
        raise CorpusError("this is no list of spoken keywords", where=f"{path}:1", hint=hint)
    return [_spoken(fields, f"{path}:{line}") for line, fields in rows[1:]]


def match(heard: Sequence[Heard], said: Sequence[Spoken], late_seconds: float = LATE_SECONDS) -> Matched:
    """Give each keyword said the first time it was heard from its start to ``late_seconds`` after its end."""
    hits: list[int | None] = [None] * len(said)
    false_alarms = []
    for index, detection in enumerate(heard):
        candidates = (
            number
            for number, one in enumerate(said)
            if hits[number] is None
            and one.keyword == detection.keyword
            and one.start <= detection.seconds <= one.end + late_seconds
        )
        number = next(candidates, None)
        if number is None:
            false_alarms.append(index)
        else:
            hits[number] = index
    return Matched(tuple(hits), tuple(false_alarms))


def operating_point(
    threshold: float, heard: Sequence[Heard], said: Sequence[Spoken], hours: float
) -> OperatingPoint:
    """What a threshold brings.

    Args:
        threshold: at which ``heard`` was heard.
        heard: by the detector.
        said: what was said.
        hours: length of the recording.
    """
    matched = match(heard, said)
    return OperatingPoint(
        threshold,
        matched.misses / len(said) if said else 0.0,
        len(matched.false_alarms) / hours,
        len(said),
        matched.misses,
        len(matched.false_alarms),
    )


def calibrated(points: Sequence[OperatingPoint], alarms_per_hour: float) -> OperatingPoint:
    """The lowest threshold above which no point has more than so many false alarms an hour.

    Raises:
        CorpusError: even the highest threshold has more; what can be reached is said.
    """
    allowed = None
    for point in sorted(points, key=lambda point: -point.threshold):
        if point.false_alarms_per_hour > alarms_per_hour:
            break
        allowed = point
    if allowed is None:
        best = min(points, key=lambda point: point.false_alarms_per_hour)
        what = (
            f"no threshold keeps to {alarms_per_hour:g} false alarms an hour: at {best.threshold:g} there "
            f"are {best.false_alarms_per_hour:.2f}"
        )
        raise CorpusError(what, hint="train on more negatives, or allow more alarms")
    return allowed


def _spoken(fields: Sequence[str], where: str) -> Spoken:
    try:
        start, end, keyword = float(fields[0]), float(fields[1]), fields[2]
    except (ValueError, IndexError):
        raise CorpusError(
            "not a start, an end and a keyword", where=where, hint="seconds, with tabs"
        ) from None
    if not 0 <= start < end < float("inf"):
        raise CorpusError(f"from {start:g} to {end:g} s is no stretch of time", where=where)
    return Spoken(start, end, keyword)
