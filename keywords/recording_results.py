"""Evaluates a streamed keyword model on a long recording: misses and false alarms at all thresholds.

The model processes the recording once; all thresholds are then evaluated on its outputs.
"""

import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.keyword.detections import (
    SpokenKeyword,
    late_seconds_of,
    match,
    operating_point,
    read_spoken_keywords,
    write_detection_report,
)
from bundle.folder import open_bundle
from keywords.backgrounds import stream_recordings
from keywords.listening import Listener, open_listener
from streaming.keyword.detection import keyword_columns
from utils.errors import CorpusError
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import RunFolder

# Thresholds of the trade-off, from 0.05 on.
THRESHOLDS = (*(percent / 100 for percent in range(5, 100, 5)), 0.97, 0.98, 0.99, 0.995, 0.999)


def recording_results(model: Path, audio: Path, spoken_list: Path | None, folder: Path) -> dict[str, Any]:
    """Evaluate the streamed model of a bundle on a recording.

    Args:
        model: see :func:`keywords.listening.open_listener`.
        audio: a recording of any length.
        spoken_list: the keywords in it (``start end keyword``); None: all detections are false alarms.
            Words that the model can't detect are counted apart: a detection there is a false alarm.
        folder: folder for table, picture and detections.

    Returns:
        The error rates at the model's threshold, as plain values; ``other_words``: the words of the list that
        the model can't detect → how often each is spoken.

    Raises:
        CorpusError: the model can't detect any word of the list.
        BundleError, AudioError, CorpusError: see the message.
    """
    listed = read_spoken_keywords(spoken_list) if spoken_list else []
    listener = open_listener(model)
    _note_other_weights(model)
    spoken, other_words = _known_words(listed, listener, spoken_list)
    start = time.perf_counter()
    sound = stream_recordings(listener, [audio])
    real_time_factor = (time.perf_counter() - start) / sound.seconds
    chosen, late = listener.detection.threshold, late_seconds_of(listener.detection.refractory_ms)
    points = {
        threshold: operating_point(
            threshold, sound.detections(listener, threshold), spoken, sound.hours, late
        )
        for threshold in sorted({*THRESHOLDS, chosen})
    }
    detected = sound.detections(listener, chosen)
    matched = match(detected, spoken, late)
    write_detection_report(
        folder, list(points.values()), points[chosen], detected, spoken, matched, sound.seconds
    )
    return {
        "recording": str(audio),
        "hours": sound.hours,
        **asdict(points[chosen]),
        "other_words": other_words,
        "real_time_factor": real_time_factor,
        "report": str(folder),
    }


def _note_other_weights(model: Path) -> None:
    """Note that the bundle was not made of the present best weights of the run that holds it."""
    weights = RunFolder(model.parent).best_weights
    if not (model / "bundle.json").is_file() or not weights.is_file():
        return
    exported = open_bundle(model).metadata.get("source", {}).get("weights_hash")
    if exported and exported != file_hash(weights):
        print(
            f"note: {model} was not made of the present {weights.name} of its run. To test these weights: "
            f"python export.py {shlex.quote(str(model.parent))} --force",
            file=sys.stderr,
        )


def _known_words(
    listed: Sequence[SpokenKeyword], listener: Listener, path: Path | None
) -> tuple[list[SpokenKeyword], dict[str, int]]:
    """The listed words that the model can detect, and how often each of the others is spoken."""
    keywords = [listener.labels[column] for column in keyword_columns(listener.labels)]
    spoken = [word for word in listed if word.keyword in keywords]
    others = Counter(word.keyword for word in listed if word.keyword not in keywords)
    if others:
        counts = ", ".join(f"{word} ({count})" for word, count in sorted(others.items()))
        if not spoken:
            raise CorpusError(
                f"the model can't detect any of the listed words: {counts}",
                where=path,
                hint=f"the words of this model: {', '.join(keywords)}",
            )
        print(f"note: {path} lists words that the model can't detect: {counts}", file=sys.stderr)
    return spoken, dict(sorted(others.items()))
