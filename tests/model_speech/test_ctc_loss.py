"""Tests of the CTC loss against enumeration and TensorFlow's, and in edge cases."""

import numpy as np
import pytest
import tensorflow as tf

from model_speech.ctc.loss import ctc_loss, frames_needed, output_lengths


def random_case(seed: int, batch: int = 6, time: int = 12, classes: int = 4, longest: int = 5):
    """Padded labels, logits, both lengths; few classes: repeats are common, some targets empty."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes - 1, (batch, longest)).astype(np.int32)
    logits = rng.normal(0.0, 2.0, (batch, time, classes)).astype(np.float32)
    label_lengths = rng.integers(0, longest + 1, batch).astype(np.int32)
    needed = [frames_needed(row[:n]) for row, n in zip(labels, label_lengths, strict=True)]
    logit_lengths = rng.integers(np.maximum(needed, 1), time + 1).astype(np.int32)
    return labels, logits, label_lengths, logit_lengths


def value_and_gradient(loss, logits):
    variable = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(variable)
        each = loss(variable)
        total = tf.reduce_sum(each)
    return each.numpy(), tape.gradient(total, variable).numpy()


def ours(labels, logits, label_lengths, logit_lengths):
    blank = logits.shape[-1] - 1
    return value_and_gradient(lambda x: ctc_loss(labels, x, label_lengths, logit_lengths, blank), logits)


@pytest.mark.parametrize("seed", range(5))
def test_equals_tensorflow_in_value_and_gradient(seed):
    labels, logits, label_lengths, logit_lengths = random_case(seed)

    def theirs(x):
        return tf.nn.ctc_loss(
            labels, x, label_lengths, logit_lengths, logits_time_major=False, blank_index=x.shape[-1] - 1
        )

    expected, expected_gradient = value_and_gradient(theirs, logits)
    losses, gradient = ours(labels, logits, label_lengths, logit_lengths)
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-5)


def test_padding_has_no_influence_and_no_gradient():
    labels, logits, label_lengths, logit_lengths = random_case(7)
    losses, gradient = ours(labels, logits, label_lengths, logit_lengths)
    wider = np.pad(logits, ((0, 0), (0, 5), (0, 0)), constant_values=50.0)
    wider[np.arange(wider.shape[1]) >= logit_lengths[:, None]] = 300.0
    longer = np.pad(labels, ((0, 0), (0, 2)), constant_values=3)  # the blank's class, even
    padded_losses, padded_gradient = ours(longer, wider, label_lengths, logit_lengths)
    np.testing.assert_allclose(padded_losses, losses, rtol=1e-6)
    np.testing.assert_allclose(padded_gradient[:, :12], gradient, atol=1e-6)
    assert not padded_gradient[:, 12:].any()


def test_empty_targets_only():
    logits = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    losses, gradient = ours(np.zeros((2, 0), np.int32), logits, np.zeros(2, np.int32), np.array([3, 2]))
    blanks = tf.nn.log_softmax(logits).numpy()[:, :, 3]
    np.testing.assert_allclose(losses, [-blanks[0].sum(), -blanks[1, :2].sum()], rtol=1e-5)
    assert np.isfinite(gradient).all()


def test_a_target_without_alignment_gives_zero_not_infinity():
    labels = np.array([[0, 0, 0], [0, 1, 2]])
    logits = np.zeros((2, 4, 4), np.float32)
    losses, gradient = ours(labels, logits, np.array([3, 3]), np.array([4, 4]))  # 0_0_0 needs 5 frames
    assert losses[0] == 0.0
    assert not gradient[0].any()
    assert losses[1] > 0.0


def test_half_precision_logits_are_summed_in_float32():
    labels, logits, label_lengths, logit_lengths = random_case(3)
    half = logits.astype(np.float16)
    losses, _ = ours(labels, half, label_lengths, logit_lengths)
    expected, _ = ours(labels, half.astype(np.float32), label_lengths, logit_lengths)
    assert losses.dtype == np.float32
    np.testing.assert_array_equal(losses, expected)


def test_a_long_and_certain_output_stays_exact():
    time = 300
    labels = np.arange(time // 2, dtype=np.int32)[None] % 2
    classes = np.stack([labels, np.full_like(labels, 2)], axis=2).reshape(1, time)  # label, blank, label, …
    logits = 30.0 * np.eye(3, dtype=np.float32)[classes]
    loss = ctc_loss(labels, logits, np.array([time // 2]), np.array([time]), 2)
    assert float(loss[0]) == pytest.approx(0.0, abs=1e-3)
    logits[0, 140] = -logits[0, 140]  # one frame contradicts the target: the loss is finite and not small
    assert 10.0 < float(ctc_loss(labels, logits, np.array([time // 2]), np.array([time]), 2)[0]) < 100.0


def test_output_lengths_round_up():
    np.testing.assert_array_equal(output_lengths(np.array([0, 1, 8, 9, 16]), 8), [0, 1, 1, 2, 2])


@pytest.mark.parametrize(
    ("labels", "frames"), [([], 0), ([5], 1), ([5, 6], 2), ([5, 5], 3), ([5, 5, 5, 6], 6)]
)
def test_frames_needed(labels, frames):
    assert frames_needed(np.array(labels, int)) == frames
