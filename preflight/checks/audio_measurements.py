"""Measures level, clipping, silence and more of audio files, in parallel processes.

The audio checks read these measurements.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.audio.levels import clipped_fraction, decibels, long_runs, speech_level
from utils.audio.reading import read_channels
from utils.errors import AudioError
from utils.processes import collect

_CHUNK = 64  # files in a job
_ZERO_SECONDS = 0.01  # shorter runs of zeros are not counted


@dataclass(frozen=True, slots=True)
class AudioMeasurements:
    """Measurements of a recording; levels are in dB relative to full scale.

    Attributes:
        path: path of the file.
        fault: why it cannot be read; the other values are then 0. ``""`` if it can be read.
        rate: Hz.
        seconds: duration.
        level: root mean square of the loud frames (25 ms).
        channel_levels: root mean square of each channel.
        clipped: fraction of the samples in flat tops: three or more equal ones near the peak; this and all
            following values are of the loudest channel.
        zeros: fraction of the samples in runs of exact zeros, 10 ms or longer.
        digest: hash of the samples.
    """

    path: str
    fault: str = ""
    rate: int = 0
    seconds: float = 0.0
    level: float = 0.0
    channel_levels: tuple[float, ...] = ()
    clipped: float = 0.0
    zeros: float = 0.0
    digest: bytes = b""


def measure_recordings(paths: Sequence[str], workers: int) -> dict[str, AudioMeasurements]:
    """Measure files in parallel processes and show the progress; path → measurements.

    Raises:
        AudioError: a process died, because a decoder crashed.
    """
    chunks = [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]
    died = AudioError("a process that reads recordings died", hint="--workers 1 shows which file")
    measured = collect(
        _measure_chunk, chunks, workers, items=len(paths), title="recordings", died=died, unit="file"
    )
    return {item.path: item for item in measured}


def measure(path: str) -> AudioMeasurements:
    """Measure one file."""
    try:
        samples, rate = read_channels(path)  # (samples, channels)
    except AudioError as error:
        return AudioMeasurements(path, fault=error.message)
    squares = np.einsum("ij,ij->j", samples, samples, dtype=np.float64) / len(samples)  # (channels,)
    loudest = np.ascontiguousarray(samples[:, int(squares.argmax())])  # (samples,)
    return AudioMeasurements(
        path=path,
        rate=rate,
        seconds=len(samples) / rate,
        level=speech_level(loudest, rate),
        channel_levels=tuple(decibels(squares).tolist()),
        clipped=clipped_fraction(loudest),
        zeros=long_runs(loudest == 0, round(_ZERO_SECONDS * rate)) / len(loudest),
        digest=hashlib.blake2b(samples.tobytes(), digest_size=12).digest(),
    )


def _measure_chunk(paths: Sequence[str]) -> tuple[int, list[AudioMeasurements]]:
    return len(paths), [measure(path) for path in paths]
