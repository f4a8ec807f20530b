"""Combines the language models of a search through confusion networks, with their weights, in one score."""

import numpy as np

from model_language.search.grid import HistoryModel, MaskedHistory, MaskedPaths, PathModel


class TokenModel:
    """The language models of a search through networks, and their weights.

    Args:
        history: scores a token given the tokens before it.
        weight: factor of all log-probabilities of tokens.
        bonus: added for each token.
        size: ids from here on are unknown to the models; None: there are none.
        paths: scores the words that tokens form; None: no such model.
    """

    def __init__(
        self,
        history: HistoryModel,
        weight: float,
        bonus: float,
        size: int | None = None,
        paths: PathModel | None = None,
    ):
        self._history = MaskedHistory(history, size) if size else history
        self.paths = MaskedPaths(paths, size) if paths and size else paths
        self.weight, self.bonus = weight, bonus
        self.seen = max(history.history, paths.reach if paths else 0)
        """Number of preceding tokens on which the models depend."""

    def log_probs(self, past: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Weighted log-probabilities: past (N, seen), rows (E,) of it, next tokens (E,) → (E,) float64."""
        histories = past[:, past.shape[1] - self._history.history :]
        return self.weight * self._history.score(histories, rows, tokens).astype(float)

    def preview(self, last: np.ndarray, tokens: np.ndarray) -> np.ndarray | None:
        """A quick approximation of :meth:`log_probs` for last tokens (E,), at most 0; None: there is none."""
        previewed = self._history.preview(last, tokens)
        return None if previewed is None else self.weight * previewed
