"""Confidence intervals of an error rate, or of the difference between two systems, by bootstrap resampling.

This is the percentile bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13)
over the error counts of utterances. It resamples whole groups if there are enough of them, because the errors
of one speaker are correlated, as are those of repetitions of one sentence: resampling single utterances would
give intervals that are too narrow (Bisani and Ney, "Bootstrap estimates for confidence intervals in ASR
performance evaluation", ICASSP 2004). The difference of two systems is computed from the same draws, as in
that paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.metrics import ErrorCounts

MIN_GROUPS = 5  # with fewer speakers (or sentences), single utterances are resampled
# Resampled test sets, and those resampled at once; the memory is CHUNK × groups × 8 bytes (5.6 MB for 7,000).
SAMPLES, CHUNK = 1000, 100
SEED = 0


@dataclass(frozen=True)
class Interval:
    """A confidence interval, and the unit that was resampled: ``utterance``, or the name of the groups."""

    low: float
    high: float
    unit: str


def rate_interval(
    counts: Sequence[ErrorCounts],
    groups: Sequence[str] = (),
    unit: str = "speaker",
) -> Interval:
    """95 % confidence interval of the rate of summed ``counts``.

    Args:
        counts: one for each utterance.
        groups: the group (speaker, sentence) of each utterance; with fewer than 5 different groups,
            utterances are resampled.
        unit: what a group is called.
    """
    figures = [(each.errors, each.reference) for each in counts]
    return _interval(figures, groups, unit)


def difference_interval(
    first: Sequence[ErrorCounts],
    second: Sequence[ErrorCounts],
    groups: Sequence[str] = (),
    unit: str = "speaker",
) -> Interval:
    """95 % confidence interval of the rate of ``second`` minus the rate of ``first``.

    Both are counts of the same utterances in the same order, and each draw takes the same utterances from
    both. The other arguments are those of :func:`rate_interval`.
    """
    figures = [(b.errors - a.errors, a.reference) for a, b in zip(first, second, strict=True)]
    return _interval(figures, groups, unit)


def _interval(pairs: Sequence[tuple[int, int]], groups: Sequence[str], unit: str) -> Interval:
    """Interval of the ratio of the two sums over ``pairs`` of (errors, reference tokens)."""
    grouped = len(set(groups)) >= MIN_GROUPS
    unit = unit if grouped else "utterance"
    if not pairs:
        return Interval(0.0, 0.0, unit)
    figures = np.array(pairs, dtype=np.int64)  # (utterances, 2)
    if grouped:
        figures = _sums_by_group(figures, groups)  # (groups, 2)
    rates = _resampled_rates(figures, np.random.default_rng(SEED))
    low, high = np.quantile(rates, [0.025, 0.975])
    return Interval(float(low), float(high), unit)


def _sums_by_group(figures: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    names, group = np.unique(list(groups), return_inverse=True)
    sums = np.zeros((len(names), 2), dtype=np.int64)
    np.add.at(sums, group, figures)
    return sums


def _resampled_rates(figures: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rates (samples,) of test sets of as many units as ``figures`` (units, 2), drawn with replacement."""
    units = len(figures)
    rates = []
    for _ in range(0, SAMPLES, CHUNK):
        picks = rng.integers(units, size=(CHUNK, units))  # (chunk, units)
        sums = figures[picks].sum(axis=1)  # (chunk, 2): errors, reference
        rates.append(sums[:, 0] / np.maximum(sums[:, 1], 1))
    return np.concatenate(rates)
