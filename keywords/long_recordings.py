"""A keyword model and a long recording with a list of what was said, in; misses and false alarms, out.

The recording goes through the streamed model once; every threshold is then tried on the probabilities kept.
"""

from __future__ import annotations

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
    """What a listener made of a recording.

    Attributes:
        points: what each threshold brings, in rising order, the listener's own among them.
        chosen: the point of the listener's own threshold.
        heard: the keywords heard at it.
        said: what was said.
        matched: ``heard`` against ``said``.
        seconds: length of the recording.
        real_time_factor: seconds of computing a second of sound, reading the file included.
    """

    points: tuple[OperatingPoint, ...]
    chosen: OperatingPoint
    heard: tuple[Detection, ...]
    said: tuple[SpokenKeyword, ...]
    matched: Matched
    seconds: float
    real_time_factor: float


def recording_results(model: Path, audio: Path, said: Path | None, folder: Path) -> dict[str, Any]:
    """Let a bundle's streamed model listen to a recording.

    Args:
        model: see :func:`keywords.listening.open_listener`.
        audio: a recording of any length.
        said: list of the keywords in it (``start end keyword``); None: there are none, all is false alarm.
        folder: gets table, picture and what was heard.

    Returns:
        The figures of the model's own threshold, as plain values.

    Raises:
        BundleError, AudioError, CorpusError: see the message.
    """
    spoken = read_spoken_keywords(said) if said else []
    result = measure(open_listener(model), audio, spoken)
    write_detection_report(
        folder, result.points, result.chosen, result.heard, spoken, result.matched, result.seconds
    )
    return {
        "recording": str(audio),
        "hours": result.seconds / 3600,
        **asdict(result.chosen),
        "real_time_factor": result.real_time_factor,
        "report": str(folder),
    }


def measure(listener: Listener, audio: Path, said: Sequence[SpokenKeyword]) -> StreamResult:
    """Hear the recording once, and try all thresholds."""
    seconds, began = audio_seconds(audio), time.perf_counter()
    probabilities = _probabilities(listener, audio, seconds)
    factor = (time.perf_counter() - began) / seconds
    own = listener.detection.threshold
    tried = sorted({*THRESHOLDS, own})
    heard = {threshold: listener.detector(threshold).feed(probabilities) for threshold in tried}
    points = [operating_point(one, found, said, seconds / 3600) for one, found in heard.items()]
    return StreamResult(
        tuple(points),
        points[tried.index(own)],
        tuple(heard[own]),
        tuple(said),
        match(heard[own], said),
        seconds,
        factor,
    )


def _probabilities(listener: Listener, audio: Path, seconds: float) -> np.ndarray:
    """(calls, labels) float32 of the whole recording: 10 MB an hour with 14 labels."""
    listener.stream.reset()
    parts = []
    with tqdm(total=round(seconds), desc="listening", unit="s", disable=None) as bar:
        for probabilities in probabilities_of(listener, audio_blocks(audio, listener.sample_rate)):
            parts.append(probabilities.astype(np.float32))
            bar.update(round(len(probabilities) * listener.stream.call_seconds, 3))
    return np.concatenate(parts) if parts else np.zeros((0, len(listener.labels)), np.float32)
