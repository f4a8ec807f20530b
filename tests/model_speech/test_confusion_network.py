"""Tests of confusion networks against enumeration: one-token changes of a sequence, paths of a network."""

import itertools
import math

import numpy as np
import pytest

from model_speech.ctc.decoder import greedy_decode
from model_speech.ctc.forward_backward import sequence_score
from model_speech.ctc.posteriors import confusion_network, scores_of_changes
from utils.arrays import log_softmax
from utils.hypotheses.recognition import NOTHING, ConfusionNetwork, Hypothesis, Slot
from utils.vocabulary import SPACE, Vocabulary

BLANK = 3
VOCABULARY = Vocabulary(("a1", "a2", "a3", "_"))
WITH_SPACE = Vocabulary(("a1", "a2", SPACE, "_"))


def log_probabilities(seed: int, frames: int) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(0, 2, (frames, BLANK + 1))
    return log_softmax(logits)


def slots_of(logits, tokens, frames, vocabulary=VOCABULARY, **settings) -> tuple[Slot, ...]:
    best = Hypothesis(tuple(tokens), 0.0, tuple(frames), (1.0,) * len(tokens))
    return confusion_network(logits, best, vocabulary, **settings).slots


@pytest.mark.parametrize("tokens", [(), (0,), (0, 1), (0, 0), (0, 1, 0), (1, 1, 2, 2)])
@pytest.mark.parametrize("frames", [1, 2, 5, 9])
def test_scores_of_changes_equal_a_score_of_each_sequence(tokens, frames):
    """Each sequence scored separately with all its alignments."""
    log_probs = log_probabilities(len(tokens) + frames, frames)
    classes = np.arange(BLANK)
    found = scores_of_changes(log_probs, np.array(tokens, int), classes, BLANK)

    def score(sequence):
        return sequence_score(log_probs, sequence, BLANK)

    np.testing.assert_allclose(found[::2, -1], score(tokens), atol=1e-9)
    for position in range(len(tokens)):
        rest = tokens[:position], tokens[position + 1 :]
        assert found[2 * position + 1, -1] == pytest.approx(score(rest[0] + rest[1]), abs=1e-9)
        expected = [score((*rest[0], token, *rest[1])) for token in classes]
        np.testing.assert_allclose(found[2 * position + 1, :-1], expected, atol=1e-9)
    for position in range(len(tokens) + 1):
        expected = [score((*tokens[:position], token, *tokens[position:])) for token in classes]
        np.testing.assert_allclose(found[2 * position, :-1], expected, atol=1e-9)


def test_slots_hold_posteriors_best_first():
    log_probs = log_probabilities(3, 8)
    slots = slots_of(log_probs, (0, 2), (2, 6), min_posterior=0.0)
    assert [slot.frame for slot in slots] == [0, 2, 4, 6, 7]
    for slot in slots:
        assert sorted(slot.syllables) == [NOTHING, "a1", "a2", "a3"]
        assert list(slot.log_posteriors) == sorted(slot.log_posteriors, reverse=True)
        assert sum(map(math.exp, slot.log_posteriors)) == pytest.approx(1)
    first = dict(zip(slots[1].syllables, slots[1].log_posteriors, strict=True))
    there, gone = sequence_score(log_probs, (0, 2), BLANK), sequence_score(log_probs, (2,), BLANK)
    assert first["a1"] - first[NOTHING] == pytest.approx(there - gone)


def test_improbable_tokens_and_certain_gaps_are_left_out():
    logits = np.full((5, 4), -20.0)
    logits[[0, 2, 4], BLANK] = 0
    logits[1, 0] = logits[3, 1] = 0.0
    logits[3, 2] = -1.0  # class 2 is the only rival
    slots = slots_of(logits, (0, 1), (1, 3))
    assert [slot.syllables for slot in slots] == [("a1",), ("a2", "a3")]
    assert slots[1].log_posteriors == pytest.approx(
        [-math.log(1 + math.exp(-1)), -1 - math.log(1 + math.exp(-1))]
    )


def test_a_silent_class_is_as_good_as_the_blank():
    log_probs = log_probabilities(4, 6)
    merged = log_probs.copy()
    merged[:, BLANK] = np.logaddexp(log_probs[:, BLANK], log_probs[:, 2])
    merged[:, 2] = -np.inf
    found = slots_of(log_probs, (0,), (3,), WITH_SPACE)
    expected = slots_of(np.where(np.isfinite(merged), merged, -1e9), (0,), (3,))
    assert [slot.syllables for slot in found] == [slot.syllables for slot in expected]
    for slot, other in zip(found, expected, strict=True):
        assert slot.log_posteriors == pytest.approx(other.log_posteriors)


def test_no_token_and_long_silence():
    logits = np.full((700, 4), -30.0)
    logits[:, BLANK] = 0.0
    assert slots_of(logits, (), ()) == ()
    noise = np.zeros((700, 4))  # e^-970 is below the smallest float64: it must have no effect
    assert all(np.isfinite(slot.log_posteriors).all() for slot in slots_of(noise, (0,), (350,)))


def test_a_vocabulary_may_have_no_space():
    logits = 2.0 * np.eye(4, dtype=np.float32)[[3, 0, 3, 1]]
    without = Vocabulary(("a1", "a2", "_"))
    logits[:, 2] = -100.0
    (best,) = greedy_decode(logits[None], np.array([4]), 3)
    expected = confusion_network(logits, best, WITH_SPACE)
    found = confusion_network(np.delete(logits, 2, axis=1), best, without)
    assert [slot.syllables for slot in found.slots] == [slot.syllables for slot in expected.slots]
    for slot, other in zip(found.slots, expected.slots, strict=True):
        np.testing.assert_allclose(slot.log_posteriors, other.log_posteriors, atol=1e-6)


def network(seed: int) -> ConfusionNetwork:
    rng = np.random.default_rng(seed)
    slots = []
    for position in range(5):
        count = int(rng.integers(1, 4))
        names = rng.choice(["ma1", "ma2", "hao3", NOTHING], count, replace=False)
        weights = np.sort(rng.dirichlet(np.ones(count)))[::-1]
        slots.append(Slot(tuple(map(str, names)), tuple(np.log(weights).tolist()), 3 * position))
    return ConfusionNetwork(tuple(slots))


def paths_of(net: ConfusionNetwork) -> dict[tuple[str, ...], float]:
    """Syllables of each path → its highest score, by enumeration."""
    best: dict[tuple[str, ...], float] = {}
    for choice in itertools.product(*(zip(s.syllables, s.log_posteriors, strict=True) for s in net.slots)):
        syllables = tuple(syllable for syllable, _ in choice if syllable != NOTHING)
        best[syllables] = max(best.get(syllables, -math.inf), sum(log for _, log in choice))
    return best


def test_in_a_long_utterance_only_the_weights_near_a_token_matter():
    """Far more tokens than the search looks at around each pair; the scores are exact all the same."""
    rng, count = np.random.default_rng(8), 60
    tokens, frames = rng.integers(0, BLANK, count), 2 + 4 * np.arange(count)
    logits = rng.normal(0, 1, (4 * count + 2, BLANK + 1))
    logits[:, BLANK] += 9
    logits[frames, BLANK] -= 12
    logits[frames, tokens] += 6
    logits[frames[10], [0, 1, 2]] = 7.0, 6.5, 6.0
    slots = slots_of(logits, tokens, frames)
    assert len({slot.frame for slot in slots}) == len(slots) >= count

    def score(position: int, name: str) -> float:
        instead = [VOCABULARY.index(name)] if name != NOTHING else []
        return sequence_score(logits, [*tokens[:position], *instead, *tokens[position + 1 :]], BLANK)

    for position in (0, 10, 31, count - 1):
        (slot,) = (slot for slot in slots if slot.frame == frames[position])
        best = slot.syllables[0]
        for name, log_posterior in zip(slot.syllables, slot.log_posteriors, strict=True):
            expected = score(position, name) - score(position, best)
            assert log_posterior - slot.log_posteriors[0] == pytest.approx(expected, abs=1e-6)
