"""Tests of the loss of distillation: formula, gradient, padding."""

import numpy as np
import pytest
import tensorflow as tf

from model_speech.ctc.distillation import distillation_loss
from utils.arrays import softmax

LENGTHS = np.array([5, 3, 1])
VALID = (np.arange(5) < LENGTHS[:, None])[..., None]


@pytest.fixture(scope="module")
def views() -> tuple[np.ndarray, ...]:
    """Two classes of the teacher's in each frame, their probabilities, and the logits of five classes."""
    rng = np.random.default_rng(4)
    classes = rng.permuted(np.tile(np.arange(5), (3, 5, 1)), axis=-1)[..., :2].astype(np.int32)
    probabilities = rng.dirichlet([1, 1], (3, 5)).astype(np.float32)
    return classes, probabilities, rng.normal(0.0, 2.0, (3, 5, 5)).astype(np.float32)


def test_equals_the_divergence_from_the_teacher(views):
    classes, p, logits = views
    q = np.take_along_axis(softmax(logits), classes, axis=-1)
    expected = (p * np.log(p / q) * VALID).sum(axis=(1, 2))
    np.testing.assert_allclose(distillation_loss(*views, LENGTHS), expected, rtol=1e-5)


def test_padding_that_is_not_a_number_has_no_influence(views):
    classes, p, logits = views
    padded = tf.constant(np.where(VALID, logits, np.nan))
    with tf.GradientTape() as tape:
        tape.watch(padded)
        found = distillation_loss(classes, np.where(VALID, p, 0), padded, LENGTHS)
    np.testing.assert_allclose(found, distillation_loss(*views, LENGTHS), rtol=1e-6)
    assert np.isfinite(tape.gradient(found, padded)).all()


def test_a_frame_in_which_the_student_knows_no_class_has_no_influence(views):
    classes, p, logits = views
    without = p.copy()
    without[:, 0] = 0.0
    q = np.take_along_axis(softmax(logits), classes, axis=-1)
    expected = ((p * np.log(p / q)) * VALID)[:, 1:].sum(axis=(1, 2))
    np.testing.assert_allclose(distillation_loss(classes, without, logits, LENGTHS), expected, rtol=1e-5)
