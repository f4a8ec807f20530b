"""Tests of the CNN of the specification: each output shape, and messages for invalid settings."""

import pytest

from model_keyword.models.cnn import CnnConfig
from model_keyword.registry import build_keyword_model
from utils.errors import ConfigError
from utils.features.keyword import KeywordFeatureConfig

MFCC = KeywordFeatureConfig()
SECOND = 16000
SHAPES_AND_COUNTS = {
    "conv_1": ((47, 18, 64), 640),
    "conv_2": ((43, 16, 64), 61_504),
    "conv_3": ((35, 14, 64), 61_504),
    "conv_4": ((31, 12, 64), 61_504),
    "conv_5": ((23, 11, 128), 82_048),
    "conv_6": ((19, 11, 64), 41_024),
    "conv_7": ((1, 11, 128), 82_048),
    "dense_1": ((128,), 180_352),
    "dense_2": ((256,), 33_024),
    "logits": ((14,), 3_598),
}


def build(labels=14, **settings):
    return build_keyword_model(CnnConfig(**settings), MFCC, SECOND, labels)


def test_the_ten_output_shapes_and_607246_parameters():
    model = build()
    found = {
        layer.name: (layer.output.shape[1:], layer.count_params()) for layer in model.layers if layer.weights
    }
    assert found == SHAPES_AND_COUNTS
    assert model.get_layer("clip").output.shape == (None, 1408)
    assert model.input.shape == (None, 49, 20)
    assert model.count_params() == 607_246


def test_the_first_dense_layer_is_linear_and_the_second_is_not():
    model = build()
    assert [model.get_layer(name).activation.__name__ for name in ("dense_1", "dense_2", "logits")] == [
        "linear",
        "relu",
        "linear",
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"kernels": ((3, 3), (5, 3), (5, 3), (5, 3), (5, 2), (5, 1), (11, 1))},
            r"layer conv_7: a kernel of 11 x 1 with dilation 2 x 1 doesn't fit into its input of 19 frames x "
            r"11 features, the largest that fits with dilation 2 x 1 is 10 x 11",
        ),
        (
            {"dilations": ((1, 0), *CnnConfig().dilations[1:])},
            r"model\.dilations is .*, \[frames, features\]",
        ),
        ({"activations": ("rellu",) * 7}, r"model\.activations is .*, one of linear, relu"),
        ({"dropout": 1.0}, r"model\.dropout is 1\.0, at least 0 and below 1"),
        (
            {"strides": ((1, 1), (1, 1), (2, 1)) + ((1, 1),) * 4},
            r"layer conv_3: a stride of 2 x 1 together with a dilation of 2 x 1, one of the two must be 1",
        ),
    ],
)
def test_a_setting_that_does_not_fit_is_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        build(**settings)


def test_a_clip_without_a_frame_is_refused():
    with pytest.raises(ConfigError, match="a clip of 600 samples is shorter than one window of 40 ms"):
        build_keyword_model(CnnConfig(), MFCC, 600, 14)


def test_causal_padding_keeps_the_frames_and_takes_any_kernel():
    model = build(padding="causal", kernels=((60, 3), *CnnConfig().kernels[1:]))
    assert model.get_layer("conv_7").output.shape == (None, 49, 20, 128)
