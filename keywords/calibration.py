"""Chooses the threshold of a streamed keyword model for an allowed number of false alarms per hour.

Recordings without the keyword are split in halves: the threshold is chosen on one and evaluated on the other.
Without recordings it is chosen on speech of synthetic voices, and evaluated on other synthetic voices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.keyword.detections import (
    OperatingPoint,
    SpokenKeyword,
    calibrated,
    late_seconds_of,
    operating_point,
    read_spoken_keywords,
)
from keywords.backgrounds import StreamOutputs, stream_halves, stream_recordings
from keywords.listening import Listener
from streaming.keyword import Detection
from utils.errors import CorpusError

# Thresholds that are tried, from 0.05 on.
THRESHOLDS = (*(percent / 100 for percent in range(5, 100)), 0.995, 0.998, 0.999, 0.9995, 0.9999)


@dataclass(frozen=True)
class ChosenThreshold:
    """A threshold and its error rates.

    Attributes:
        chosen: operating point on the sound that the threshold was chosen on.
        chosen_hours: duration of that sound.
        points: operating points of all thresholds, in rising order: misses in the recording of the test
            voices, false alarms in other sound that was not used for the choice.
        evaluated: operating point of the chosen threshold, one of ``points``.
        hours: duration of the audio for the false alarms in ``points``.
        detections: detections in the recording of the test voices, at the chosen threshold.
        spoken: what the test voices say: the keyword, and other words by their kind.
        stream_hours: duration of the recording of the test voices.
    """

    chosen: OperatingPoint
    chosen_hours: float
    points: tuple[OperatingPoint, ...]
    evaluated: OperatingPoint
    hours: float
    detections: tuple[Detection, ...]
    spoken: tuple[SpokenKeyword, ...]
    stream_hours: float


def calibrate(
    listener: Listener,
    keyword: str,
    alarms_per_hour: float,
    test: Path,
    dev: Path | None = None,
    recordings: Sequence[Path] = (),
) -> ChosenThreshold:
    """Choose a threshold.

    Args:
        listener: the model.
        keyword: label of the keyword.
        alarms_per_hour: allowed false alarms per hour.
        test: folder with ``stream.flac`` and ``spoken.tsv`` of test voices.
        dev: the same of other voices, if there are no recordings.
        recordings: background without the keyword.

    Raises:
        CorpusError: the test voices never say the keyword, or all thresholds have more false alarms than
            allowed.
        AudioError: a recording cannot be read.
    """
    spoken = spoken_by_test_voices(test, keyword)
    tested = stream_recordings(listener, [test / "stream.flac"])
    misses = _points(listener, tested, of_keyword(spoken, keyword))
    if recordings:
        chosen_on, evaluated_on = stream_halves(listener, recordings)
        candidates, alarms = _points(listener, chosen_on, []), _points(listener, evaluated_on, [])
    else:
        assert dev is not None, "recordings, or a stream of dev voices"
        chosen_on, evaluated_on = stream_recordings(listener, [dev / "stream.flac"]), tested
        of_dev = of_keyword(read_spoken_keywords(dev / "spoken.tsv"), keyword)
        candidates = _points(listener, chosen_on, of_dev)
        alarms = misses
    chosen = calibrated(candidates, alarms_per_hour)
    points = tuple(
        replace(missed, false_alarms_per_hour=point.false_alarms_per_hour, false_alarms=point.false_alarms)
        for missed, point in zip(misses, alarms, strict=True)
    )
    return ChosenThreshold(
        chosen,
        chosen_on.hours,
        points,
        points[THRESHOLDS.index(chosen.threshold)],
        evaluated_on.hours,
        tuple(tested.detections(listener, chosen.threshold)),
        tuple(spoken),
        tested.hours,
    )


def spoken_by_test_voices(test: Path, keyword: str) -> list[SpokenKeyword]:
    """What the test voices say in the recording of a folder: the keyword, and other words by their kind.

    Raises:
        CorpusError: they never say the keyword.
    """
    spoken = read_spoken_keywords(test / "spoken.tsv")
    if not of_keyword(spoken, keyword):
        raise CorpusError(
            f"the recording of the test voices does not contain '{keyword}': its recall is unknown",
            where=test,
            hint="a longer recording (--hours) contains it more often",
        )
    return spoken


def of_keyword(spoken: Sequence[SpokenKeyword], keyword: str) -> list[SpokenKeyword]:
    """The occurrences of one keyword."""
    return [occurrence for occurrence in spoken if occurrence.keyword == keyword]


def _points(
    listener: Listener, sound: StreamOutputs, spoken: Sequence[SpokenKeyword]
) -> list[OperatingPoint]:
    """The operating points of all thresholds, in rising order."""
    late = late_seconds_of(listener.detection.refractory_ms)
    return [
        operating_point(threshold, sound.detections(listener, threshold), spoken, sound.hours, late)
        for threshold in THRESHOLDS
    ]
