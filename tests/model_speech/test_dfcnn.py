"""Tests of the DFCNN: published geometry by hand, padding, statistics."""

import keras
import numpy as np
import pytest

from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.models.dfcnn import DfcnnConfig, build_dfcnn
from tests.support.acoustic_models import (
    padded_batch,
)
from utils.backend.model_cost import multiply_accumulates
from utils.errors import ConfigError

SMALL = DfcnnConfig(filters=(4, 4, 8, 8), dense=16)


@pytest.fixture(scope="module")
def published():
    return build_dfcnn(DfcnnConfig(), feature_bins=200, classes=1000)


def test_bins_too_few_for_the_poolings_are_refused():
    assert build_dfcnn(SMALL, feature_bins=8, classes=5).output.shape == (None, None, 5)
    with pytest.raises(ConfigError, match=r"7 feature bins can't be halved model\.pooled = 3 times"):
        build_dfcnn(SMALL, feature_bins=7, classes=5)


def test_parameter_count_of_the_published_model(published):
    def cell(inputs, filters):  # two convolutions with bias; four numbers a filter for each normalisation
        return 9 * inputs * filters + filters + 9 * filters * filters + filters + 2 * 4 * filters

    convolutions = cell(1, 32) + cell(32, 64) + cell(64, 128) + 2 * cell(128, 128)
    assert published.count_params() == convolutions + (3200 * 256 + 256) + (256 * 1000 + 1000) == 1_957_064


def test_multiply_accumulates_by_hand(published):
    # Positions of time x frequency, times the kernel's 3 x 3 x in x out; 800 frames are 8 s.
    convolutions = 9 * (
        800 * 200 * (1 * 32 + 32 * 32)
        + 400 * 100 * (32 * 64 + 64 * 64)
        + 200 * 50 * (64 * 128 + 128 * 128)
        + 100 * 25 * 4 * 128 * 128
    )
    dense = 100 * (3200 * 256 + 256 * 1000)
    assert multiply_accumulates(published, 800) == convolutions + dense
    assert (convolutions + dense) / 8 == pytest.approx(0.93e9, rel=0.02)  # a second of audio


def test_normalisation_equals_that_of_keras_given_a_mask():
    import tensorflow as tf

    features, lengths = padded_batch(6)
    frames = np.nan_to_num(features).reshape(3, 45, 2, 3)
    valid = np.arange(45) < lengths[:, None]
    ours, keras_own = MaskedBatchNormalization(), keras.layers.BatchNormalization()
    keras_own(frames)

    def value_and_gradient(layer):
        variable = tf.Variable(frames)
        with tf.GradientTape() as tape:
            output = tf.where(valid[:, :, None, None], layer(variable), 0.0)
            loss = tf.reduce_sum(output**3)
        return output, tape.gradient(loss, variable)

    got = value_and_gradient(lambda x: ours(x, valid, training=True))
    expected = value_and_gradient(lambda x: keras_own(x, mask=valid[:, :, None], training=True))
    np.testing.assert_allclose(got[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(got[1], expected[1] * valid[:, :, None, None], atol=1e-3)
    for weight, other in zip(ours.weights, keras_own.weights, strict=True):
        np.testing.assert_allclose(weight, other, atol=1e-6)
    unpadded = ours(frames[:1], valid[:1])  # inference: the running statistics
    np.testing.assert_allclose(unpadded, keras_own(frames[:1]), atol=1e-5)
