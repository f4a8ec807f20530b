"""Exact 95 % confidence intervals of an event rate (Garwood) and of a proportion (Clopper-Pearson)."""

from scipy.stats import beta, chi2

CONFIDENCE = 0.95  # of all intervals here


def event_rate_interval(events: int, hours: float) -> tuple[float, float]:
    """Interval of the number of events an hour, for independent random events (Poisson).

    Garwood, "Fiducial limits for the Poisson distribution" (Biometrika 28, 1936): exact, from the chi-squared
    distribution. Without any event in 1 h, the rate may still be 3.7 an hour.
    """
    tail = (1 - CONFIDENCE) / 2
    low = chi2.ppf(tail, 2 * events) / 2 if events else 0.0
    return float(low / hours), float(chi2.ppf(1 - tail, 2 * events + 2) / 2 / hours)


def proportion_interval(hits: int, trials: int) -> tuple[float, float]:
    """Interval of a proportion of successes in independent trials (Clopper and Pearson, Biometrika 1934)."""
    tail = (1 - CONFIDENCE) / 2
    low = beta.ppf(tail, hits, trials - hits + 1) if hits else 0.0
    high = beta.ppf(1 - tail, hits + 1, trials - hits) if hits < trials else 1.0
    return float(low), float(high)
