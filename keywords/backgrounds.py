"""Background recordings of a keyword model: one half for its threshold, the other to count false alarms.

On the audio that a threshold was chosen on, false alarms are underestimated; hence two halves. The streaming
model processes both. Long recordings are cut in the middle, short ones belong to the halves alternately.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from keywords.listening import Listener, probabilities_of
from streaming.keyword.detection import Detection
from utils.audio.folders import find_recordings
from utils.audio.reading import audio_blocks, audio_seconds
from utils.errors import AudioError

_CUT_SECONDS = 60.0  # shorter recordings are not cut


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


def background_recordings(paths: Sequence[Path]) -> list[Path]:
    """All recordings in folders, and files; the header of each is checked.

    Raises:
        AudioError: a folder or file is missing, a folder has no recordings, or one cannot be read.
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
    for path in found:
        audio_seconds(path)
    return list({path.resolve(): path for path in found}.values())  # twice, it could be in both halves


def check_halves(recordings: Sequence[Path]) -> None:
    """Check that recordings, if there are any, can be split into two halves.

    Raises:
        AudioError: they are too few and too short, or one cannot be read.
    """
    cuts = _cuts(recordings)
    halves = (any(cut > 0 for _, cut in cuts), any(cut < np.inf for _, cut in cuts))
    if recordings and not all(halves):
        raise AudioError(
            "too little background to keep two halves apart",
            where=", ".join(map(str, recordings)),
            hint="give hours of audio: at least one recording of a minute, or two short ones",
        )


def stream_recordings(listener: Listener, recordings: Sequence[Path]) -> StreamOutputs:
    """Run a model on recordings as one stream, with silence before the first and after the last."""
    return _stream_half(listener, [(path, np.inf) for path in recordings], half=0)


def stream_halves(listener: Listener, recordings: Sequence[Path]) -> tuple[StreamOutputs, StreamOutputs]:
    """Run a model on two halves of the audio; recordings of a minute or more are cut in the middle.

    Raises:
        AudioError: a recording cannot be read, or they are too few and too short for two halves.
    """
    check_halves(recordings)
    cuts = _cuts(recordings)
    return _stream_half(listener, cuts, half=0), _stream_half(listener, cuts, half=1)


def _cuts(recordings: Sequence[Path]) -> list[tuple[Path, float]]:
    """Where each recording is cut, in seconds; infinity or 0: all of it is in the first or second half."""
    cuts: list[tuple[Path, float]] = []
    short = 0
    for path in recordings:
        seconds = audio_seconds(path)
        if seconds >= _CUT_SECONDS:
            cuts.append((path, seconds / 2))
        else:
            cuts.append((path, 0.0 if short % 2 else np.inf))
            short += 1
    return cuts


def _stream_half(listener: Listener, cuts: Sequence[tuple[Path, float]], half: int) -> StreamOutputs:
    """Run a model on the parts of recordings before a cut, in seconds (half 0), or after it (half 1)."""
    rate, samples = listener.sample_rate, 0

    def blocks() -> Iterator[np.ndarray]:
        nonlocal samples
        with tqdm(desc="listening", unit="s", disable=None) as bar:
            for path, cut in cuts:
                for block in _half_of(path, rate, cut * rate, half):
                    samples += len(block)
                    bar.update(round(len(block) / rate, 3))
                    yield block

    parts = [outputs.astype(np.float32) for outputs in probabilities_of(listener, blocks())]
    return StreamOutputs(np.concatenate(parts), samples / rate)


def _half_of(path: Path, rate: int, cut: float, half: int) -> Iterator[np.ndarray]:
    """Blocks of a recording before sample ``cut`` (half 0), or after it (half 1)."""
    if cut == (np.inf if half else 0.0):
        return  # an empty half: no need to decode
    position = 0  # in samples
    for block in audio_blocks(path, rate):
        before = int(min(max(cut - position, 0), len(block)))
        position += len(block)
        part = block[before:] if half else block[:before]
        if len(part):
            yield part
