"""Matches a keyword spotter's detections with the spoken keywords: misses, false alarms, their trade-off.

A detection counts if it comes between the start of its keyword and an allowed delay after its end. The false
reject rate over the false alarms per hour, for all thresholds, is the detection error trade-off of the
literature (Martin et al., "The DET curve in assessment of detection task performance", Eurospeech 1997), here
with a linear axis of alarms per hour. The results are written as tables and as a chart.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from matplotlib.figure import Figure

from data.manifest import read_rows
from utils.errors import CorpusError
from utils.files import replacing, write_json, write_text
from utils.text_table import tsv_table

_MIN_LATE_SECONDS = 1.0  # for spoken times that are not exact
COLUMNS = ("start", "end", "keyword")  # of a list of spoken keywords
# Of trade_off.tsv; ``spoken`` is the number of spoken keywords.
POINT_COLUMNS = (
    "threshold",
    "false_reject_rate",
    "false_alarms_per_hour",
    "spoken",
    "missed",
    "false_alarms",
)


@dataclass(frozen=True)
class SpokenKeyword:
    """A keyword in a recording; times in seconds from the start of the recording."""

    start: float
    end: float
    keyword: str


class DetectedKeyword(Protocol):
    """A keyword that a detector reported."""

    @property
    def seconds(self) -> float:
        """When, since the start of the sound."""

    @property
    def keyword(self) -> str:
        """The label."""


@dataclass(frozen=True)
class Matched:
    """Detections matched with spoken keywords.

    Attributes:
        hits: for each spoken keyword, the index of its detection; None if it was missed.
        false_alarms: indices of the detections without a spoken keyword, or of a second detection of one.
    """

    hits: tuple[int | None, ...]
    false_alarms: tuple[int, ...]

    @property
    def misses(self) -> int:
        """The number of spoken keywords that were not detected."""
        return self.hits.count(None)


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and its error rates.

    Attributes:
        threshold: lowest smoothed probability that is a detection.
        false_reject_rate: fraction of the spoken keywords that were missed; 0 if there are none.
        false_alarms_per_hour: false alarms per hour of the recording.
        spoken: number of spoken keywords.
        missed: number of spoken keywords that were not detected.
        false_alarms: number of detections without a spoken keyword.
    """

    threshold: float
    false_reject_rate: float
    false_alarms_per_hour: float
    spoken: int
    missed: int
    false_alarms: int


def read_spoken_keywords(path: str | Path) -> list[SpokenKeyword]:
    """Read a list of spoken keywords: a TSV with the header ``start end keyword``, times in seconds.

    Raises:
        CorpusError: a line is invalid; the message names file and line.
    """
    rows = read_rows(path)
    if not rows or tuple(rows[0][1]) != COLUMNS:
        raise CorpusError(
            "not a list of spoken keywords",
            where=f"{path}:1",
            hint=f"the first line is {' '.join(COLUMNS)}, separated by tabs; times in seconds",
        )
    return [_spoken_keyword(fields, f"{path}:{line}") for line, fields in rows[1:]]


def late_seconds_of(refractory_ms: float) -> float:
    """How long after the end of a keyword a detection counts as its own: at least a second.

    Args:
        refractory_ms: refractory time of the detector. A keyword stays in the model's window and in the
            average for this time (see :meth:`streaming.keyword.DetectionConfig.for_clip`).
    """
    return max(_MIN_LATE_SECONDS, refractory_ms / 1000)


def match(
    detected: Sequence[DetectedKeyword], spoken: Sequence[SpokenKeyword], late_seconds: float
) -> Matched:
    """Match each spoken keyword with its first detection from its start to ``late_seconds`` after its end."""
    hits: list[int | None] = [None] * len(spoken)
    false_alarms = []
    for index, detection in enumerate(detected):
        candidates = (
            number
            for number, keyword in enumerate(spoken)
            if hits[number] is None
            and keyword.keyword == detection.keyword
            and keyword.start <= detection.seconds <= keyword.end + late_seconds
        )
        number = next(candidates, None)
        if number is None:
            false_alarms.append(index)
        else:
            hits[number] = index
    return Matched(tuple(hits), tuple(false_alarms))


def onset_seconds(
    detected: Sequence[DetectedKeyword], spoken: Sequence[SpokenKeyword], matched: Matched
) -> float:
    """The median time from the start of a spoken keyword to its detection; 0 if none was detected."""
    pairs = zip(matched.hits, spoken, strict=True)
    onsets = [detected[hit].seconds - keyword.start for hit, keyword in pairs if hit is not None]
    return statistics.median(onsets) if onsets else 0.0


def operating_point(
    threshold: float,
    detected: Sequence[DetectedKeyword],
    spoken: Sequence[SpokenKeyword],
    hours: float,
    late_seconds: float,
) -> OperatingPoint:
    """The error rates of a threshold.

    Args:
        threshold: threshold of the detector.
        detected: keywords that the detector reported.
        spoken: keywords in the recording.
        hours: length of the recording.
        late_seconds: see :func:`late_seconds_of`.
    """
    matched = match(detected, spoken, late_seconds)
    return OperatingPoint(
        threshold,
        matched.misses / len(spoken) if spoken else 0.0,
        len(matched.false_alarms) / hours,
        len(spoken),
        matched.misses,
        len(matched.false_alarms),
    )


def calibrated(points: Sequence[OperatingPoint], alarms_per_hour: float) -> OperatingPoint:
    """The lowest threshold above which no point exceeds the allowed false alarms per hour.

    Raises:
        CorpusError: even the highest threshold exceeds them; the message gives the lowest possible rate.
    """
    allowed = None
    for point in sorted(points, key=lambda point: -point.threshold):
        if point.false_alarms_per_hour > alarms_per_hour:
            break
        allowed = point
    if allowed is None:
        best = min(points, key=lambda point: point.false_alarms_per_hour)
        raise CorpusError(
            f"no threshold keeps to {alarms_per_hour:g} false alarms an hour: at {best.threshold:g} there "
            f"are {best.false_alarms_per_hour:.2f}",
            hint="train on more negatives, or allow more alarms",
        )
    return allowed


def _spoken_keyword(fields: Sequence[str], where: str) -> SpokenKeyword:
    try:
        start, end, keyword = float(fields[0]), float(fields[1]), fields[2]
    except (ValueError, IndexError):
        raise CorpusError(
            "not a start, an end and a keyword", where=where, hint="seconds, with tabs"
        ) from None
    if not 0 <= start < end < float("inf"):
        raise CorpusError(f"from {start:g} to {end:g} s is no stretch of time", where=where)
    return SpokenKeyword(start, end, keyword)


def write_detection_report(
    folder: Path,
    points: Sequence[OperatingPoint],
    chosen: OperatingPoint,
    detected: Sequence[DetectedKeyword],
    spoken: Sequence[SpokenKeyword],
    matched: Matched,
    seconds: float,
) -> None:
    """Write ``trade_off.tsv``, ``trade_off.png``, ``detections.tsv``, ``missed.tsv`` and ``detection.json``.

    Args:
        folder: created if it does not exist.
        points: operating points of all thresholds.
        chosen: operating point of the model's own threshold.
        detected: keywords detected at the chosen threshold.
        spoken: keywords in the recording.
        matched: ``detected`` matched with ``spoken``.
        seconds: length of the recording.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = [
        (
            f"{point.threshold:.4f}",
            f"{point.false_reject_rate:.4f}",
            f"{point.false_alarms_per_hour:.3f}",
            point.spoken,
            point.missed,
            point.false_alarms,
        )
        for point in points
    ]
    write_text(folder / "trade_off.tsv", tsv_table(POINT_COLUMNS, figures))
    with replacing(folder / "trade_off.png") as temporary:
        trade_off_figure(points, chosen).savefig(temporary, format="png", dpi=110)
    judgements = ["false alarm" if n in matched.false_alarms else "hit" for n in range(len(detected))]
    hits = [
        (f"{keyword.seconds:.2f}", keyword.keyword, judgement)
        for keyword, judgement in zip(detected, judgements, strict=True)
    ]
    write_text(folder / "detections.tsv", tsv_table(("seconds", "keyword", "judgement"), hits))
    missed = [
        (f"{keyword.start:.2f}", f"{keyword.end:.2f}", keyword.keyword)
        for keyword, hit in zip(spoken, matched.hits, strict=True)
        if hit is None
    ]
    write_text(folder / "missed.tsv", tsv_table(COLUMNS, missed))
    write_json(folder / "detection.json", {"seconds": seconds, **asdict(chosen)})


def trade_off_figure(points: Sequence[OperatingPoint], chosen: OperatingPoint) -> Figure:
    """False reject rate over false alarms an hour, with the chosen threshold marked."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    ordered = sorted(points, key=lambda point: point.threshold)
    alarms = [point.false_alarms_per_hour for point in ordered]
    axes.plot(alarms, [100 * point.false_reject_rate for point in ordered], marker=".")
    axes.plot([chosen.false_alarms_per_hour], [100 * chosen.false_reject_rate], "o", markersize=9)
    axes.annotate(
        f"threshold {chosen.threshold:.2f}",
        (chosen.false_alarms_per_hour, 100 * chosen.false_reject_rate),
        textcoords="offset points",
        xytext=(8, 8),
    )
    axes.set_xscale("symlog", linthresh=1)  # shows 0 as well as 1,000 alarms
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("false alarms an hour")
    axes.set_ylabel("false rejects, % of the spoken keywords")
    axes.grid(alpha=0.3)
    return figure
