"""Tests of the softmax with padding: padding has no weight, and scores stay in a range for 8 bits."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from utils.backend.masked_softmax import masked_softmax

SCORES = np.array([[1.0, -2.0, 3.0, 0.5], [0.0, 0.0, 80.0, -90.0]], np.float32)
VALID = np.array([[True, True, False, True], [True, True, False, False]])


def test_valid_positions_are_weighted_as_if_the_others_were_not_there():
    weights = ops.convert_to_numpy(masked_softmax(SCORES, VALID))
    for row, scores, valid in zip(weights, SCORES, VALID, strict=True):
        alone = np.exp(scores[valid] - scores[valid].max())
        assert row[valid] == pytest.approx(alone / alone.sum(), rel=1e-6)
        assert not row[~valid].any()


def test_gradients_are_those_of_the_valid_scores():
    scores = tf.Variable(SCORES)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(masked_softmax(scores, VALID)[:, 0])
    gradient = tape.gradient(loss, scores).numpy()
    assert np.isfinite(gradient).all() and np.abs(gradient[~VALID]).max() < 1e-8
    assert gradient[1, 0] == pytest.approx(0.25)  # p (1 - p) with p = 1/2
