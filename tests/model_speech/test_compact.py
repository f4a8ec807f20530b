"""Tests of the compact model: geometry, padding, gradients."""

import dataclasses

import keras
import numpy as np
import pytest

from model_speech.models.compact import CompactConfig, build_compact
from tests.model_speech.test_models import assert_padding_has_no_influence
from training.initialise import take_weights
from utils.errors import ConfigError

SMALL = CompactConfig(front_filters=(4, 4), width=16, blocks=2, kernel=5, gate=8)


def open_front_blocks(model: keras.Model) -> None:
    """Set the scales at the end of the front's residual branches, which are zero in a new model."""
    for variable in model.variables:
        if "block" in variable.path and "front" in variable.path and variable.path.endswith("gamma"):
            variable.assign(np.ones(variable.shape))


def test_a_gate_depends_on_the_whole_utterance_and_no_gate_only_on_its_surroundings():
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(1, 240, 6)).astype(np.float32)
    other = frames.copy()
    other[:, 160:] = rng.normal(size=(1, 80, 6))
    for gate, far_away_matters in ((8, True), (0, False)):
        model = build_compact(dataclasses.replace(SMALL, gate=gate), 6, 5)
        first, second = (
            model({"features": x, "lengths": np.array([240], np.int32)}) for x in (frames, other)
        )
        assert (np.abs(first[0, 0] - second[0, 0]).max() > 1e-6) == far_away_matters


@pytest.mark.parametrize(
    ("front", "stride"),
    [
        ({"front_filters": (4,)}, 4),
        ({"front_filters": (4, 4)}, 8),
        ({"front_filters": (4, 4), "front_blocks": (1, 2), "frame_stack": 1}, 4),
        ({"front_filters": (4, 4), "stacked_blocks": 2}, 8),
    ],
)
def test_padding_has_no_influence(front, stride):
    model = build_compact(CompactConfig(**front, width=16, blocks=2, kernel=5), 8, 5)
    open_front_blocks(model)
    assert_padding_has_no_influence(model, stride, 8)


def test_blocks_on_joined_frames_need_pairs_of_bins():
    with pytest.raises(ConfigError, match=r"model\.stacked_blocks with 3 bins"):
        build_compact(dataclasses.replace(SMALL, stacked_blocks=1), 12, 5)


@pytest.mark.parametrize("blocks", [{"front_blocks": (1, 2)}, {"stacked_blocks": 2}])
def test_a_new_front_block_changes_nothing_until_it_is_trained(blocks):
    trained = build_compact(SMALL, 8, 5)
    deeper = build_compact(dataclasses.replace(SMALL, **blocks), 8, 5)
    take_weights(deeper, trained, "trained", {}, ["front_*_block_*"])
    batch = {
        "features": np.random.default_rng(0).normal(size=(1, 40, 8)).astype(np.float32),
        "lengths": np.array([37], np.int32),
    }
    np.testing.assert_array_equal(deeper(batch), trained(batch))
    open_front_blocks(deeper)
    assert np.abs(deeper(batch) - trained(batch)).max() > 1e-3


@pytest.mark.parametrize("front_blocks", [(), (1, 1)])
def test_every_weight_gets_a_gradient_that_padding_leaves_alone(front_blocks):
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    model = build_compact(dataclasses.replace(SMALL, dropout=0.0, front_blocks=front_blocks), 6, 5)
    open_front_blocks(model)
    features = np.random.default_rng(0).normal(size=(2, 24, 6)).astype(np.float32)
    lengths = np.array([24, 10], np.int32)

    def gradients(padding):
        padded = np.pad(features, ((0, 0), (0, padding), (0, 0)), constant_values=3.0)
        with tf.GradientTape() as tape:
            logits = model({"features": padded, "lengths": lengths}, training=True)
            loss = tf.reduce_sum(logits[0, :3] ** 2) + tf.reduce_sum(logits[1, :2] ** 2)
        return tape.gradient(loss, model.trainable_variables)

    for tight, wide, variable in zip(gradients(0), gradients(16), model.trainable_variables, strict=True):
        assert np.abs(tight).max() > 0, variable.path
        np.testing.assert_allclose(wide, tight, rtol=1e-3, atol=1e-3, err_msg=variable.path)
