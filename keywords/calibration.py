"""A streamed model, recordings and allowed false alarms in; a threshold, and what it brings elsewhere, out.

Recordings without the keyword are split in halves: the threshold is chosen on one, judged on the other.
Without them it is chosen on a recording of synthetic voices, and judged on one of other voices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.keyword.detections import (
    OperatingPoint,
    SpokenKeyword,
    calibrated,
    operating_point,
    read_spoken_keywords,
)
from keywords.backgrounds import Sound, hear, hear_halves
from keywords.listening import Listener
from streaming.keyword.detection import Detection
from utils.errors import AudioError

THRESHOLDS = (*(percent / 100 for percent in range(5, 100)), 0.995, 0.998, 0.999, 0.9995, 0.9999)


@dataclass(frozen=True)
class Calibration:
    """A threshold and its proof.

    Attributes:
        chosen: the point on the sound that the threshold was chosen on, of ``chosen_hours``.
        points: of all thresholds, in rising order: misses of the test voices, false alarms of ``hours`` of
            sound that nothing was chosen on.
        judged: the point of the chosen threshold.
        heard: in the recording of test voices, of ``stream_hours``, at that threshold.
        said: all that was said there: the keyword, and other things by their kind.
    """

    chosen: OperatingPoint
    chosen_hours: float
    points: tuple[OperatingPoint, ...]
    judged: OperatingPoint
    hours: float
    heard: tuple[Detection, ...]
    said: tuple[SpokenKeyword, ...]
    stream_hours: float

    def said_only(self, keyword: str) -> list[SpokenKeyword]:
        """When the keyword was said."""
        return only(self.said, keyword)


def calibrate(
    listener: Listener,
    keyword: str,
    alarms_per_hour: float,
    test: Path,
    dev: Path | None = None,
    recordings: Sequence[Path] = (),
) -> Calibration:
    """Choose a threshold.

    Args:
        listener: the model.
        keyword: its label.
        alarms_per_hour: allowed false alarms.
        test: folder with ``stream.flac`` and ``said.tsv`` of test voices.
        dev: the same of other voices, where there are no recordings.
        recordings: without the keyword.

    Raises:
        CorpusError: no threshold keeps to so few alarms.
        AudioError: a recording can't be read, or they are too short for two halves.
    """
    said = read_spoken_keywords(test / "said.tsv")
    tested = hear(listener, [test / "stream.flac"])
    misses = _points(listener, tested, only(said, keyword))
    if recordings:
        chosen_on, judged_on = hear_halves(listener, recordings)
        if not (chosen_on.seconds and judged_on.seconds):
            hint = "give hours of them: one recording of a minute at the least, or two short ones"
            raise AudioError("too little background to keep two halves apart", hint=hint)
        candidates, alarms = _points(listener, chosen_on, []), _points(listener, judged_on, [])
    else:
        assert dev is not None, "recordings, or a stream of dev voices"
        chosen_on, judged_on = hear(listener, [dev / "stream.flac"]), tested
        candidates = _points(listener, chosen_on, only(read_spoken_keywords(dev / "said.tsv"), keyword))
        alarms = misses
    chosen = calibrated(candidates, alarms_per_hour)
    points = tuple(
        replace(one, false_alarms_per_hour=other.false_alarms_per_hour, false_alarms=other.false_alarms)
        for one, other in zip(misses, alarms, strict=True)
    )
    return Calibration(
        chosen,
        chosen_on.hours,
        points,
        points[THRESHOLDS.index(chosen.threshold)],
        judged_on.hours,
        tuple(tested.detections(listener, chosen.threshold)),
        tuple(said),
        tested.hours,
    )


def only(said: Sequence[SpokenKeyword], keyword: str) -> list[SpokenKeyword]:
    """What was said of one keyword."""
    return [one for one in said if one.keyword == keyword]


def _points(listener: Listener, sound: Sound, said: Sequence[SpokenKeyword]) -> list[OperatingPoint]:
    """What each threshold brings, in rising order."""
    return [operating_point(one, sound.detections(listener, one), said, sound.hours) for one in THRESHOLDS]
