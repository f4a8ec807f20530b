"""Tests of GRU CTC: the published geometry by hand, both directions, padding, training from a recipe."""

import keras
import numpy as np
import pytest

from model_speech.models.gru_ctc import GruCtcConfig, build_gru_ctc
from tests.support.acoustic_models import (
    padded_batch,
)
from utils.backend.model_cost import multiply_accumulates

SMALL = GruCtcConfig(stack=2, width=8, dense=1, recurrent=2)


@pytest.fixture(scope="module")
def reference():
    return build_gru_ctc(GruCtcConfig(), feature_bins=200, classes=1000)


def test_parameter_count_of_the_reference(reference):
    # A gate reads the frame and the state, and has a bias for each (Keras's form that cuDNN knows).
    gru = 3 * (512 * 512 + 512 * 512 + 2 * 512)
    dense = (200 * 512 + 512) + 2 * (512 * 512 + 512) + (512 * 1000 + 1000)
    assert reference.count_params() == 6 * gru + dense == 10_596_840


def test_multiply_accumulates_by_hand():
    model = build_gru_ctc(SMALL, feature_bins=6, classes=5)
    gru = 3 * (8 * 8 + 8 * 8)
    frame = 12 * 8 + 4 * gru + 8 * 8 + 8 * 5  # two feature frames of 6 bins side by side
    assert multiply_accumulates(model, 40) == 20 * frame
    assert multiply_accumulates(model, 41) == 21 * frame


def test_both_directions_equal_keras_given_a_mask():
    keras.utils.set_random_seed(0)
    config = GruCtcConfig(stack=1, width=4, dense=0, recurrent=1, dropout=0.0)
    ours = build_gru_ctc(config, feature_bins=6, classes=3)
    added = next(layer for layer in ours.layers if isinstance(layer, keras.layers.Add))
    features, lengths = padded_batch(6)
    found = keras.Model(ours.input, added.output)({"features": features, "lengths": lengths}).numpy()
    theirs = keras.layers.Bidirectional(keras.layers.GRU(4, return_sequences=True), merge_mode="sum")
    theirs.build((None, None, 6))
    theirs.forward_layer.set_weights(ours.get_layer("forward_1").get_weights())
    theirs.backward_layer.set_weights(ours.get_layer("backward_1").get_weights())
    valid = np.arange(45) < lengths[:, None]
    expected = theirs(np.nan_to_num(features), mask=valid).numpy()
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(found[row, :length], expected[row, :length], atol=1e-6)
