"""Tests of GRU CTC: the published geometry by hand, both directions, padding, training from a recipe."""

import keras
import numpy as np
import pytest

from model_speech.layers.masking import ReverseFrames
from model_speech.models.gru_ctc import GruCtcConfig, build_gru_ctc
from model_speech.registry import MODELS
from tests.support.acoustic_models import (
    assert_learns_through_a_recipe,
    assert_padding_has_no_influence,
    assert_survives_keras_files,
    assert_weights_round_trip,
    padded_batch,
)
from utils.backend.model_cost import multiply_accumulates
from utils.errors import ConfigError

SMALL = GruCtcConfig(stack=2, width=8, dense=1, recurrent=2)


@pytest.fixture(scope="module")
def reference():
    return build_gru_ctc(GruCtcConfig(), feature_bins=200, classes=1000)


def test_is_registered_by_name():
    assert MODELS["gru_ctc"].config is GruCtcConfig
    assert (GruCtcConfig().name, GruCtcConfig().time_stride, SMALL.time_stride) == ("gru_ctc", 1, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stack": 0}, r"model\.stack is 0, at least 1"),
        ({"width": 0}, r"model\.width is 0, at least 1"),
        ({"recurrent": -1}, r"model\.recurrent is -1, at least 0"),
        ({"dropout": 1.0}, r"model\.dropout is 1\.0, at least 0 and below 1"),
    ],
)
def test_an_impossible_setting_is_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        GruCtcConfig(**settings)


def test_layers_of_the_reference(reference):
    kinds = (keras.layers.Dense, keras.layers.GRU, keras.layers.Dropout, keras.layers.Add)
    shapes = [
        (type(layer).__name__, layer.output.shape[2:])
        for layer in reference.layers
        if isinstance(layer, kinds)
    ]
    before = [("Dropout", (200,)), ("Dense", (512,)), ("Dropout", (512,)), ("Dense", (512,))]
    both = [("Dropout", (512,)), ("GRU", (512,)), ("GRU", (512,)), ("Add", (512,))]
    after = [("Dropout", (512,)), ("Dense", (512,)), ("Dropout", (512,)), ("Dense", (1000,))]
    assert sorted(shapes) == sorted(before + 3 * both + after)
    assert [shape for shape in shapes if shape[0] in ("Dense", "Add")] == [
        *[("Dense", (512,))] * 2,
        *[("Add", (512,))] * 3,
        ("Dense", (512,)),
        ("Dense", (1000,)),
    ]
    assert all(
        isinstance(layer.kernel_initializer, keras.initializers.HeNormal)
        for layer in reference.layers
        if isinstance(layer, kinds[:2])
    )


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


def test_frames_are_turned_around_within_their_utterance():
    frames = np.arange(2 * 4 * 1, dtype=np.float32).reshape(2, 4, 1)
    valid = np.array([[True, True, True, False], [True, False, False, False]])
    turned = ReverseFrames()(frames, valid)
    assert np.asarray(turned)[:, :, 0].tolist() == [[2, 1, 0, 3], [4, 5, 6, 7]]
    np.testing.assert_array_equal(ReverseFrames()(turned, valid), frames)


def test_padding_has_no_influence():
    assert_padding_has_no_influence(build_gru_ctc(SMALL, 6, 5), 2, 6)


def test_saving_and_loading(tmp_path):
    config = GruCtcConfig(stack=8, width=4, recurrent=1)
    assert_weights_round_trip(lambda: build_gru_ctc(config, 6, 5), tmp_path)
    assert_survives_keras_files(build_gru_ctc(config, 6, 5), tmp_path)


@pytest.mark.nightly
def test_learns_through_a_recipe(tiny_manifest, tmp_path):
    settings = ["model.stack=8", "model.width=16", "model.dense=1", "model.recurrent=1"]
    assert_learns_through_a_recipe("gru_ctc", settings, tiny_manifest, tmp_path)
