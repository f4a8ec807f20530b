"""Tests of greedy and beam decoding against enumeration and a plain reference."""

import itertools

import numpy as np
import pytest

from model_speech.ctc import prefix_beam
from model_speech.ctc.alignment import align
from model_speech.ctc.decoder import greedy_decode
from model_speech.ctc.prefix_beam import beam_search
from utils.arrays import log_softmax
from utils.hypotheses.recognition import Hypothesis


def collapse(path, blank):
    return tuple(c for c, _ in itertools.groupby(path) if c != blank)


def random_logits(seed, batch=3, time=8, classes=5, spread=2.0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, time + 1, batch)
    lengths[0] = time
    return rng.normal(0.0, spread, (batch, time, classes)).astype(np.float32), lengths


def certain(path, classes, margin=9.0):
    """Logits (1, T, C) with nearly all probability on one path."""
    return margin * np.eye(classes, dtype=np.float32)[list(path)][None]


def label_probabilities(logits, blank):
    """Log-probability of every label sequence, by enumeration of the paths."""
    scores = log_softmax(logits)
    totals = {}
    for path in itertools.product(range(logits.shape[-1]), repeat=len(logits)):
        labels, score = collapse(path, blank), sum(scores[t, c] for t, c in enumerate(path))
        totals[labels] = np.logaddexp(totals.get(labels, -np.inf), score)
    return totals


def extended(beams, frame, blank):
    """Prefix → log-probability of ending in the blank, and in the last token; before a frame and after it."""
    after = {}

    def add(prefix, index, score):
        pair = list(after.get(prefix, (-np.inf, -np.inf)))
        pair[index] = np.logaddexp(pair[index], score)
        after[prefix] = tuple(pair)

    for prefix, (in_blank, in_token) in beams.items():
        total = np.logaddexp(in_blank, in_token)
        add(prefix, 0, total + frame[blank])
        if prefix:
            add(prefix, 1, in_token + frame[prefix[-1]])
        for token in set(range(len(frame))) - {blank}:
            add((*prefix, token), 1, (in_blank if prefix[-1:] == (token,) else total) + frame[token])
    return after


def plain_beam_search(logits, blank, beam):
    """The textbook's prefix beam search with dictionaries."""
    beams = {(): (0.0, -np.inf)}
    for frame in log_softmax(logits):
        after = extended(beams, frame, blank)
        best = sorted(after, key=lambda prefix, after=after: -np.logaddexp(*after[prefix]))[:beam]
        beams = {prefix: after[prefix] for prefix in best}
    return [(prefix, np.logaddexp(*pair)) for prefix, pair in beams.items()]


def test_greedy_merges_repeats_drops_blanks_and_gives_the_peak():
    logits = certain([2, 0, 0, 2, 0, 1, 1, 2], classes=3)
    logits[0, 2, 0] += 5.0  # the first token has its peak in its second frame
    (hypothesis,) = greedy_decode(logits, np.array([8]), blank=2)
    assert hypothesis.tokens == (0, 0, 1)
    assert hypothesis.frames == (2, 4, 5)
    assert hypothesis.score == pytest.approx(0.0, abs=1e-2)


def test_greedy_score_is_that_of_the_best_path():
    logits, lengths = random_logits(0)
    scores = log_softmax(logits)
    for row, hypothesis in enumerate(greedy_decode(logits, lengths, blank=4)):
        path = logits[row, : lengths[row]].argmax(axis=-1)
        assert hypothesis.tokens == collapse(path, 4)
        assert hypothesis.score == pytest.approx(scores[row, np.arange(len(path)), path].sum(), abs=1e-4)


def test_posteriors_are_the_probabilities_of_the_tokens_in_their_frames():
    logits, lengths = random_logits(0)
    probabilities = np.exp(log_softmax(logits))
    beams = beam_search(logits, lengths, blank=4, beam=20, n_best=20)
    for row, hypothesis in enumerate(greedy_decode(logits, lengths, blank=4)):
        for found in (hypothesis, *beams[row]):
            expected = probabilities[row, list(found.frames), list(found.tokens)]
            np.testing.assert_allclose(found.posteriors, expected, rtol=1e-5)


@pytest.mark.parametrize("decode", [greedy_decode, lambda *args: [best for (best,) in beam_search(*args)]])
def test_no_frames_give_the_empty_sequence(decode):
    nothing = Hypothesis((), 0.0, (), ())
    assert decode(np.zeros((1, 0, 4), np.float32), np.array([0]), 3) == [nothing]
    assert decode(np.zeros((0, 5, 4), np.float32), np.zeros(0, int), 3) == []
    assert decode(certain([0, 1], 4), np.array([0]), 3) == [nothing]


@pytest.mark.parametrize(("seed", "time", "classes"), [(0, 4, 3), (1, 5, 3), (2, 3, 4), (3, 6, 2)])
def test_a_beam_that_holds_everything_gives_exact_label_probabilities(seed, time, classes):
    logits, lengths = random_logits(seed, batch=2, time=time, classes=classes)
    found = beam_search(logits, lengths, classes - 1, beam=300, n_best=300)
    for row, hypotheses in enumerate(found):
        expected = label_probabilities(logits[row, : lengths[row]], classes - 1)
        assert {h.tokens for h in hypotheses} == set(expected)
        for hypothesis in hypotheses:
            assert hypothesis.score == pytest.approx(expected[hypothesis.tokens], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_equals_a_plain_prefix_beam_search(beam):
    for seed in range(5):
        logits, lengths = random_logits(seed, time=15)
        for row, hypotheses in enumerate(beam_search(logits, lengths, 4, beam=beam, n_best=beam)):
            expected = plain_beam_search(logits[row, : lengths[row]], 4, beam)
            assert [h.tokens for h in hypotheses] == [prefix for prefix, _ in expected]
            np.testing.assert_allclose([h.score for h in hypotheses], [s for _, s in expected], atol=1e-4)


def test_n_best_is_distinct_sorted_and_timed():
    logits, lengths = random_logits(21, batch=5, time=12)
    for length, hypotheses in zip(lengths, beam_search(logits, lengths, 4, n_best=10), strict=True):
        assert len({h.tokens for h in hypotheses}) == len(hypotheses) <= 10
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for hypothesis in hypotheses:
            assert len(hypothesis.frames) == len(hypothesis.tokens)
            assert list(hypothesis.frames) == sorted(set(hypothesis.frames))
            assert all(0 <= frame < length for frame in hypothesis.frames)


def test_a_batch_decodes_as_its_utterances_alone():
    logits, lengths = random_logits(31, batch=6, time=14)
    logits[np.arange(14) >= lengths[:, None]] = 99.0  # padding must not have an effect
    together = beam_search(logits, lengths, 4, n_best=4)
    for row, hypotheses in enumerate(together):
        (alone,) = beam_search(logits[row : row + 1, : lengths[row]], lengths[row : row + 1], 4, n_best=4)
        assert [h.tokens for h in alone] == [h.tokens for h in hypotheses]
        np.testing.assert_allclose([h.score for h in alone], [h.score for h in hypotheses], atol=1e-6)


def test_unlikely_classes_can_be_left_out():
    logits, lengths = random_logits(41, batch=4, time=20, classes=300, spread=4.0)
    every = beam_search(logits, lengths, 299, candidates=299)
    some = beam_search(logits, lengths, 299, candidates=20)
    assert [h.tokens for (h,) in some] == [h.tokens for (h,) in every]


def trained_like(seed: int, batch: int, time: int, classes: int) -> np.ndarray:
    """Logits with the peaks of a trained model: mostly the blank, sometimes several competing classes."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 1.0, (batch, time, classes)).astype(np.float32)
    logits[..., -1] += 9.0
    for row, frame in zip(*np.nonzero(rng.random((batch, time)) < 0.3), strict=True):
        logits[row, frame, rng.integers(0, classes, 6)] += rng.uniform(4.0, 10.0, 6)
    return logits


@pytest.mark.parametrize("beam", [2, 10])
def test_pruned_classes_do_not_change_the_result(monkeypatch, beam):
    """Classes that can't reach the beam, and those below the least probability."""
    logits, lengths = trained_like(7, batch=12, time=40, classes=400), np.arange(40, 28, -1)
    some = beam_search(logits, lengths, 399, beam=beam, n_best=beam)
    monkeypatch.setattr(prefix_beam, "_viable_count", lambda _, scores: scores.shape[1])
    exact = beam_search(logits, lengths, 399, beam=beam, n_best=beam)
    assert [[h.tokens for h in row] for row in some] == [[h.tokens for h in row] for row in exact]
    monkeypatch.setattr(prefix_beam, "MIN_PROBABILITY", 1e-30)
    every = beam_search(logits, lengths, 399, beam=beam, n_best=beam, candidates=399)
    assert [row[0].tokens for row in some] == [row[0].tokens for row in every]
    np.testing.assert_allclose([row[0].score for row in some], [row[0].score for row in every], atol=1e-3)


def test_impossible_classes_are_never_chosen():
    logits = np.zeros((1, 3, 4), np.float32)
    logits[..., [0, 1]] = -np.inf
    (hypotheses,) = beam_search(logits, np.array([3]), 3, n_best=10)
    assert {h.tokens for h in hypotheses} == {(), (2,), (2, 2)}


def test_alignment_is_the_likeliest_path_of_the_sequence():
    logits, lengths = random_logits(51, batch=3, time=6, classes=3)
    scores = log_softmax(logits)
    sequences = [(0, 1), (1,), ()]
    aligned = align(scores, lengths, np.arange(3), sequences, blank=2)
    for row, (tokens, frames) in enumerate(zip(sequences, aligned, strict=True)):
        paths = [
            path
            for path in itertools.product(range(3), repeat=int(lengths[row]))
            if collapse(path, 2) == tokens
        ]
        best = max(paths, key=lambda path: sum(scores[row, t, c] for t, c in enumerate(path)))
        assert tuple(best[frame] for frame in frames) == tokens


def test_alignment_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="sequence 1 of 2 tokens can't be aligned with 2 frames"):
        align(np.zeros((1, 2, 3)), np.array([2]), np.array([0, 0]), [(0, 1), (0, 0)], blank=2)
