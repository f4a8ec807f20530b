"""Probabilities of labels, one row a call, in; keywords that were heard, each with its time and score, out.

A streamed model answers some fifty times a second, and each word stays in its window for many answers. The
answers are averaged over a short while, a keyword fires when its average reaches the threshold, and then
nothing fires for the refractory time: the "posterior handling" of Chen, Parada & Heigold, "Small-footprint
keyword spotting using deep neural networks" (ICASSP 2014), with a mean of the probabilities as confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.config import check_at_least, check_fraction

BACKGROUND = ("_silence_", "_unknown_")
"""Labels that are no keywords: they never fire."""
SMOOTHING_MS = 300.0
"""The usual time over which probabilities are averaged."""


@dataclass(frozen=True)
class DetectionConfig:
    """When a keyword counts as heard; saved with every bundle.

    Attributes:
        refractory_ms: after a keyword none fires for so long; it has no usual value, because it depends on
            the model (see :meth:`for_clip`).
        smoothing_ms: the probabilities of so long a time are averaged.
        threshold: of the averaged probability, from 0 to 1.
    """

    refractory_ms: float
    smoothing_ms: float = SMOOTHING_MS
    threshold: float = 0.8

    def __post_init__(self):
        check_at_least(self, "detection", smoothing_ms=0, refractory_ms=0)
        check_fraction(self, "detection", "threshold")

    @classmethod
    def for_clip(cls, clip_ms: float, smoothing_ms: float = SMOOTHING_MS) -> DetectionConfig:
        """The settings for a model of clips of this length, in which a word fires once.

        A word stays in the model's window for the length of a clip, and in the average for the smoothing
        time after that. A shorter refractory time would let the same word fire again.
        """
        return cls(refractory_ms=clip_ms + smoothing_ms, smoothing_ms=smoothing_ms)


@dataclass(frozen=True)
class Detection:
    """A keyword that was heard.

    Attributes:
        seconds: since the stream's start, the end of the audio that let it fire.
        keyword: the label.
        score: the averaged probability that fired.
    """

    seconds: float
    keyword: str
    score: float


class Smoother:
    """A running mean over the last answers; at the beginning over those that are there.

    Args:
        answers: how many, at least 1.
    """

    def __init__(self, answers: int):
        self._past: np.ndarray | None = None
        self._answers = answers

    def feed(self, probabilities: np.ndarray) -> np.ndarray:
        """(calls, labels) → their running means, (calls, labels) float64. A call costs the same for ever."""
        past = probabilities[:0] if self._past is None else self._past
        known = np.concatenate([past, probabilities]).astype(np.float64)
        sums = np.cumsum(np.concatenate([np.zeros_like(known[:1]), known]), axis=0)  # (known + 1, labels)
        ends = np.arange(len(past), len(known)) + 1
        starts = np.maximum(ends - self._answers, 0)
        self._past = known[max(len(known) - self._answers + 1, 0) :]
        return (sums[ends] - sums[starts]) / (ends - starts)[:, None]


class KeywordDetector:
    """Finds keywords in a stream of probabilities.

    Args:
        labels: of the columns; those of ``BACKGROUND`` never fire.
        config: when a keyword counts as heard.
        call_seconds: audio from one answer to the next.
        ignored_seconds: the stream's beginning in which nothing fires: the model's window isn't full yet,
            and what a network makes of an empty window means nothing.
    """

    def __init__(
        self,
        labels: Sequence[str],
        config: DetectionConfig,
        call_seconds: float,
        ignored_seconds: float = 0.0,
    ):
        self._labels, self._config, self._call_seconds = tuple(labels), config, call_seconds
        self._keywords = keyword_columns(labels)
        self._smoother = Smoother(smoothing_answers(config, call_seconds))
        self._calls, self._deaf_until = 0, ignored_seconds

    def feed(self, probabilities: np.ndarray) -> list[Detection]:
        """The keywords that fire in the next calls.

        Args:
            probabilities: (calls, labels), each row sums to 1.
        """
        averaged = self._smoother.feed(probabilities)[:, self._keywords]
        rows = np.flatnonzero((averaged >= self._config.threshold).any(axis=1))
        seconds = (self._calls + rows + 1) * self._call_seconds
        self._calls += len(probabilities)
        found, index = [], int(np.searchsorted(seconds, self._deaf_until))
        while index < len(rows):
            scores = averaged[rows[index]]
            best = int(scores.argmax())
            keyword = self._labels[self._keywords[best]]
            found.append(Detection(round(float(seconds[index]), 6), keyword, float(scores[best])))
            self._deaf_until = seconds[index] + self._config.refractory_ms / 1000
            index = int(np.searchsorted(seconds, self._deaf_until))
        return found


def keyword_columns(labels: Sequence[str]) -> np.ndarray:
    """The columns of the labels that are keywords, (keywords,) int."""
    return np.array([column for column, label in enumerate(labels) if label not in BACKGROUND], dtype=int)


def smoothing_answers(config: DetectionConfig, call_seconds: float) -> int:
    """How many answers are averaged."""
    return max(1, round(config.smoothing_ms / 1000 / call_seconds))
