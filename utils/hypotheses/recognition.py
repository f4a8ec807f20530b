"""What recognising recordings gives: segments with syllables, times, hanzi and alternatives.

Made by the pipeline; read by the transcript writers and the evaluation, which need no model.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.errors import AudioError

# CTC marks a syllable by a spike near its middle; most syllables are shorter than twice this.
REACH_SECONDS = 0.25


@dataclass(frozen=True)
class Alternative:
    """One reading: canonical syllables, their hanzi, and the score by which it is ranked.

    A joint search also tells the ``confidence`` of each hanzi, 0 to 1; () where it isn't known.
    """

    pinyin: tuple[str, ...]
    hanzi: str
    score: float
    confidence: tuple[float, ...] = ()


@dataclass(frozen=True)
class Segment:
    """What was recognised in one stretch of a recording; a short recording is one segment.

    Attributes:
        start, end: of the stretch, in seconds from the recording's start.
        times: (start, end) of each syllable of the best reading, likewise.
        n_best: readings from the best on, one at least.
    """

    start: float
    end: float
    times: tuple[tuple[float, float], ...]
    n_best: tuple[Alternative, ...]

    @property
    def best(self) -> Alternative:
        """The best reading."""
        return self.n_best[0]


@dataclass(frozen=True)
class Ending:
    """A recording has been read to its end, or can't be read any further.

    Attributes:
        seconds: its length, as far as it could be read.
        error: why it can't be read, or None.
    """

    seconds: float
    error: AudioError | None = None


@dataclass(frozen=True)
class Recognition:
    """What was recognised in a whole recording.

    Attributes:
        id: as the caller named the recording.
        seconds: the recording's length.
        pinyin: canonical syllables of the best reading.
        hanzi: as many characters as syllables; empty without a second stage.
        score: natural-log probability of the syllables, by the acoustic model (and the fused one).
        times: (start, end) in seconds of each syllable.
        n_best: readings from the best on; the first is the one above.
    """

    id: str
    seconds: float
    pinyin: tuple[str, ...]
    hanzi: str
    score: float
    times: tuple[tuple[float, float], ...]
    n_best: tuple[Alternative, ...]


@dataclass(frozen=True)
class Inspection:
    """What the acoustic model made of a recording, frame by frame.

    Attributes:
        posteriors: (T', classes) float32, the probability of each class.
        classes: their tokens; the last one is the blank.
        frame_seconds: from one frame to the next; the first begins at 0.
    """

    posteriors: np.ndarray
    classes: tuple[str, ...]
    frame_seconds: float


def syllable_times(frames: Sequence[int], frame_seconds: float, seconds: float) -> list[tuple[float, float]]:
    """(start, end) of each syllable from the output frame in which CTC puts it.

    CTC says where a syllable is, not where it begins and ends: borders lie half-way between neighbours, but
    at most 0.25 s from the middle of the syllable's own frame, and within the recording's ``seconds``.
    """
    middles = [min((frame + 0.5) * frame_seconds, seconds) for frame in frames]
    borders = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(middles)), seconds]
    return [
        (max(borders[i], middle - REACH_SECONDS), min(borders[i + 1], middle + REACH_SECONDS))
        for i, middle in enumerate(middles)
    ]
