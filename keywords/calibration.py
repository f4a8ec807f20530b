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
    read_spoken_keywords,
)
from keywords.backgrounds import THRESHOLDS, stream_halves, stream_recordings
from keywords.listening import Listener
from streaming.keyword import Detection
from utils.errors import CorpusError


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
    misses = tested.operating_points(listener, of_keyword(spoken, keyword), THRESHOLDS)
    if recordings:
        chosen_on, evaluated_on = stream_halves(listener, recordings)
        candidates = chosen_on.operating_points(listener, [], THRESHOLDS)
        alarms = evaluated_on.operating_points(listener, [], THRESHOLDS)
    else:
        assert dev is not None, "recordings, or a stream of dev voices"
        chosen_on, evaluated_on = stream_recordings(listener, [dev / "stream.flac"]), tested
        of_dev = of_keyword(read_spoken_keywords(dev / "spoken.tsv"), keyword)
        candidates = chosen_on.operating_points(listener, of_dev, THRESHOLDS)
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
