"""Background recordings of a keyword model: one half for its threshold, the other to count false alarms.

On the audio that a threshold was chosen on, false alarms are underestimated; hence two halves. The streaming
model processes both. Each recording is cut in the middle.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from analysis.keyword.detections import OperatingPoint, SpokenKeyword, late_seconds_of, operating_point
from keywords.listening import Listener, probabilities_of
from streaming.keyword import Detection
from utils.audio.folders import find_recordings
from utils.audio.properties import audio_seconds
from utils.audio.reading import audio_blocks
from utils.errors import AudioError

# Thresholds of a trade-off, and those to choose from, in rising order from 0.05 on.
THRESHOLDS = (*(percent / 100 for percent in range(5, 100)), 0.995, 0.998, 0.999, 0.9995, 0.9999)
_LEAST_SECONDS = 60.0  # of all recordings together
_FIRST, _SECOND = (0.0, 0.5), (0.5, 1.0)  # halves of a recording, as fractions of its length


@dataclass(frozen=True)
class StreamOutputs:
    """The outputs of a model for several recordings in sequence.

    Attributes:
        probabilities: (calls, labels) float32, with those of the silence before and after the audio.
        seconds: duration of the audio, without the silence.
    """

    probabilities: np.ndarray
    seconds: float

    @property
    def hours(self) -> float:
        """Duration of the audio in hours."""
        return self.seconds / 3600

    def detections(self, listener: Listener, threshold: float) -> list[Detection]:
        """Keywords detected at a threshold."""
        return listener.detector(threshold).feed(self.probabilities)

    def operating_points(
        self, listener: Listener, spoken: Sequence[SpokenKeyword], thresholds: Sequence[float]
    ) -> list[OperatingPoint]:
        """The error rates of each threshold, where the audio contains these keywords."""
        late = late_seconds_of(listener.detection.refractory_ms)
        return [
            operating_point(threshold, self.detections(listener, threshold), spoken, self.hours, late)
            for threshold in thresholds
        ]


def background_recordings(paths: Sequence[Path]) -> list[Path]:
    """All recordings in folders, and files.

    Raises:
        AudioError: a folder or file is missing, a folder has no recordings, one cannot be read, or all
            together are too short.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise AudioError(
                "no such folder of background recordings",
                where=path,
                hint="give a folder of recordings, or a recording",
            )
        found += find_recordings(path) if path.is_dir() else [path]
    found = list({path.resolve(): path for path in found}.values())
    if found and sum(map(audio_seconds, found)) < _LEAST_SECONDS:
        raise AudioError(
            "too little background to keep two halves apart",
            where=", ".join(map(str, found)),
            hint="give hours of audio: at least a minute",
        )
    return found


def stream_recordings(listener: Listener, recordings: Sequence[Path]) -> StreamOutputs:
    """Run a model on recordings as one stream, with silence before the first and after the last.

    Raises:
        AudioError: a recording cannot be read.
    """
    return _stream(listener, recordings, (0.0, 1.0))


def stream_halves(listener: Listener, recordings: Sequence[Path]) -> tuple[StreamOutputs, StreamOutputs]:
    """Run a model on the first halves of recordings, and on the second halves.

    Raises:
        AudioError: a recording cannot be read.
    """
    return _stream(listener, recordings, _FIRST), _stream(listener, recordings, _SECOND)


def _stream(listener: Listener, recordings: Sequence[Path], part: tuple[float, float]) -> StreamOutputs:
    """Run a model on a part of each recording."""
    rate, samples = listener.sample_rate, 0

    def blocks() -> Iterator[np.ndarray]:
        nonlocal samples
        with tqdm(desc="listening", unit="s", disable=None) as bar:
            for path in recordings:
                length = audio_seconds(path) * rate
                end = part[1] * length if part[1] < 1.0 else np.inf
                for block in _part_of(path, rate, part[0] * length, end):
                    samples += len(block)
                    bar.update(round(len(block) / rate, 3))
                    yield block

    parts = [outputs.astype(np.float32) for outputs in probabilities_of(listener, blocks())]
    return StreamOutputs(np.concatenate(parts), samples / rate)


def _part_of(path: Path, rate: int, start: float, end: float) -> Iterator[np.ndarray]:
    """Blocks of a recording from sample ``start`` up to sample ``end``."""
    position = 0  # in samples
    for block in audio_blocks(path, rate):
        first, last = (int(min(max(cut - position, 0), len(block))) for cut in (start, end))
        position += len(block)
        if first < last:
            yield block[first:last]
        if position >= end:
            return
