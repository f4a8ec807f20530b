"""Scores many token sequences at once on a prefix tree: the best CTC path of each. NumPy only.

Sequences with a common beginning share the nodes of that beginning. The search is the Viterbi algorithm of
CTC over all nodes at once, one frame after the other. It is exact: no hypothesis is pruned. The recognition
of phrases uses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PADDING = -1


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """The common beginnings of S sequences. Node 0 is the empty beginning; N nodes, level by level.

    Attributes:
        tokens: (N,) int, the last token of each node's beginning; 0 for node 0, which has none.
        parents: (N,) int, the node without the last token; 0 for node 0.
        level_ends: (L + 1,) int, number of nodes with at most 0, 1 … L tokens.
        repeats: indices of the nodes whose token is that of their parent: a blank must separate the two.
        ends: (S,) int, the node of each whole sequence.
    """

    tokens: np.ndarray
    parents: np.ndarray
    level_ends: np.ndarray
    repeats: np.ndarray
    ends: np.ndarray

    @staticmethod
    def build(sequences: Sequence[Sequence[int]]) -> "PrefixTree":
        """The tree of S ≥ 1 sequences of tokens ≥ 0, each of at least one token; equal ones share their node.

        Raises:
            ValueError: there is no sequence, or an empty one.
        """
        lengths = np.array([len(sequence) for sequence in sequences])
        if not lengths.size or not lengths.all():
            raise ValueError("a prefix tree needs sequences of at least one token")
        padded = np.full((len(sequences), lengths.max()), PADDING)  # (S, L)
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(sequences)
        classes = int(padded.max()) + 1
        tokens, parents, level_ends = [np.zeros(1, int)], [np.zeros(1, int)], [1]
        current = np.zeros(len(sequences), int)  # (S,), the node of each sequence's first tokens
        for depth, column in enumerate(padded.T):
            longer = lengths > depth
            keys, children = np.unique(current[longer] * classes + column[longer], return_inverse=True)
            tokens.append(keys % classes)
            parents.append(keys // classes)
            current[longer] = level_ends[-1] + children
            level_ends.append(level_ends[-1] + len(keys))
        all_tokens, all_parents = np.concatenate(tokens), np.concatenate(parents)
        is_repeat = (all_tokens == all_tokens[all_parents]) & (all_parents > 0)
        return PrefixTree(
            all_tokens, all_parents, np.array(level_ends), np.flatnonzero(is_repeat), ends=current
        )

    def path_scores(self, log_probs: np.ndarray, blank: int) -> np.ndarray:
        """Log-probability of the best CTC path of each node's tokens through all frames.

        Args:
            log_probs: (T, C) float, log-probabilities of the frames.
            blank: class of the blank.

        Returns:
            (N,) of the same type; -inf for a node that needs more frames. Those of the sequences are at
            ``ends``.
        """
        blank_scores, token_scores, total, entering = np.full((4, len(self.tokens)), -np.inf, log_probs.dtype)
        blank_scores[0] = total[0] = 0.0
        emitted = np.empty_like(total)
        repeats_within = np.searchsorted(self.repeats, self.level_ends)  # number up to each level
        deepest = len(self.level_ends) - 1
        for frame, log_prob in enumerate(log_probs):
            # A node of n tokens can be reached after n frames.
            level = min(frame + 1, deepest)
            size, repeats = self.level_ends[level], self.repeats[: repeats_within[level]]
            total.take(self.parents[:size], out=entering[:size], mode="clip")
            entering[repeats] = blank_scores[self.parents[repeats]]
            entering[0] = -np.inf
            log_prob.take(self.tokens[:size], out=emitted[:size], mode="clip")
            inside = token_scores[:size]
            np.maximum(inside, entering[:size], out=inside)
            inside += emitted[:size]
            np.add(total[:size], log_prob[blank], out=blank_scores[:size])
            np.maximum(blank_scores[:size], inside, out=total[:size])
        return total
