"""Evaluates a streamed keyword model on a long recording: misses and false alarms at all thresholds.

The model processes the recording once; all thresholds are then evaluated on its outputs.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.keyword.detection_report import write_detection_report
from analysis.keyword.detections import (
    match,
    operating_point,
    read_spoken_keywords,
)
from keywords.backgrounds import stream_recordings
from keywords.listening import open_listener

# Thresholds of the trade-off, from 0.05 on.
THRESHOLDS = (*(percent / 100 for percent in range(5, 100, 5)), 0.97, 0.98, 0.99, 0.995, 0.999)


def recording_results(model: Path, audio: Path, spoken_list: Path | None, folder: Path) -> dict[str, Any]:
    """Evaluate the streamed model of a bundle on a recording.

    Args:
        model: see :func:`keywords.listening.open_listener`.
        audio: a recording of any length.
        spoken_list: the keywords in it (``start end keyword``); None: all detections are false alarms.
        folder: folder for table, picture and detections.

    Returns:
        The error rates at the model's threshold, as plain values.

    Raises:
        BundleError, AudioError, CorpusError: see the message.
    """
    spoken = read_spoken_keywords(spoken_list) if spoken_list else []
    listener = open_listener(model)
    start = time.perf_counter()
    sound = stream_recordings(listener, [audio])
    real_time_factor = (time.perf_counter() - start) / sound.seconds
    chosen = listener.detection.threshold
    points = {
        threshold: operating_point(threshold, sound.detections(listener, threshold), spoken, sound.hours)
        for threshold in sorted({*THRESHOLDS, chosen})
    }
    detected = sound.detections(listener, chosen)
    matched = match(detected, spoken)
    write_detection_report(
        folder, list(points.values()), points[chosen], detected, spoken, matched, sound.seconds
    )
    return {
        "recording": str(audio),
        "hours": sound.hours,
        **asdict(points[chosen]),
        "real_time_factor": real_time_factor,
        "report": str(folder),
    }
