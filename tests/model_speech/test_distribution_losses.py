"""Tests of the losses between two distributions, consistency and distillation: formula, gradient, padding."""

import numpy as np
import pytest
import tensorflow as tf

from model_speech.ctc.distribution_losses import consistency_loss, distillation_loss
from model_speech.ctc.loss import LOG_ZERO
from utils.arrays import softmax

LENGTHS = np.array([5, 3, 1])
VALID = (np.arange(5) < LENGTHS[:, None])[..., None]


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
    expected = np.where(VALID, 0.5 * (softmax(views[0]) - softmax(views[1])), 0.0)
    np.testing.assert_allclose(gradients[0], expected, atol=1e-6)
    np.testing.assert_allclose(gradients[1], -expected, atol=1e-6)


def test_equal_views_cost_nothing(views):
    np.testing.assert_allclose(consistency_loss(views[0], views[0], LENGTHS), 0.0, atol=1e-6)


def test_equals_the_divergence_from_the_teacher(views):
    p, q = (softmax(each.astype(np.float64)) for each in views)
    expected = (p * np.log(p / q) * VALID).sum(axis=(1, 2))
    np.testing.assert_allclose(distillation_loss(*views, LENGTHS), expected, rtol=1e-5)


def test_only_the_student_learns(views):
    teacher, student = map(tf.constant, views)
    with tf.GradientTape() as tape:
        tape.watch((teacher, student))
        total = tf.reduce_sum(distillation_loss(teacher, student, LENGTHS))
    to_teacher, to_student = tape.gradient(total, (teacher, student))
    assert to_teacher is None
    expected = np.where(VALID, softmax(views[1]) - softmax(views[0]), 0.0)
    np.testing.assert_allclose(to_student, expected, atol=1e-6)


def test_padding_that_is_not_a_number_has_no_influence(views):
    teacher, student = (np.where(VALID, each, np.nan) for each in views)
    found = distillation_loss(teacher, student, LENGTHS)
    np.testing.assert_allclose(found, distillation_loss(*views, LENGTHS), rtol=1e-6)


def test_a_class_that_the_teacher_does_not_know(views):
    teacher = views[0].copy()
    teacher[:, :, 2] = LOG_ZERO
    p, q = softmax(np.delete(teacher, 2, axis=-1)), np.delete(softmax(views[1]), 2, axis=-1)
    expected = (p * np.log(p / q) * VALID).sum(axis=(1, 2))
    np.testing.assert_allclose(distillation_loss(teacher, views[1], LENGTHS), expected, rtol=1e-5)
