"""Counts in; the interval that their rate or share lies in, with 95 % confidence and exactly, out."""

from __future__ import annotations

from scipy.stats import beta, chi2

CONFIDENCE = 0.95


def rate_interval(events: int, hours: float) -> tuple[float, float]:
    """Events an hour, of events that come by chance and independently (Poisson).

    Garwood, "Fiducial limits for the Poisson distribution" (Biometrika 28, 1936): exact, by the chi-squared
    distribution. Nothing in 1 h still allows 3.7 an hour.
    """
    tail = (1 - CONFIDENCE) / 2
    low = chi2.ppf(tail, 2 * events) / 2 if events else 0.0
    return float(low / hours), float(chi2.ppf(1 - tail, 2 * events + 2) / 2 / hours)


def share_interval(hits: int, trials: int) -> tuple[float, float]:
    """Share of successes in independent trials (Clopper and Pearson, Biometrika 26, 1934)."""
    tail = (1 - CONFIDENCE) / 2
    low = beta.ppf(tail, hits, trials - hits + 1) if hits else 0.0
    high = beta.ppf(1 - tail, hits + 1, trials - hits) if hits < trials else 1.0
    return float(low), float(high)
