"""A keyword model and a long recording with a list of its keywords in; misses and false alarms out.

The streamed model processes the recording once; all thresholds are then evaluated on its outputs.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from analysis.keyword.detection_report import write_detection_report
from analysis.keyword.detections import (
    Matched,
    OperatingPoint,
    SpokenKeyword,
    match,
    operating_point,
    read_spoken_keywords,
)
from keywords.listening import Listener, open_listener, probabilities_of
from streaming.keyword.detection import Detection
from utils.audio.reading import audio_blocks, audio_seconds

THRESHOLDS = (*(percent / 100 for percent in range(5, 100, 5)), 0.97, 0.98, 0.99, 0.995, 0.999)


@dataclass(frozen=True)
class StreamResult:
    """The results of a listener on a recording.

    Attributes:
        points: operating points of all thresholds, in rising order, including the listener's threshold.
        chosen: the point of the listener's threshold.
        detections: keywords detected at that threshold.
        matched: the detections aligned with the spoken keywords.
        seconds: duration of the recording.
        real_time_factor: computing time divided by the duration, including reading the file.
    """

    points: tuple[OperatingPoint, ...]
    chosen: OperatingPoint
    detections: tuple[Detection, ...]
    matched: Matched
    seconds: float
    real_time_factor: float


def recording_results(model: Path, audio: Path, said: Path | None, folder: Path) -> dict[str, Any]:
    """Evaluate the streamed model of a bundle on a recording.

    Args:
        model: see :func:`keywords.listening.open_listener`.
        audio: a recording of any length.
        said: list of the keywords in it (``start end keyword``); None: all detections are false alarms.
        folder: for table, picture and detections.

    Returns:
        The figures of the model's threshold, as plain values.

    Raises:
        BundleError, AudioError, CorpusError: see the message.
    """
    spoken = read_spoken_keywords(said) if said else []
    result = measure(open_listener(model), audio, spoken)
    write_detection_report(
        folder, result.points, result.chosen, result.detections, spoken, result.matched, result.seconds
    )
    return {
        "recording": str(audio),
        "hours": result.seconds / 3600,
        **asdict(result.chosen),
        "real_time_factor": result.real_time_factor,
        "report": str(folder),
    }


def measure(listener: Listener, audio: Path, spoken: Sequence[SpokenKeyword]) -> StreamResult:
    """Process the recording once, and evaluate all thresholds."""
    seconds, start = audio_seconds(audio), time.perf_counter()
    probabilities = _probabilities(listener, audio, seconds)
    factor = (time.perf_counter() - start) / seconds
    chosen = listener.detection.threshold
    thresholds = sorted({*THRESHOLDS, chosen})
    detections = [listener.detector(threshold).feed(probabilities) for threshold in thresholds]
    points = [
        operating_point(threshold, found, spoken, seconds / 3600)
        for threshold, found in zip(thresholds, detections, strict=True)
    ]
    index = thresholds.index(chosen)
    return StreamResult(
        tuple(points),
        points[index],
        tuple(detections[index]),
        match(detections[index], spoken),
        seconds,
        factor,
    )


def _probabilities(listener: Listener, audio: Path, seconds: float) -> np.ndarray:
    """Outputs for the whole recording, (calls, labels) float32; 10 MB per hour with 14 labels."""
    listener.stream.reset()
    parts = []
    with tqdm(total=round(seconds), desc="listening", unit="s", disable=None) as bar:
        for probabilities in probabilities_of(listener, audio_blocks(audio, listener.sample_rate)):
            parts.append(probabilities.astype(np.float32))
            bar.update(round(len(probabilities) * listener.stream.call_seconds, 3))
    return np.concatenate(parts) if parts else np.zeros((0, len(listener.labels)), np.float32)
