"""model_speech/ctc/prefix_tree.py: the tree's scores are those of each sequence by itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_speech.ctc.alignment import align
from model_speech.ctc.forward_backward import sequence_score
from model_speech.ctc.prefix_tree import PrefixTree
from utils.softmax import log_softmax

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=12)


def _best_path(log_probs: np.ndarray, tokens: list[int], blank: int) -> float:
    """The reference: a path of states (blank, token 1, blank, …) at a time, in plain Python."""
    states = [blank]
    for token in tokens:
        states += [token, blank]
    scores = [0.0] + [-np.inf] * len(states)  # before the first state, then each state
    for frame in log_probs.tolist():
        new = [-np.inf] * len(scores)
        for index, state in enumerate(states):
            choices = [scores[index + 1], scores[index]]
            if index >= 1 and state != blank and (index < 2 or states[index - 2] != state):
                choices.append(scores[index - 1])
            new[index + 1] = max(choices) + frame[state]
        scores = new
    return max(scores[-1], scores[-2])


@given(sequences=SEQUENCES, frames=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_scores_equal_those_of_each_sequence(sequences, frames, seed):
    logits = np.random.default_rng(seed).normal(0, 3, (frames, 4))
    log_probs = log_softmax(logits)
    tree = PrefixTree.build(sequences)
    scores = tree.path_scores(log_probs, blank=3)[tree.ends]
    expected = [_best_path(log_probs, tokens, 3) for tokens in sequences]
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    np.testing.assert_allclose(
        tree.path_scores(log_probs.astype(np.float32), 3)[tree.ends], expected, rtol=1e-4
    )


@given(sequences=SEQUENCES, frames=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_a_path_is_at_most_the_sum_of_all_paths(sequences, frames, seed):
    """Viterbi ≤ forward ≤ Viterbi + log(number of paths), and both say which sequences don't fit."""
    logits = np.random.default_rng(seed).normal(0, 3, (frames, 4))
    tree = PrefixTree.build(sequences)
    scores = tree.path_scores(log_softmax(logits), blank=3)[tree.ends]
    for tokens, score in zip(sequences, scores, strict=True):
        total = sequence_score(logits, tokens, blank=3)
        assert np.isneginf(score) == np.isneginf(total)
        assert score <= total + 1e-9
        assert score == -np.inf or score >= total - frames * np.log(2 * len(tokens) + 1) - 1e-9


def test_scores_equal_those_of_the_alignment():
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 30, size).tolist() for size in rng.integers(1, 8, 200)]
    sequences += [[5, 5], [5, 5, 5, 5], [5], [5, 6, 5]]
    log_probs = log_softmax(rng.normal(0, 2, (40, 31)))
    tree = PrefixTree.build(sequences)
    scores = tree.path_scores(log_probs, blank=30)[tree.ends]
    np.testing.assert_allclose(scores, [_best_path(log_probs, each, 30) for each in sequences], rtol=1e-12)
    best = int(scores.argmax())
    (frames,) = align(log_probs[None], np.array([40]), np.array([0]), [sequences[best]], 30)
    assert len(frames) == len(sequences[best])


def test_common_beginnings_share_nodes():
    tree = PrefixTree.build([[1, 2, 3], [1, 2], [1, 2, 4], [2, 2], [1, 2, 3]])
    assert tree.level_ends.tolist() == [1, 3, 5, 7]
    assert tree.tokens.tolist() == [0, 1, 2, 2, 2, 3, 4]
    assert tree.parents.tolist() == [0, 0, 0, 1, 2, 3, 3]
    assert tree.repeats.tolist() == [4]
    assert tree.ends.tolist() == [5, 3, 6, 4, 5]


@pytest.mark.parametrize("sequences", [[], [[]], [[1], []]])
def test_empty_sequences_are_refused(sequences):
    with pytest.raises(ValueError, match="at least one token"):
        PrefixTree.build(sequences)
