"""Audio files → a few numbers on each, measured in parallel: what the audio checks judge."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from utils.audio.reading import read_channels
from utils.errors import AudioError
from utils.processes import run_in_processes

_CHUNK = 64  # files a job: the processes end together, and the progress bar moves
_FRAME_SECONDS = 0.025
_SPEECH_PERCENTILE = 90  # of the frame levels: that of the syllables, in a recording of mostly silence too
_NEAR_PEAK = 0.99
_AUDIBLE_PEAK = 0.02  # below, a few quantisation steps alone look like flat tops
_FLAT_SAMPLES = 3
_ZERO_SECONDS = 0.01
_LOWEST_LEVEL = -200.0  # dB, of digital silence


@dataclass(frozen=True, slots=True)
class AudioFacts:
    """What a recording is like; levels are in dB relative to full scale.

    Attributes:
        path: of the file.
        fault: why it can't be read, ``""`` if it can; the rest is then 0.
        rate: Hz.
        seconds: its length.
        level: of its loud frames (25 ms), root mean square.
        channel_levels: root mean square of each channel.
        offset: mean of the samples, in the loudest channel as all that follows.
        relative_offset: the mean's size as a share of the root mean square.
        clipped: share of the samples on a flat top: three or more equal ones next to the peak.
        zeros: share of the samples in stretches of exact zeros, 10 ms or longer.
        digest: the same for recordings with the same samples.
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


def measure_recordings(paths: Sequence[str], workers: int) -> dict[str, AudioFacts]:
    """Facts on each file, by its path; shows its progress.

    Raises:
        AudioError: a process died, which only a decoder that crashes brings about.
    """
    chunks = [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]
    facts: dict[str, AudioFacts] = {}
    try:
        with tqdm(total=len(paths), desc="recordings", unit="file", disable=None) as progress:
            for measured in run_in_processes(_measure_chunk, chunks, workers):
                facts |= {one.path: one for one in measured}
                progress.update(len(measured))
    except BrokenExecutor as error:
        hint = "with --workers 1 it shows which file"
        raise AudioError("a process that reads recordings died", hint=hint) from error
    return facts


def measure(path: str) -> AudioFacts:
    """Facts on one file."""
    try:
        samples, rate = read_channels(path)  # (samples, channels)
    except AudioError as error:
        return AudioFacts(path, fault=error.what)
    squares = np.einsum("ij,ij->j", samples, samples, dtype=np.float64) / len(samples)  # (channels,)
    loudest = np.ascontiguousarray(samples[:, int(squares.argmax())])  # (samples,)
    offset, power = float(loudest.mean(dtype=np.float64)), float(squares.max())
    return AudioFacts(
        path=path,
        rate=rate,
        seconds=len(samples) / rate,
        level=float(np.percentile(_frame_levels(loudest, rate), _SPEECH_PERCENTILE)),
        channel_levels=tuple(_decibels(squares).tolist()),
        offset=offset,
        relative_offset=abs(offset) / max(power**0.5, 1e-10),
        clipped=_clipped_share(loudest),
        zeros=_long_runs(loudest == 0, round(_ZERO_SECONDS * rate)) / len(loudest),
        digest=hashlib.blake2b(samples.tobytes(), digest_size=12).digest(),
    )


def _measure_chunk(paths: Sequence[str]) -> list[AudioFacts]:
    return [measure(path) for path in paths]


def _frame_levels(samples: np.ndarray, rate: int) -> np.ndarray:
    """Level of each frame of (samples,), (frames,) dB; one frame if it is shorter than one."""
    size = min(len(samples), max(1, int(_FRAME_SECONDS * rate)))
    frames = samples[: len(samples) // size * size].reshape(-1, size)  # (frames, size)
    return _decibels(np.einsum("ij,ij->i", frames, frames, dtype=np.float64) / size)


def _decibels(power: np.ndarray) -> np.ndarray:
    return 10 * np.log10(np.maximum(power, 10 ** (_LOWEST_LEVEL / 10)))


def _clipped_share(samples: np.ndarray) -> float:
    """Share of (samples,) in flat tops. Clipped before it was made quieter counts as well."""
    peak = np.abs(samples).max()
    if peak < _AUDIBLE_PEAK:
        return 0.0
    tops = np.abs(samples) >= _NEAR_PEAK * peak
    level = tops[1:] & (samples[1:] == samples[:-1])
    # n equal samples are n - 1 equal neighbours
    return _long_runs(level, _FLAT_SAMPLES - 1, ends=1) / len(samples)


def _long_runs(flags: np.ndarray, shortest: int, ends: int = 0) -> int:
    """How many of (n,) flags are in runs of at least ``shortest``; ``ends`` are added for each run."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    runs = edges[1::2] - edges[::2]
    kept = runs[runs >= max(shortest, 1)]
    return int(kept.sum()) + ends * len(kept)
