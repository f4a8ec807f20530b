"""Tests of model_speech/ctc/forward_backward.py: sums over all alignments, equal to the beam search."""

import numpy as np
import pytest

from model_speech.ctc.forward_backward import sequence_score
from model_speech.ctc.prefix_beam import beam_search
from model_speech.ctc.shallow_fusion import Fusion

BLANK = 3


class Bigrams:
    """A language model of three tokens with an arbitrary table."""

    history = 1

    def log_probs(self, histories, tokens):
        table = np.log(np.random.default_rng(0).dirichlet(np.ones(4), size=4))
        return table[histories[:, 0]][np.arange(len(tokens))[:, None], tokens]


FUSION = Fusion(Bigrams(), np.array([1, 2, 3, -1]), weight=0.7, bonus=0.4)


@pytest.mark.parametrize("fusion", [None, FUSION], ids=["alone", "fused"])
def test_score_is_the_searches(fusion):
    logits = np.random.default_rng(7).normal(0, 2, (1, 7, 4)).astype(np.float32)
    (found,) = beam_search(logits, np.array([7]), BLANK, beam=200, n_best=20, candidates=4, fusion=fusion)
    assert len(found) == 20
    for hypothesis in found:
        score = sequence_score(logits[0], hypothesis.tokens, BLANK, fusion)
        assert score == pytest.approx(hypothesis.score, abs=1e-4)


def test_sequences_that_do_not_fit_have_no_probability():
    logits = np.zeros((3, 4), np.float32)
    assert sequence_score(logits, (0, 0, 0), BLANK) == -np.inf
    assert sequence_score(logits, (0, 1, 2), BLANK) == pytest.approx(-3 * np.log(4))
    assert sequence_score(logits, (), BLANK) == pytest.approx(-3 * np.log(4))
