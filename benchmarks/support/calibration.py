"""Features and right or wrong in; the weights of a logistic regression, and its calibration error, out."""

import numpy as np
from scipy.optimize import minimize


def logistic_regression(features: np.ndarray, targets: np.ndarray, penalty: float = 1e-3) -> np.ndarray:
    """Weights (F + 1,), the last one the bias, for features (N, F) and targets (N,) of 0 and 1."""
    inputs = np.hstack([features, np.ones((len(features), 1))])
    signs = np.where(targets, 1.0, -1.0)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (inputs @ weights)
        gradient = -(inputs * (signs * sigmoid(-margins))[:, None]).mean(axis=0)
        return np.logaddexp(
            0, -margins
        ).mean() + penalty / 2 * weights @ weights, gradient + penalty * weights

    return minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="BFGS").x


def calibration_error(probabilities: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error: mean difference of probability and frequency over equal intervals."""
    index = np.minimum((probabilities * bins).astype(int), bins - 1)
    return float(
        sum(abs(probabilities[index == each].sum() - right[index == each].sum()) for each in range(bins))
        / len(right)
    )


def sigmoid(values: np.ndarray) -> np.ndarray:
    """Probabilities of log-odds."""
    return 1 / (1 + np.exp(-np.clip(values, -50, 50)))
