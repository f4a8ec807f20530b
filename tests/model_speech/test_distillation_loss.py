"""Tests of the loss of distillation: formula, gradient, padding."""

import numpy as np
import pytest
import tensorflow as tf

from model_speech.ctc.distillation import distillation_loss
from model_speech.ctc.loss import LOG_ZERO
from utils.arrays import softmax

LENGTHS = np.array([5, 3, 1])
VALID = (np.arange(5) < LENGTHS[:, None])[..., None]


@pytest.fixture(scope="module")
def views() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return tuple(rng.normal(0.0, 2.0, (3, 5, 4)).astype(np.float32) for _ in range(2))


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
