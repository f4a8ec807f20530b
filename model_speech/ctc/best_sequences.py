"""Finds, in a long list of token sequences, those with the best CTC paths, and computes their exact scores.

Most of many thousand sequences can be excluded without a search: a sequence of tokens scores at most the path
of blanks alone plus, for each token, the most that a run of frames with this token gains over blanks. The
others are searched by CTC's Viterbi algorithm, those with the highest bounds first, until no bound is high
enough. So the result is exact. NumPy only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SEARCHED = 64  # sequences searched at first, then four times as many, and so on


@dataclass(frozen=True, eq=False)
class SequenceTable:
    """S sequences of up to L tokens.

    Attributes:
        tokens: (S, L) int, -1 after the end of a sequence.
        lengths: (S,) int.
        repeats: (S, L) bool, whether a token equals the one before it: a blank must separate them.
        frames: (S,) int, minimum number of frames of a path.
        groups: (S,) int, group of each sequence, ascending from 0; a group counts by its best sequence.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    repeats: np.ndarray
    frames: np.ndarray
    groups: np.ndarray

    @classmethod
    def build(cls, sequences: Sequence[Sequence[int]], groups: Sequence[int]) -> "SequenceTable":
        """The table of S ≥ 1 sequences of at least one token each, and of their groups.

        Raises:
            ValueError: there is no sequence, or an empty one.
        """
        lengths = np.array([len(sequence) for sequence in sequences])
        if not lengths.size or not lengths.all():
            raise ValueError("sequences of at least one token are needed")
        tokens = np.full((len(sequences), lengths.max()), -1)
        inside = np.arange(tokens.shape[1]) < lengths[:, None]
        tokens[inside] = np.concatenate(sequences)
        repeats = np.zeros(tokens.shape, bool)
        repeats[:, 1:] = (tokens[:, 1:] == tokens[:, :-1]) & inside[:, 1:]
        return cls(tokens, lengths, repeats, lengths + repeats.sum(axis=1), np.asarray(groups))

    def best(self, log_probs: np.ndarray, blank: int, count: int, margin: float) -> np.ndarray:
        """The best path of each sequence that is close to the best ones.

        Args:
            log_probs: (T, C) float, log-probabilities of the frames; finite for the tokens and the blank.
            blank: class of the blank.
            count: number of groups whose best sequence is wanted.
            margin: a sequence this much below the best one of the last wanted group need not be scored.

        Returns:
            (S,) float64 scores; -inf for a sequence that is too far below, or needs more frames.
        """
        gains = log_probs - log_probs[:, blank, None]  # (T, C), over a blank in the same frame
        blanks = log_probs[:, blank].sum(dtype=np.float64)
        bounds = self._bounds(gains, blanks)
        scores = np.full(len(bounds), -np.inf)
        best = np.full(self.groups[-1] + 1, -np.inf)  # of each group
        count, lowest, batch = min(count, len(best)), -np.inf, _SEARCHED
        while True:
            chosen = ((bounds >= lowest) & (bounds > -np.inf)).nonzero()[0]
            if not len(chosen):
                return scores
            if len(chosen) > batch:
                chosen = chosen[np.argpartition(-bounds[chosen], batch)[:batch]]
            scores[chosen] = self._path_gains(gains, chosen) + blanks
            bounds[chosen] = -np.inf
            np.maximum.at(best, self.groups[chosen], scores[chosen])
            scored = best[best > -np.inf]  # many equal values would make the partition slow
            if len(scored) >= count:
                lowest = np.partition(scored, len(scored) - count)[-count] - margin
            batch *= 4

    def _bounds(self, gains: np.ndarray, blanks: float) -> np.ndarray:
        """Upper bound of the score of each sequence: (S,). ``blanks``: score of the path of blanks alone."""
        run, best = gains[0].copy(), gains[0].copy()
        for gain in gains[1:]:
            np.maximum(run, 0.0, out=run)
            run += gain
            np.maximum(best, run, out=best)
        best = np.append(best, 0.0).astype(np.float32)  # the last one for columns after the end
        bounds = blanks + best[self.tokens].sum(axis=1)
        bounds += 1e-4 * np.abs(bounds)  # rounding
        bounds[self.frames > len(gains)] = -np.inf
        return bounds

    def _path_gains(self, gains: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Score of the best CTC path of the chosen sequences (N,) over that of blanks alone: (N,)."""
        tokens = np.ascontiguousarray(self.tokens[chosen].T)  # (L, N): the short axis first is faster
        only_after_blank = np.where(self.repeats[chosen].T, -np.inf, 0.0).astype(gains.dtype)
        # Row i: the first i tokens are emitted, and the last frame is a blank, or the last of them.
        after_blank, after_token = np.full((2, len(tokens) + 1, len(chosen)), -np.inf, gains.dtype)
        after_blank[0] = 0.0
        for gain in np.take(gains, tokens, axis=1):  # (L, N)
            entering = np.maximum(after_token[:-1] + only_after_blank, after_blank[:-1])
            np.maximum(after_blank, after_token, out=after_blank)
            np.maximum(after_token[1:], entering, out=after_token[1:])
            after_token[1:] += gain
        return np.maximum(after_blank, after_token)[self.lengths[chosen], np.arange(len(chosen))]
