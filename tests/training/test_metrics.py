"""Tests of training/metrics.py: equal to the plain functions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from model_speech.ctc.greedy import greedy_decode
from model_speech.ctc.loss import output_lengths
from training.metrics import character_errors, edit_distances, syllable_errors
from utils.metrics import count_errors

CLASSES, BLANK, BINS = 7, 6, 16
TOKENS = st.lists(st.integers(0, 3), max_size=7)


def ragged(rows: list[list[int]], width: int, padding: int) -> np.ndarray:
    return np.array([row + [padding] * (width - len(row)) for row in rows], np.int32)


@settings(max_examples=20)
@given(st.lists(st.tuples(TOKENS, TOKENS), min_size=3, max_size=3), st.randoms(use_true_random=False))
def test_distances_are_those_of_levenshtein(pairs, random):
    references, hypotheses = zip(*pairs, strict=True)
    scattered = []  # ignored positions are anywhere between the tokens
    for hypothesis in hypotheses:
        places = sorted(random.sample(range(9), len(hypothesis)))
        row = np.full(9, -1, np.int32)
        row[places] = hypothesis
        scattered.append(row)
    lengths = np.array([len(reference) for reference in references], np.int32)
    found = edit_distances(ragged(list(references), 7, 2), lengths, np.stack(scattered))
    expected = [count_errors(*pair).errors for pair in pairs]
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


def speech_batch(seed: int, utterances: int = 6) -> dict[str, np.ndarray]:
    """Random features and labels of many lengths; the last two utterances have no label."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, 41, utterances).astype(np.int32)
    label_lengths = np.minimum(rng.integers(1, 6, utterances), lengths // 8).astype(np.int32)
    label_lengths[-2:] = 0
    return {
        "features": rng.normal(size=(utterances, 40, BINS)).astype(np.float32),
        "lengths": lengths,
        "labels": rng.integers(0, BLANK, (utterances, 5)).astype(np.int32),
        "label_lengths": label_lengths,
        "frames": output_lengths(lengths, 8),
    }


def test_syllable_errors_are_those_of_the_plain_functions():
    for seed in (1, 2):
        batch = speech_batch(seed)
        logits = np.random.default_rng(seed).normal(size=(6, 5, CLASSES)).astype(np.float32)
        found = syllable_errors(logits, batch["labels"], batch["label_lengths"], batch["frames"], BLANK)
        readings = greedy_decode(logits, batch["frames"], BLANK)
        rows = zip(batch["labels"], batch["label_lengths"], readings, strict=True)
        expected = [
            count_errors(row[:length].tolist(), list(reading.tokens)).errors for row, length, reading in rows
        ]
        assert ops.convert_to_numpy(found).tolist() == expected and sum(expected) > 5


def test_character_errors_by_hand():
    candidates = np.array([[1, 0], [1, 0], [2, 3], [4, 0]])
    syllables, targets = np.array([[2, 3, 2], [2, 0, 0]]), np.array([[2, 4, 2], [3, 0, 0]])
    logits = np.zeros((2, 3, 5), np.float32)
    logits[:, :, 3] = 1  # syllable 2 is read as hanzi 3: wrong, wrong, right; syllable 3 can only be hanzi 4
    errors, lengths = character_errors(logits, syllables, targets, candidates)
    assert ops.convert_to_numpy(errors).tolist() == [2, 0]
    assert ops.convert_to_numpy(lengths).tolist() == [3, 1]
