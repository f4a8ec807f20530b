"""Tests of the consistency loss of two views: formula in NumPy, gradient, padding."""

import numpy as np
import pytest
import tensorflow as tf

from model_speech.ctc.consistency import consistency_loss
from utils.softmax import softmax

LENGTHS = np.array([5, 3, 1])


@pytest.fixture(scope="module")
def views() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return tuple(rng.normal(0.0, 2.0, (3, 5, 4)).astype(np.float32) for _ in range(2))


def test_equals_half_of_both_divergences(views):
    p, q = (softmax(view.astype(np.float64)) for view in views)
    divergences = 0.5 * ((p - q) * np.log(p / q)).sum(axis=-1)  # KL(q ‖ p) + KL(p ‖ q), (3, 5)
    expected = [row[:frames].sum() for row, frames in zip(divergences, LENGTHS, strict=True)]
    np.testing.assert_allclose(consistency_loss(*views, LENGTHS), expected, rtol=1e-5)


def test_each_view_is_pulled_to_the_other_as_it_is(views):
    """The gradient is ½ (p - q) for the first view: nothing flows through the target."""
    first, second = map(tf.constant, views)
    with tf.GradientTape() as tape:
        tape.watch((first, second))
        total = tf.reduce_sum(consistency_loss(first, second, LENGTHS))
    gradients = tape.gradient(total, (first, second))
    valid = (np.arange(5) < LENGTHS[:, None])[..., None]
    expected = np.where(valid, 0.5 * (softmax(views[0]) - softmax(views[1])), 0.0)
    np.testing.assert_allclose(gradients[0], expected, atol=1e-6)
    np.testing.assert_allclose(gradients[1], -expected, atol=1e-6)


def test_equal_views_cost_nothing(views):
    np.testing.assert_allclose(consistency_loss(views[0], views[0], LENGTHS), 0.0, atol=1e-6)
