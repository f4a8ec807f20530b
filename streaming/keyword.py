"""Runs a keyword model on endless audio, and detects keywords: running mean, threshold, refractory time.

A streamed model gives a row of probabilities per call, some fifty times a second, and a word stays in its
window for many calls. The probabilities are averaged over a short time; a keyword is detected when its
average reaches the threshold; then nothing is detected for the refractory time. This is the "posterior
handling" of Chen, Parada & Heigold, "Small-footprint keyword spotting using deep neural networks" (ICASSP
2014), with the mean probability as confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from streaming.chunks import ChunkBuffer, StreamedModel
from utils.arrays import softmax
from utils.features.keyword import KeywordFeatureConfig, KeywordFeatureStream
from utils.limits import Fraction, Limited, between

BACKGROUND = ("_silence_", "_unknown_")
"""Labels that are not keywords: they are never detected."""
SMOOTHING_MS = 300.0
"""Default time over which probabilities are averaged."""
_Milliseconds = Annotated[float, between(0, 3_600_000)]  # an hour: all outputs of this time are in memory


@dataclass(frozen=True)
class DetectionConfig(Limited, section="detection"):
    """Parameters of the detection; saved in every bundle.

    Attributes:
        refractory_ms: time after a keyword in which nothing is detected. It has no default, because it
            depends on the model (see :meth:`for_clip`).
        smoothing_ms: time over which probabilities are averaged.
        threshold: lowest averaged probability that is a detection, from 0 to 1.
        onset_ms: time from the beginning of a keyword to its detection, the median over recordings in which
            both are known; 0 if it was not measured.
    """

    refractory_ms: _Milliseconds
    smoothing_ms: _Milliseconds = SMOOTHING_MS
    threshold: Fraction = 0.8
    onset_ms: _Milliseconds = 0.0

    @classmethod
    def for_clip(cls, clip_ms: float, smoothing_ms: float = SMOOTHING_MS) -> DetectionConfig:
        """The parameters for a model of clips of this length, with which a word is detected once.

        A word stays in the model's window for the length of a clip, and in the average for the smoothing time
        after that. With a shorter refractory time the same word could be detected again.
        """
        return cls(refractory_ms=clip_ms + smoothing_ms, smoothing_ms=smoothing_ms)


@dataclass(frozen=True)
class Detection:
    """A detected keyword.

    Attributes:
        seconds: end of the sound that triggered it, since the start of the sound; of a typed word, when its
            last syllable was recognised. The report comes later.
        keyword: the label.
        score: the averaged probability that reached the threshold.
        threshold: what the score had to reach.
        start: estimated beginning of the keyword in seconds, since the start of the sound; None if unknown.
    """

    seconds: float
    keyword: str
    score: float
    threshold: float
    start: float | None = None


class Smoother:
    """A running mean over the last calls; at the start of the stream over the calls so far.

    Args:
        calls: number of calls to average, at least 1.
    """

    def __init__(self, calls: int):
        self._past: np.ndarray | None = None
        self._calls = calls

    def feed(self, probabilities: np.ndarray) -> np.ndarray:
        """(calls, labels) → their running means, (calls, labels) float64."""
        past = probabilities[:0] if self._past is None else self._past
        rows = np.concatenate([past, probabilities]).astype(np.float64)
        sums = np.cumsum(np.concatenate([np.zeros_like(rows[:1]), rows]), axis=0)  # (rows + 1, labels)
        ends = np.arange(len(past), len(rows)) + 1
        starts = np.maximum(ends - self._calls, 0)
        self._past = rows[max(len(rows) - self._calls + 1, 0) :]
        return (sums[ends] - sums[starts]) / (ends - starts)[:, None]


class KeywordDetector:
    """Detects keywords in a stream of probabilities.

    Args:
        labels: labels of the columns; those of ``BACKGROUND`` are never detected.
        config: detection parameters.
        call_seconds: seconds of audio per call.
        silent_calls: calls of silence before the sound, to fill the model's window and the average. Nothing
            is detected in them, and times count from their end.
    """

    def __init__(
        self,
        labels: Sequence[str],
        config: DetectionConfig,
        call_seconds: float,
        silent_calls: int = 0,
    ):
        self._labels, self._config, self._call_seconds = tuple(labels), config, call_seconds
        self._keywords = keyword_columns(labels)
        self._smoother = Smoother(smoothing_calls(config, call_seconds))
        self._calls, self._ignored_until = -silent_calls, call_seconds  # the end of the first call of sound

    def feed(self, probabilities: np.ndarray) -> list[Detection]:
        """Detect keywords in the next calls.

        Args:
            probabilities: (calls, labels), each row sums to 1.
        """
        if not len(probabilities):
            return []
        averaged = self._smoother.feed(probabilities)[:, self._keywords]
        rows = np.flatnonzero((averaged >= self._config.threshold).any(axis=1))
        seconds = (self._calls + rows + 1) * self._call_seconds
        self._calls += len(probabilities)
        detections, index = [], int(np.searchsorted(seconds, self._ignored_until))
        while index < len(rows):
            scores = averaged[rows[index]]
            best = int(scores.argmax())
            keyword = self._labels[self._keywords[best]]
            end, onset = round(float(seconds[index]), 6), self._config.onset_ms / 1000
            start = max(0.0, end - onset) if onset else None
            detections.append(Detection(end, keyword, float(scores[best]), self._config.threshold, start))
            self._ignored_until = seconds[index] + self._config.refractory_ms / 1000
            index = max(index + 1, int(np.searchsorted(seconds, self._ignored_until)))
        return detections


def keyword_columns(labels: Sequence[str]) -> np.ndarray:
    """Columns of the labels that are keywords, (keywords,) int."""
    return np.array([column for column, label in enumerate(labels) if label not in BACKGROUND], dtype=int)


def smoothing_calls(config: DetectionConfig, call_seconds: float) -> int:
    """Number of calls to average."""
    return max(1, round(config.smoothing_ms / 1000 / call_seconds))


class KeywordStream:
    """A keyword model with its front end, for endless audio.

    Args:
        model: streamed model with one output per call.
        features: settings of its front end.
        chunk: frames per call (samples, for the kind ``raw``).
    """

    def __init__(self, model: StreamedModel, features: KeywordFeatureConfig, chunk: int):
        self._model, self._chunks = model, ChunkBuffer(chunk)
        self._features = KeywordFeatureStream(features)
        hop = 1 if features.kind == "raw" else features.stride_samples
        self.call_seconds = chunk * hop / features.sample_rate

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Process the next samples.

        Args:
            samples: (n,) floats in [-1, 1] at the front end's sample rate, n of any size.

        Returns:
            (calls, labels) float64, a row for each call that the samples complete; (0, 0) if there is none.
        """
        chunks = self._chunks.feed(self._features.feed(samples))
        if not len(chunks):
            return np.zeros((0, 0))
        return softmax(np.concatenate([self._model.step(chunk) for chunk in chunks]))

    def reset(self) -> None:
        """Start a new stream."""
        self._model.reset()
        self._chunks.reset()
        self._features.reset()
