"""Error counts of utterances in, confidence interval of their rate out.

The percentile bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13) over
whole speakers where there are enough of them: utterances of one speaker err alike, so that resampling single
utterances would give intervals that are too narrow (Bisani and Ney, "Bootstrap estimates for confidence
intervals in ASR performance evaluation", ICASSP 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.metrics import ErrorCounts

FEWEST_SPEAKERS = 5
# Resampled sets drawn at once: bounds the memory at chunk × units × 8 bytes (7,000 utterances: 5.6 MB).
CHUNK = 100


@dataclass(frozen=True)
class Interval:
    """A confidence interval, and what was resampled to find it: ``speaker`` or ``utterance``."""

    low: float
    high: float
    unit: str


def rate_interval(
    counts: Sequence[ErrorCounts],
    speakers: Sequence[str] = (),
    confidence: float = 0.95,
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Confidence interval of the rate of summed ``counts``.

    Args:
        counts: one for each utterance.
        speakers: the speaker of each utterance; with fewer than 5 different ones (or none given)
            utterances are resampled.
        confidence: share of the resampled rates that lies inside.
        samples: resampled sets.
        seed: makes the interval reproducible.
    """
    speakers = list(speakers)
    unit = "speaker" if len(set(speakers)) >= FEWEST_SPEAKERS else "utterance"
    if not counts:
        return Interval(0.0, 0.0, unit)
    figures = np.array([(one.errors, one.reference) for one in counts], dtype=np.int64)  # (utterances, 2)
    if unit == "speaker":
        figures = _sums_by_speaker(figures, speakers)  # (speakers, 2)
    rates = _resampled_rates(figures, samples, np.random.default_rng(seed))
    low, high = np.quantile(rates, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), unit)


def _sums_by_speaker(figures: np.ndarray, speakers: list[str]) -> np.ndarray:
    names, group = np.unique(speakers, return_inverse=True)
    sums = np.zeros((len(names), 2), dtype=np.int64)
    np.add.at(sums, group, figures)
    return sums


def _resampled_rates(figures: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Rates (samples,) of sets that hold as many units as ``figures`` (units, 2), drawn with replacement."""
    units = len(figures)
    rates = []
    for start in range(0, samples, CHUNK):
        picks = rng.integers(units, size=(min(CHUNK, samples - start), units))  # (chunk, units)
        sums = figures[picks].sum(axis=1)  # (chunk, 2): errors, reference
        rates.append(sums[:, 0] / np.maximum(sums[:, 1], 1))
    return np.concatenate(rates)
