"""Audio files in; measurements of each for the audio checks, in parallel processes, out."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from utils.audio.reading import read_channels
from utils.errors import AudioError
from utils.processes import run_in_processes

_CHUNK = 64  # files in a job
_FRAME_SECONDS = 0.025
_SPEECH_PERCENTILE = 90  # of the frame levels: the level of speech, even in a mostly silent recording
_NEAR_PEAK = 0.99
_AUDIBLE_PEAK = 0.02  # below it, quantisation steps look like flat tops
_FLAT_SAMPLES = 3
_ZERO_SECONDS = 0.01
_LOWEST_LEVEL = -200.0  # dB, of digital silence


@dataclass(frozen=True, slots=True)
class AudioMeasurements:
    """Measurements of a recording; levels are in dB relative to full scale.

    Attributes:
        path: of the file.
        fault: why it cannot be read; the other values are then 0. ``""`` if it can be read.
        rate: Hz.
        seconds: duration.
        level: root mean square of the loud frames (25 ms).
        channel_levels: root mean square of each channel.
        offset: mean of the samples; this and all following values are of the loudest channel.
        relative_offset: absolute offset divided by the root mean square.
        clipped: fraction of the samples in flat tops: three or more equal ones near the peak.
        zeros: fraction of the samples in runs of exact zeros, 10 ms or longer.
        digest: hash of the samples.
    """

    path: str
    fault: str = ""
    rate: int = 0
    seconds: float = 0.0
    level: float = 0.0
    channel_levels: tuple[float, ...] = ()
    offset: float = 0.0
    relative_offset: float = 0.0
    clipped: float = 0.0
    zeros: float = 0.0
    digest: bytes = b""


def measure_recordings(paths: Sequence[str], workers: int) -> dict[str, AudioMeasurements]:
    """Measure files and show the progress; path → measurements.

    Raises:
        AudioError: a process died, because a decoder crashed.
    """
    chunks = [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]
    measurements: dict[str, AudioMeasurements] = {}
    try:
        with tqdm(total=len(paths), desc="recordings", unit="file", disable=None) as progress:
            for measured in run_in_processes(_measure_chunk, chunks, workers):
                measurements |= {item.path: item for item in measured}
                progress.update(len(measured))
    except BrokenExecutor as error:
        raise AudioError(
            "a process that reads recordings died", hint="--workers 1 shows which file"
        ) from error
    return measurements


def measure(path: str) -> AudioMeasurements:
    """Measure one file."""
    try:
        samples, rate = read_channels(path)  # (samples, channels)
    except AudioError as error:
        return AudioMeasurements(path, fault=error.what)
    squares = np.einsum("ij,ij->j", samples, samples, dtype=np.float64) / len(samples)  # (channels,)
    loudest = np.ascontiguousarray(samples[:, int(squares.argmax())])  # (samples,)
    offset, power = float(loudest.mean(dtype=np.float64)), float(squares.max())
    return AudioMeasurements(
        path=path,
        rate=rate,
        seconds=len(samples) / rate,
        level=float(np.percentile(_frame_levels(loudest, rate), _SPEECH_PERCENTILE)),
        channel_levels=tuple(_decibels(squares).tolist()),
        offset=offset,
        relative_offset=abs(offset) / max(power**0.5, 1e-10),
        clipped=_clipped_fraction(loudest),
        zeros=_long_runs(loudest == 0, round(_ZERO_SECONDS * rate)) / len(loudest),
        digest=hashlib.blake2b(samples.tobytes(), digest_size=12).digest(),
    )


def _measure_chunk(paths: Sequence[str]) -> list[AudioMeasurements]:
    return [measure(path) for path in paths]


def _frame_levels(samples: np.ndarray, rate: int) -> np.ndarray:
    """Level of each frame of (samples,), (frames,) dB; at least one frame."""
    size = min(len(samples), max(1, int(_FRAME_SECONDS * rate)))
    frames = samples[: len(samples) // size * size].reshape(-1, size)  # (frames, size)
    return _decibels(np.einsum("ij,ij->i", frames, frames, dtype=np.float64) / size)


def _decibels(power: np.ndarray) -> np.ndarray:
    return 10 * np.log10(np.maximum(power, 10 ** (_LOWEST_LEVEL / 10)))


def _clipped_fraction(samples: np.ndarray) -> float:
    """Fraction of (samples,) in flat tops, also of recordings that were attenuated after clipping."""
    peak = np.abs(samples).max()
    if peak < _AUDIBLE_PEAK:
        return 0.0
    tops = np.abs(samples) >= _NEAR_PEAK * peak
    level = tops[1:] & (samples[1:] == samples[:-1])
    # n equal samples are n - 1 equal neighbours
    return _long_runs(level, _FLAT_SAMPLES - 1, ends=1) / len(samples)


def _long_runs(flags: np.ndarray, shortest: int, ends: int = 0) -> int:
    """Number of (n,) flags in runs of at least ``shortest``, plus ``ends`` for each run."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    runs = edges[1::2] - edges[::2]
    kept = runs[runs >= max(shortest, 1)]
    return int(kept.sum()) + ends * len(kept)
