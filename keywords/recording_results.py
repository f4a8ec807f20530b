"""Evaluates a streamed keyword model on a long recording: misses and false alarms at all thresholds.

The model processes the recording once; all thresholds are then evaluated on its outputs.
"""

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.keyword.detections import (
    SpokenKeyword,
    late_seconds_of,
    match,
    read_spoken_keywords,
    write_detection_report,
)
from keywords.backgrounds import THRESHOLDS, stream_recordings
from keywords.listening import Listener, is_export_of, open_listener
from streaming.keyword import keyword_columns
from utils.errors import CorpusError
from utils.run_folder.run import RunFolder


def recording_results(model: Path, audio: Path, spoken_list: Path | None, folder: Path) -> dict[str, Any]:
    """Evaluate the streamed model of a bundle on a recording.

    Args:
        model: see :func:`keywords.listening.open_listener`.
        audio: a recording of any length.
        spoken_list: the keywords in it (``start end keyword``); None: all detections are false alarms.
            A detection in a word that the model can't detect is a false alarm.
        folder: folder for table, picture and detections.

    Returns:
        The error rates at the model's threshold, as plain values.

    Raises:
        CorpusError: the model can't detect any word of the list.
        BundleError, AudioError, CorpusError: see the message.
    """
    listed = read_spoken_keywords(spoken_list) if spoken_list else []
    listener = open_listener(model)
    _note_other_weights(model)
    spoken = _known_words(listed, listener, spoken_list)
    start = time.perf_counter()
    sound = stream_recordings(listener, [audio])
    real_time_factor = (time.perf_counter() - start) / sound.seconds
    chosen, late = listener.detection.threshold, late_seconds_of(listener.detection.refractory_ms)
    thresholds = sorted({*THRESHOLDS, chosen})
    points = sound.operating_points(listener, spoken, thresholds)
    point = points[thresholds.index(chosen)]
    detected = sound.detections(listener, chosen)
    matched = match(detected, spoken, late)
    write_detection_report(folder, points, point, detected, spoken, matched, sound.seconds)
    return {
        "recording": str(audio),
        "hours": sound.hours,
        **asdict(point),
        "real_time_factor": real_time_factor,
        "report": str(folder),
    }


def _note_other_weights(model: Path) -> None:
    """Note that the bundle was not made of the present best weights of the run that holds it."""
    weights = RunFolder(model.parent).best_weights
    if (model / "bundle.json").is_file() and weights.is_file() and not is_export_of(model, weights):
        print(
            f"note: {model} was not made of the present {weights.name} of its run. To test these weights: "
            f"python export.py {shlex.quote(str(model.parent))} --force",
            file=sys.stderr,
        )


def _known_words(
    listed: Sequence[SpokenKeyword], listener: Listener, path: Path | None
) -> list[SpokenKeyword]:
    """The listed words that the model can detect; the others are words like any other sound."""
    keywords = [listener.labels[column] for column in keyword_columns(listener.labels)]
    spoken = [word for word in listed if word.keyword in keywords]
    if listed and not spoken:
        raise CorpusError(
            "the model can't detect any of the listed words",
            where=path,
            hint=f"the words of this model: {', '.join(keywords)}",
        )
    return spoken
