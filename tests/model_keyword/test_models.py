"""Tests of every keyword model: the paper's parameters, recipe, names, stream against the clip."""

import math
from functools import cache
from pathlib import Path

import keras
import numpy as np
import pytest

from model_keyword.layers.front_end import front_end
from model_keyword.layers.time_layers import convolution
from model_keyword.models.bc_resnet import SubSpectralNorm
from model_keyword.registry import MODELS, build_keyword_model
from streaming.conversion.convert import to_mode
from streaming.conversion.plan import check_streamable, stream_geometry
from tests.support.streamed import EXTERNAL, INTERNAL, STREAMS, assert_streams, with_random_weights
from training.tasks.keyword import VARIANTS, KeywordConfig
from utils.backend.model_cost import multiply_accumulates
from utils.config import load_config, read_yaml
from utils.errors import ConfigError
from utils.features.keyword import KeywordFeatureConfig

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "configs" / "keyword" / "speech_commands.yaml"
LABELS = 12
STATISTICS = ("moving_mean", "moving_variance")
NORMALISATION = (*STATISTICS, "gamma")
NO_LOGIT_BIAS = (*NORMALISATION, "beta", "bias")  # the only layer with a bias is that of the logits

# Model → parameters of its recipe with 12 labels; the frames of a call in a stream are a multiple of this.
MODELS_OF_RECIPES = {
    "att_mh_rnn": (258_183, 1),
    "att_rnn": (200_455, None),
    "bc_resnet": (11_648, 1),
    "cnn": (606_732, 1),
    "crnn": (467_772, 1),
    "dnn": (447_308, 1),
    "dnn_raw": (486_988, 1),
    "ds_cnn": (24_908, 2),
    "ds_tc_resnet": (73_220, 1),
    "gru": (593_836, 1),
    "inception": (31_206, 4),
    "inception_resnet": (34_348, 4),
    "lstm": (62_316, 1),
    "mobilenet": (36_364, 8),
    "mobilenet_v2": (29_724, 4),
    "resnet": (20_437, 4),
    "svdf": (32_716, 1),
    "svdf_resnet": (34_508, 4),
    "tc_resnet": (65_836, 8),
    "xception": (32_780, 4),
}


def match_box(blocks, repeats):
    """MatchboxNet blocks x repeats x 64 as settings."""
    return {
        "filters": (128, *(64,) * blocks, 128, 128),
        "repeats": (1, *(repeats,) * blocks, 1, 1),
        "kernels": (11, *range(13, 13 + 2 * blocks, 2), 29, 1),
        "strides": (1,) * (blocks + 3),
        "dilations": (1,) * (blocks + 1) + (2, 1),
        "residuals": (False, *(True,) * blocks, False, False),
    }


# The model of the source: its name, settings, features, labels, parameters that are not counted, thousands of
# parameters that the source states (truncated or rounded), and the exact number.
SOURCES = {
    "arXiv:2005.06720 DNN": ("dnn", {}, 20, 12, (), 447, 447_308),
    "arXiv:2005.06720 CNN": ("cnn", {}, 20, 12, (), 606, 606_732),
    "arXiv:2005.06720 GRU": ("gru", {}, 20, 12, (), 593, 593_836),
    "arXiv:2005.06720 CRNN": ("crnn", {}, 20, 12, (), 467, 467_772),
    "arXiv:2005.06720 SVDF": (
        "svdf",
        {"filters": (256,) * 6, "projections": (*(128,) * 5, 0)},
        30,
        12,
        (),
        354,
        354_444,
    ),
    "arXiv:2005.06720 DS-CNN": (
        "ds_cnn",
        {
            "first_filters": 300,
            "first_kernel": (3, 3),
            "first_stride": (1, 1),
            "first_dilation": (2, 1),
            "filters": (300,) * 5,
            "kernels": ((3, 3), (3, 3), (10, 3), (5, 3), (10, 3)),
            "strides": ((1, 1),) * 5,
            "dilations": ((1, 1), (2, 2), (1, 1), (2, 2), (1, 1)),
            "padding": "valid",
        },
        20,
        12,
        NORMALISATION,
        490,
        490_812,
    ),
    "arXiv:2005.06720 MHAtt-RNN": (
        "att_mh_rnn",
        {"bidirectional": True, "padding": "same"},
        20,
        12,
        (),
        743,
        743_047,
    ),
    "30 K experiments: svdf": ("svdf", {}, 40, 12, (), 32, 32_716),
    "30 K experiments: svdf_resnet": ("svdf_resnet", {}, 40, 12, STATISTICS, 33, 33_568),
    "30 K experiments: mobilenet": ("mobilenet", {}, 40, 12, STATISTICS, 35, 35_084),
    "30 K experiments: mobilenet_v2": ("mobilenet_v2", {}, 30, 12, STATISTICS, 28, 28_316),
    "30 K experiments: xception": ("xception", {}, 30, 12, STATISTICS, 31, 31_740),
    "30 K experiments: inception": ("inception", {}, 30, 12, STATISTICS, 30, 30_234),
    "30 K experiments: inception_resnet": ("inception_resnet", {}, 30, 12, STATISTICS, 33, 33_324),
    "arXiv:1904.03814 TC-ResNet8": ("tc_resnet", {}, 40, 12, (), 66, 65_836),
    "arXiv:1904.03814 TC-ResNet14-1.5": (
        "tc_resnet",
        {"channels": (24, 36, 36, 48, 48, 72, 72)},
        40,
        12,
        (),
        305,
        304_620,
    ),
    "arXiv:2004.08531 3x1x64": ("ds_tc_resnet", {}, 64, 30, STATISTICS, 77, 77_342),
    "arXiv:2004.08531 3x2x64": ("ds_tc_resnet", match_box(3, 2), 64, 30, STATISTICS, 93, 92_894),
    "arXiv:2106.04140 BC-ResNet-1": ("bc_resnet", {}, 40, 12, STATISTICS, 9.2, 9_232),
    "arXiv:2106.04140 BC-ResNet-8": ("bc_resnet", {"scale": 8.0}, 40, 12, STATISTICS, 321, 321_068),
    "arXiv:1710.10361 res8-narrow": ("resnet", {}, 40, 12, NO_LOGIT_BIAS, 19.9, 19_893),
    "arXiv:1710.10361 res8": (
        "resnet",
        {"first_filters": 45, "channels": (45,) * 3},
        40,
        12,
        NO_LOGIT_BIAS,
        110,
        110_295,
    ),
    # 38.6 KB are a byte a weight, and two activations of 25 x 5 x 64
    "arXiv:1711.07128 DS-CNN-S": ("ds_cnn", {}, 10, 12, (*NORMALISATION, "beta"), 38.6 - 16, 22_604),
}

# Small settings, and the frames and features of a clip, for what has to run frame by frame.
SMALL = {
    "att_mh_rnn": (
        {"recurrent_units": (5, 4), "heads": 2, "units": (4,), "unit_activations": ("relu",)},
        12,
        6,
    ),
    "att_rnn": (
        {
            "recurrent_units": (4,),
            "bidirectional": False,
            "padding": "causal",
            "units": (),
            "unit_activations": (),
        },
        12,
        6,
    ),
    "bc_resnet": ({"channels": (4,), "blocks": (2,), "strides": (2,), "dilations": (2,)}, 12, 20),
    "cnn": (
        {
            "filters": (4, 5, 6),
            "kernels": ((3, 3), (3, 2), (2, 1)),
            "dilations": ((1, 1), (2, 1), (3, 1)),
            "strides": ((1, 1),) * 3,
            "activations": ("relu",) * 3,
            "units": (6,),
            "unit_activations": ("relu",),
        },
        14,
        6,
    ),
    "crnn": ({"filters": (4, 4), "recurrent_units": (6, 5), "units": (), "unit_activations": ()}, 12, 7),
    "dnn": ({"frame_units": (6, 5), "units": (6,), "unit_activations": ("relu",)}, 9, 5),
    "dnn_raw": ({"frame_units": (6,), "frame_activations": ("relu",)}, 9, 12),
    "ds_cnn": (
        {
            "first_filters": 4,
            "first_kernel": (4, 3),
            "filters": (5, 6),
            "kernels": ((3, 3), (3, 2)),
            "strides": ((1, 1), (2, 2)),
            "dilations": ((2, 1), (1, 1)),
        },
        18,
        7,
    ),
    "ds_tc_resnet": (
        {
            "filters": (6, 5),
            "repeats": (1, 2),
            "kernels": (4, 3),
            "strides": (2, 1),
            "dilations": (1, 2),
            "residuals": (False, True),
        },
        16,
        5,
    ),
    "gru": ({"recurrent_units": (6, 5), "units": (4,), "unit_activations": ("relu",)}, 9, 5),
    "inception": ({"branch_filters": (3,), "filters": (5,), "kernels": (3,), "strides": (2,)}, 14, 5),
    "inception_resnet": (
        {
            "first_strides": (2,),
            "scales": (0.5,),
            "frame_filters": (3,),
            "window_filters": (4,),
            "filters": (5,),
            "kernels": (3,),
            "strides": (2,),
        },
        16,
        5,
    ),
    "lstm": ({"recurrent_units": (5, 4)}, 9, 5),
    "mobilenet": ({"filters": (5,), "kernels": (4,), "strides": (2,)}, 16, 5),
    "mobilenet_v2": (
        {
            "first_filters": 5,
            "filters": (5, 6),
            "kernels": (3, 4),
            "strides": (1, 2),
            "expansions": (1.5, 2.0),
        },
        16,
        5,
    ),
    "resnet": (
        {
            "first_filters": 4,
            "first_kernel": (5, 3),
            "pooling": (2, 2),
            "channels": (4, 5),
            "strides": ((1, 1), (2, 2)),
        },
        16,
        12,
    ),
    "svdf": (
        {"filters": (6, 5), "memory": (4, 3), "projections": (4, 0), "activations": ("relu", "relu")},
        9,
        5,
    ),
    "svdf_resnet": ({"filters": ((6,), (5, 4)), "memory": ((3,), (4, 3)), "pools": (2, 1)}, 12, 5),
    "tc_resnet": ({"channels": (4, 4, 5), "kernel": 5}, 16, 5),
    "xception": ({"filters": ((5, 6),), "kernels": ((3, 4),), "strides": (2,), "units": (6,)}, 16, 5),
}


@cache
def recipe(name):
    return load_config(KeywordConfig, RECIPE, [f"model.name={name}"], VARIANTS)


@cache
def model_of_recipe(name):
    config = recipe(name)
    return build_keyword_model(config.model, config.features, config.clip_samples, LABELS)


def bare(name, settings, frames, features, labels):
    """The model without its front end."""
    entry = MODELS[name]
    inputs = keras.Input((frames, features))
    return keras.Model(inputs, entry.build(entry.config(**settings), inputs, labels))


def small(name):
    settings, frames, features = SMALL[name]
    return with_random_weights(bare(name, settings, frames, features, 3))


def parameters(model, without=()):
    return sum(math.prod(weight.shape) for weight in model.weights if weight.name not in without)


def test_all_models_are_here():
    assert set(MODELS) == set(MODELS_OF_RECIPES) == set(SMALL)
    assert set(read_yaml(RECIPE)["by_model_name"]) == set(MODELS)
    assert {name: entry.config().name for name, entry in MODELS.items()} == {name: name for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_the_recipe_builds_and_reports_whether_it_streams(name):
    model, (count, step) = model_of_recipe(name), MODELS_OF_RECIPES[name]
    assert model.count_params() == count
    assert model.output.shape == (None, LABELS)
    assert model.output.dtype == "float32"
    obstacles = check_streamable(model)
    assert bool(obstacles) == (step is None), list(map(str, obstacles))
    if step:
        assert stream_geometry(model).frames_per_call == step


@pytest.mark.parametrize("source", SOURCES)
def test_the_number_of_parameters_is_that_of_the_source(source):
    name, settings, features, labels, without, thousands, exact = SOURCES[source]
    is_recipe = not settings and labels == LABELS
    model = model_of_recipe(name) if is_recipe else bare(name, settings, 49, features, labels)
    assert model.input.shape[-1] == features
    assert parameters(model, without) == exact
    decimals = 1 if thousands < 40 and thousands % 1 else 0
    assert round(thousands, decimals) in (
        round(exact / 1000, decimals),
        math.floor(exact / 1000 * 10**decimals) / 10**decimals,
    )


def test_attention_in_both_directions_reaches_from_the_end_of_the_clip_to_its_beginning():
    settings = {"recurrent_units": (4,), "units": (), "unit_activations": ()}
    model = with_random_weights(bare("att_rnn", settings, 9, 5, 3))
    clips = np.random.default_rng(0).normal(size=(2, 9, 5)).astype(np.float32)
    clips[1, :8] = clips[0, :8]
    first, second = np.asarray(model(clips))
    assert np.isfinite(first).all()
    assert np.abs(first - second).max() > 1e-4


@pytest.mark.parametrize("name", SMALL)
def test_a_stream_gives_the_answer_of_the_whole_clip(name, nightly):
    """In longer calls with external state; with --nightly also in short ones with the state inside."""
    model = small(name)
    step = stream_geometry(model).frames_per_call
    assert_streams(model, (EXTERNAL, _longer(model, step)), *([(INTERNAL, step)] if nightly else []))
    costs = [multiply_accumulates(to_mode(model, mode, step), step) for mode in STREAMS]
    assert 0 < costs[0] == costs[1], "the cost of a call depends on who keeps the states"


def _longer(model, step):
    """A longer chunk whose end is the end of the clip."""
    window = stream_geometry(model).window
    return next(frames for frames in range(2 * step, window + 1, step) if window % frames == 0)


def test_no_name_is_that_of_a_front_ends_layer():
    inputs = keras.Input((16000,))
    features = front_end(inputs, KeywordFeatureConfig(kind="raw"))
    before = {layer.name for layer in keras.Model(inputs, features).layers[1:]} | {"samples", "features"}
    assert len(before) > 3
    for name in set(MODELS) - {"dnn_raw"}:
        assert not before & {layer.name for layer in model_of_recipe(name).layers[1:]}


def test_samples_are_refused_where_features_are_given():
    with pytest.raises(
        ConfigError, match=r"dnn_raw takes samples, but features\.kind is mfcc, features\.kind=raw"
    ):
        build_keyword_model(MODELS["dnn_raw"].config(), KeywordFeatureConfig(), 16000, 3)


def test_layers_that_prevent_streaming_are_named():
    obstacles = {obstacle.layer for obstacle in check_streamable(model_of_recipe("att_rnn"))}
    assert obstacles == {"conv_1_pad", "conv_2_pad", "both_ways_1", "both_ways_2"}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "bc_resnet",
            {"blocks": (1,) * 4},
            r"stage_3_block_1_features_norm: 3 features can't be 5 sub-bands of one size",
        ),
        (
            "svdf",
            {"memory": (4, 10, 10, 10, 10, 20)},
            r"layer svdf_6_memory: a kernel of 20 .* input of 10 frames",
        ),
        (
            "svdf_resnet",
            {"memory": ((7,), (7,), (11,))},
            r"in block 3: model\.filters 2, model\.memory 1",
        ),
        ("xception", {"filters": ((32, 40), (64,))}, r"model\.filters 2, model\.kernels 3, model\.strides 3"),
        (
            "ds_cnn",
            {"strides": ((2, 1),) * 4},
            r"layer depthwise_1: a depthwise .* stride of 2 x 1, the same",
        ),
        (
            "mobilenet_v2",
            {"expansions": (0.0,) * 4},
            r"model\.expansions is \(0\.0, .*, above 0",
        ),
        (
            "mobilenet",
            {"padding": "valid", "kernels": (3, 30, 3, 3)},
            r"layer block_2_depthwise: a kernel of 30",
        ),
        ("gru", {"recurrent_units": ()}, r"model\.recurrent_units is \(\), a list of whole numbers"),
        ("dnn", {"frame_units": (), "frame_activations": (), "pool": 5000}, r"layer pool: .* of 980 frames"),
    ],
)
def test_settings_that_do_not_fit_are_named(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        bare(name, settings, 49, 20, 3)


@pytest.mark.parametrize(
    ("frames", "kernel", "stride", "dilation"), [(9, 4, 1, 2), (9, 3, 2, 1), (10, 5, 3, 1)]
)
def test_zeros_on_both_sides_are_those_of_keras(frames, kernel, stride, dilation):
    x = keras.ops.convert_to_tensor(
        np.random.default_rng(0).normal(size=(2, frames, 7, 3)).astype(np.float32)
    )
    kernel, stride, dilation = (kernel, 3), (stride, stride), (dilation, 1)
    inputs = keras.Input(x.shape[1:])
    ours = keras.Model(
        inputs, convolution(inputs, 4, kernel, stride=stride, dilation=dilation, padding="same", name="ours")
    )
    theirs = keras.layers.Conv2D(4, kernel, strides=stride, dilation_rate=dilation, padding="same")
    theirs.build(x.shape)
    theirs.set_weights(ours.get_layer("ours").get_weights())
    np.testing.assert_allclose(ours(x), theirs(x), atol=1e-6)


def test_sub_spectral_norm_normalises_each_band_by_itself():
    layer, x = SubSpectralNorm(2), np.random.default_rng(0).normal(2, 3, (4, 5, 6, 3)).astype(np.float32)
    layer.build(x.shape)
    bands = [keras.layers.BatchNormalization(momentum=layer.momentum) for _ in range(2)]
    for training in (True, True, False):
        expected = [band(x[:, :, 3 * i : 3 * i + 3], training=training) for i, band in enumerate(bands)]
        found = layer(x, training=training)
        np.testing.assert_allclose(found, np.concatenate(expected, axis=2), atol=1e-5)


def test_a_frozen_sub_spectral_norm_has_no_new_statistics():
    layer, x = SubSpectralNorm(2), np.random.default_rng(0).normal(2, 3, (4, 5, 6, 3)).astype(np.float32)
    expected = layer(x)
    layer.trainable = False
    np.testing.assert_array_equal(layer(x, training=True), expected)
    assert not np.any(layer.moving_mean)
