"""Error counts of utterances in, confidence interval of their rate, or of two systems' difference, out.

The percentile bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13) over
whole groups where there are enough of them. Utterances of one speaker err alike, and so do repetitions of one
sentence, so that resampling single utterances would give intervals that are too narrow (Bisani and Ney,
"Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP 2004; the difference of
two systems from the same draws is theirs too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.metrics import ErrorCounts

FEWEST_GROUPS = 5
# Resampled sets drawn at once: bounds the memory at chunk × units × 8 bytes (7,000 utterances: 5.6 MB).
CHUNK = 100


@dataclass(frozen=True)
class Interval:
    """A confidence interval, and what was resampled to find it: ``utterance`` or groups of them."""

    low: float
    high: float
    unit: str


def rate_interval(
    counts: Sequence[ErrorCounts],
    groups: Sequence[str] = (),
    unit: str = "speaker",
    confidence: float = 0.95,
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Confidence interval of the rate of summed ``counts``.

    Args:
        counts: one for each utterance.
        groups: the group (speaker, sentence) of each utterance; with fewer than 5 different ones, or none
            given, utterances are resampled.
        unit: what a group is called.
        confidence: share of the resampled rates that lies inside.
        samples: resampled sets.
        seed: makes the interval reproducible.
    """
    figures = [(one.errors, one.reference) for one in counts]
    return _interval(figures, groups, unit, confidence, samples, seed)


def difference_interval(
    one: Sequence[ErrorCounts],
    other: Sequence[ErrorCounts],
    groups: Sequence[str] = (),
    unit: str = "speaker",
    confidence: float = 0.95,
    samples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Confidence interval of how much higher the rate of ``other`` is than that of ``one``.

    Both are counts of the same utterances, in the same order, and each draw takes the same ones from both.
    The other arguments are those of :func:`rate_interval`.
    """
    figures = [(b.errors - a.errors, a.reference) for a, b in zip(one, other, strict=True)]
    return _interval(figures, groups, unit, confidence, samples, seed)


def _interval(
    pairs: Sequence[tuple[int, int]],
    groups: Sequence[str],
    unit: str,
    confidence: float,
    samples: int,
    seed: int,
) -> Interval:
    """Of the ratio of sums of ``pairs`` (errors, reference tokens)."""
    grouped = len(set(groups)) >= FEWEST_GROUPS
    unit = unit if grouped else "utterance"
    if not pairs:
        return Interval(0.0, 0.0, unit)
    figures = np.array(pairs, dtype=np.int64)  # (utterances, 2)
    if grouped:
        figures = _sums_by_group(figures, groups)  # (groups, 2)
    rates = _resampled_rates(figures, samples, np.random.default_rng(seed))
    low, high = np.quantile(rates, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high), unit)


def _sums_by_group(figures: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    names, group = np.unique(list(groups), return_inverse=True)
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
