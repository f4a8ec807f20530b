"""Tests of models that can't stream: all obstacles are named at once, with alternatives."""

import re

import keras
import pytest
from keras import layers

from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.conversion.plan import check_streamable, require_streamable, stream_geometry
from utils.errors import ConfigError

FRAMES, BINS = 12, 4


class Unknown(keras.layers.Layer):
    def call(self, x):
        return x[:, ::-1]


def residual_of_strides(x):
    y = layers.Conv1D(BINS, 2, strides=2)(x)
    return layers.Add(name="bad")([layers.Cropping1D((0, 6))(x), y])


# name → (layers on (B, 12, 4), obstacle, alternative); the layer's name is "bad"
OBSTACLES = {
    "bidirectional": (
        lambda x: layers.Bidirectional(layers.GRU(2), name="bad")(x),
        "is bidirectional", "in one direction",
    ),
    "same_padding": (
        lambda x: layers.Conv1D(2, 4, padding="same", name="bad")(x),
        "needs 2 future frames", r"causal padding in time$",
    ),
    "same_padding_with_stride": (
        lambda x: layers.Conv1D(2, 3, padding="same", strides=2, name="bad")(x),
        "strides over time with padding 'same'", "padding before it, then 'valid'",
    ),
    "bias_on_padding": (
        lambda x: layers.Conv1D(2, 3)(layers.Dense(3, name="bad")(layers.ZeroPadding1D((2, 0))(x))),
        "gets 2 frames of padding", "pad directly before the convolution",
    ),
    "padding_at_the_end": (
        lambda x: layers.ZeroPadding1D((1, 0))(x),
        "begins with padding", "no padding at the end",
    ),
    "unknown": (
        lambda x: Unknown(name="bad")(x),
        r"a type that isn't known to stream \(Unknown\)", "frame_wise = True",
    ),
    "operation": (
        lambda x: layers.Conv1D(2, 2)(x + keras.ops.flip(x, 1)),
        r"an operation outside of any layer \(Flip\)", "a layer",
    ),
    "strides": (residual_of_strides, r"unequal strides \(1, 2\)", "the same strides"),
    "lengths": (
        lambda x: layers.Add(name="bad")([x, layers.Conv1D(BINS, FRAMES)(x)]),
        "unequal length", "Cropping1D",
    ),
    "joined_in_time": (
        lambda x: layers.Concatenate(axis=1, name="bad")([x, x]),
        r"along time \(axis 1\)", "axis=-1",
    ),
    "normalised_over_time": (
        lambda x: layers.LayerNormalization(axis=(1, 2), name="bad")(x),
        r"works along time \(axis 1\)", "the last",
    ),
    "backwards": (
        lambda x: layers.GRU(2, go_backwards=True, name="bad")(x),
        "go_backwards=True", "go_backwards=False",
    ),
}  # fmt: skip


def model_with(make) -> keras.Model:
    inputs = keras.Input((FRAMES, BINS))
    return keras.Model(inputs, make(inputs), name="model")


@pytest.mark.parametrize("case", OBSTACLES)
def test_an_obstacle_has_a_name_a_reason_and_an_alternative(case):
    make, reason, instead = OBSTACLES[case]
    model = model_with(make)
    obstacle = check_streamable(model)[0]
    assert re.search(reason, obstacle.reason) and re.search(instead, obstacle.instead), obstacle
    if any(layer.name == "bad" for layer in model.layers):
        assert obstacle.layer == "bad"


def test_all_obstacles_are_named_at_once_by_each_function():
    def make(x):
        x = layers.Conv1D(BINS, 3, padding="same", strides=2, name="strided")(x)
        x = layers.Conv1D(BINS, 3, padding="same", name="ahead")(x)
        x = layers.Add(name="sum")([x, layers.BatchNormalization(name="norm")(x)])  # without an obstacle
        return layers.Bidirectional(layers.LSTM(2), name="both_ways")(x)

    model = model_with(make)
    assert [obstacle.layer for obstacle in check_streamable(model)] == ["strided", "ahead", "both_ways"]
    for enter in (require_streamable, stream_geometry, lambda model: to_mode(model, Mode("stream_internal"))):
        with pytest.raises(ConfigError, match=r"model 'model'|can't stream") as error:
            enter(model)
        for part in (
            "'strided'",
            "'ahead' pads time on the right",
            "'both_ways' is bidirectional",
            "instead: ",
        ):
            assert part in str(error.value)


def test_a_window_over_the_whole_clip_needs_a_clip_of_known_length():
    inputs = keras.Input((None, BINS))
    (obstacle,) = check_streamable(keras.Model(inputs, layers.GlobalAveragePooling1D(name="mean")(inputs)))
    assert obstacle.layer == "mean" and "no fixed length" in obstacle.reason


def test_a_model_without_a_graph_is_refused():
    class Opaque(keras.Model):
        def call(self, x):
            return x

    for model in (Opaque(name="opaque"), keras.Sequential([layers.Dense(2)], name="opaque")):
        with pytest.raises(ConfigError, match="'opaque' is not a functional model"):
            check_streamable(model)
