"""What recognising one recording gives: syllables with times, hanzi, alternatives.

Made by the pipeline; read by the transcript writers and the evaluation, which need no model.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Alternative:
    """One reading of a recording: canonical syllables, their hanzi, and a natural-log probability."""

    pinyin: tuple[str, ...]
    hanzi: str
    score: float


@dataclass(frozen=True)
class Recognition:
    """What was recognised in one recording.

    Attributes:
        id: as the caller named the recording.
        seconds: the recording's length.
        pinyin: canonical syllables of the best reading.
        hanzi: as many characters as syllables; empty without a second stage.
        score: natural-log probability of the syllables, by the acoustic model.
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
