"""Fits logistic regressions, and measures how good probabilities are. NumPy and SciPy only."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

BINS = 10
_PENALTY = 1e-3  # of squared weights: keeps them finite if a feature separates perfectly


def logistic_regression(
    features: np.ndarray, right: np.ndarray, shares: np.ndarray | None = None
) -> np.ndarray:
    """The weights of highest likelihood, with a small penalty for large ones.

    Args:
        features: (N, F) float.
        right: (N,) bool.
        shares: (N,) float, how much each of the N counts; None: equally.

    Returns:
        (F + 1,) float64: the weights of the features, then the offset.
    """
    spread = np.append(np.maximum(features.std(axis=0), 1e-6), 1.0)
    inputs = np.column_stack([features, np.ones(len(features))]) / spread
    signs = np.where(right, 1.0, -1.0)
    shares = np.full(len(right), 1.0) if shares is None else shares
    shares = shares / shares.sum()

    def cost(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (inputs @ weights)
        gradient = -(shares * signs * expit(-margins)) @ inputs
        loss = shares @ np.logaddexp(0.0, -margins)
        return loss + _PENALTY * weights @ weights, gradient + 2 * _PENALTY * weights

    return minimize(cost, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B").x / spread


def probabilities(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(N, F) features and the weights of :func:`logistic_regression` → (N,) probabilities."""
    return expit(features @ weights[:-1] + weights[-1])


def calibration_error(probability: np.ndarray, right: np.ndarray) -> float:
    """Expected calibration error: mean difference of probability and frequency over bins of equal size.

    Guo et al., "On calibration of modern neural networks" (ICML 2017).

    Args:
        probability: (N,) float.
        right: (N,) bool.
    """
    order = np.argsort(probability, kind="stable")
    groups = [group for group in np.array_split(order, BINS) if len(group)]
    gaps = [len(group) * abs(probability[group].mean() - right[group].mean()) for group in groups]
    return float(sum(gaps) / len(probability))


def area_under_curve(probability: np.ndarray, right: np.ndarray) -> float:
    """Area under the ROC curve: how often a right item has a higher probability than a wrong one.

    Ties count half (Hanley & McNeil, 1982, "The meaning and use of the area under a ROC curve").

    Args:
        probability: (N,) float.
        right: (N,) bool.

    Returns:
        0 to 1; NaN if all items are right or all are wrong.
    """
    good, bad = int(right.sum()), int((~right).sum())
    if not good or not bad:
        return float("nan")
    ranks = rankdata(probability)
    return float((ranks[right].sum() - good * (good + 1) / 2) / (good * bad))
