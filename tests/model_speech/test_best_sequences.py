"""Tests of model_speech/ctc/best_sequences.py: scores equal those of single sequences; none is missed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_speech.ctc.alignment import align_text, best_alignments
from model_speech.ctc.best_sequences import SequenceTable
from utils.arrays import log_softmax
from utils.vocabulary import BLANK, SPACE, Vocabulary

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=12)


def _best_path(log_probs: np.ndarray, tokens: list[int], blank: int) -> float:
    """The reference in plain Python: one path of states (blank, token 1, blank, …) at a time."""
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
    log_probs = log_softmax(np.random.default_rng(seed).normal(0, 3, (frames, 4)))
    table = SequenceTable.build(sequences, range(len(sequences)))
    expected = [_best_path(log_probs, tokens, 3) for tokens in sequences]
    scores = table.best(log_probs, 3, len(sequences), margin=np.inf)
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    single = table.best(log_probs.astype(np.float32), 3, len(sequences), margin=np.inf)
    np.testing.assert_allclose(single, expected, rtol=1e-4)


@given(count=st.integers(1, 4), margin=st.floats(0.0, 8.0), seed=st.integers(0, 2**32 - 1))
def test_no_sequence_near_the_best_is_missed(count, margin, seed):
    rng = np.random.default_rng(seed)
    sequences = [rng.integers(0, 30, size).tolist() for size in rng.integers(1, 8, 400)]
    sequences += [[5, 5], [5, 5, 5, 5], [5], [5, 6, 5]]
    groups = np.sort(rng.integers(0, 150, len(sequences)))
    groups = np.unique(groups, return_inverse=True)[1]
    log_probs = log_softmax(rng.normal(0, 3, (25, 31)))
    table = SequenceTable.build(sequences, groups)
    scores = table.best(log_probs, 30, count, margin)
    lengths, rows = np.array([25]), np.zeros(len(sequences), int)
    aligned = best_alignments(log_probs[None], lengths, rows, sequences, 30)
    expected = np.array([alignment.scores.sum() for alignment in aligned])
    scored = scores > -np.inf
    np.testing.assert_allclose(scores[scored], expected[scored], rtol=1e-9)
    threshold = np.sort([expected[groups == group].max() for group in range(groups[-1] + 1)])[-count]
    assert scored[expected >= threshold - margin + 1e-9].all()


@pytest.mark.parametrize("sequences", [[], [[]], [[1], []]])
def test_empty_sequences_are_refused(sequences):
    with pytest.raises(ValueError, match="at least one token"):
        SequenceTable.build(sequences, range(len(sequences)))


def test_a_text_is_aligned_by_its_syllables():
    vocabulary = Vocabulary(("ma1", "ni3", SPACE, BLANK))
    logits = np.full((6, 4), -5.0, np.float32)
    logits[[0, 1, 2, 3, 4, 5], [3, 0, 3, 3, 1, 3]] = 5.0
    frames, log_probabilities = align_text(logits, ("ma1", "ni3"), vocabulary)
    assert frames.tolist() == [1, 4]
    np.testing.assert_allclose(log_probabilities, np.log(1 / (1 + 3 * np.exp(-10.0))), atol=1e-6)
    assert [align_text(logits, text, vocabulary) for text in ((), ("hao3",), ("ma1",) * 4)] == [None] * 3


def test_a_syllable_of_several_readings_has_the_probability_of_any_of_them():
    vocabulary = Vocabulary(("yi1", "yi4", "xie1", BLANK))
    logits = np.full((5, 4), -5.0, np.float32)
    logits[[0, 1, 2, 3, 4], [3, 1, 3, 2, 3]] = 5.0
    readings = [("yi1", "yi4", "yi9"), ("xie1",)]  # the model does not know yi9
    frames, log_probabilities = align_text(logits, ("yi1", "xie1"), vocabulary, readings)
    assert frames.tolist() == [1, 3]
    rest = np.exp(-10.0)
    expected = [(1 + rest) / (1 + 3 * rest), 1 / (1 + 3 * rest)]
    np.testing.assert_allclose(np.exp(log_probabilities), expected, atol=1e-6)
    assert np.exp(align_text(logits, ("yi1", "xie1"), vocabulary)[1])[0] < 1e-4
