"""Tests of the DFSMN: memory against the paper's equation, geometry by hand, padding, training."""

import itertools

import keras
import numpy as np
import pytest

from model_speech.models.dfsmn import DfsmnConfig, build_dfsmn
from model_speech.registry import MODELS
from tests.support.acoustic_models import (
    assert_learns_through_a_recipe,
    assert_padding_has_no_influence,
    assert_survives_keras_files,
    assert_weights_round_trip,
)
from utils.backend.model_cost import multiply_accumulates
from utils.errors import ConfigError

SMALL = DfsmnConfig(
    blocks=2, hidden=12, projection=8, past=3, future=2, past_stride=2, future_stride=1, top=1
)


def test_is_registered_by_name():
    assert MODELS["dfsmn"].config is DfsmnConfig
    assert (DfsmnConfig().name, DfsmnConfig().time_stride) == ("dfsmn", 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stack": 0}, r"model\.stack is 0, at least 1"),
        ({"blocks": 0}, r"model\.blocks is 0, at least 1"),
        ({"past": -1}, r"model\.past is -1, at least 0"),
        ({"future_stride": 0}, r"model\.future_stride is 0, at least 1"),
    ],
)
def test_an_impossible_setting_is_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        DfsmnConfig(**settings)


def _weights(model: keras.Model) -> tuple[list, list]:
    """Kernel and bias of the dense layers and filters (taps, channels) of the memory, in order."""
    dense = [layer.get_weights() for layer in model.layers if isinstance(layer, keras.layers.Dense)]
    filters = [
        layer.get_weights()[0][:, :, 0]
        for layer in model.layers
        if isinstance(layer, keras.layers.DepthwiseConv1D)
    ]
    return dense, filters


def _by_the_equations(model: keras.Model, features: np.ndarray, config: DfsmnConfig) -> np.ndarray:
    """One utterance (T, F), T a multiple of the stack, frame by frame as the paper writes it."""
    dense, filters = _weights(model)
    dense, filters = iter(dense), iter(filters)
    x, memory = features.reshape(-1, config.stack * features.shape[1]), None

    def affine(x):
        kernel, bias = next(dense)
        return x @ kernel + bias

    for _ in range(config.blocks):
        p = affine(np.maximum(affine(x), 0))
        a, c = next(filters), next(filters) if config.future else None
        below, memory = memory, p.copy()
        for t, i in itertools.product(range(len(p)), range(config.past + 1)):
            if (source := t - config.past_stride * i) >= 0:
                memory[t] += a[config.past - i] * p[source]  # a convolution's first tap is the earliest
        for t, j in itertools.product(range(len(p)), range(1, config.future + 1)):
            if (source := t + config.future_stride * j) < len(p):
                memory[t] += c[j - 1] * p[source]
        x = memory = memory if below is None else memory + below
    for _ in range(config.top):
        x = np.maximum(affine(x), 0)
    return affine(affine(x))


@pytest.mark.parametrize(("past", "future", "strides"), [(3, 2, (2, 1)), (0, 1, (1, 3)), (2, 0, (1, 1))])
def test_memory_is_that_of_the_equation(past, future, strides):
    keras.utils.set_random_seed(0)
    sizes = {"stack": 2, "blocks": 3, "hidden": 6, "projection": 4, "past": past, "future": future, "top": 1}
    config = DfsmnConfig(**sizes, past_stride=strides[0], future_stride=strides[1])
    model = build_dfsmn(config, feature_bins=5, classes=4)
    for layer in model.layers:  # zero biases would hide mistakes
        layer.set_weights(
            [w + 0.1 * np.random.default_rng(1).normal(size=w.shape) for w in layer.get_weights()]
        )
    features = np.random.default_rng(0).normal(size=(22, 5)).astype(np.float32)
    logits = model({"features": features[None], "lengths": np.array([22], np.int32)})[0]
    np.testing.assert_allclose(logits, _by_the_equations(model, features, config), atol=1e-4)


def test_without_look_ahead_no_frame_waits():
    config = DfsmnConfig(stack=1, blocks=2, hidden=6, projection=4, past=2, future=0, top=0)
    model = build_dfsmn(config, feature_bins=5, classes=4)
    features = np.random.default_rng(0).normal(size=(1, 12, 5)).astype(np.float32)
    whole = model({"features": features, "lengths": np.array([12], np.int32)})
    begun = model({"features": features[:, :7], "lengths": np.array([7], np.int32)})
    np.testing.assert_allclose(whole[:, :7], begun, atol=1e-6)


def test_parameter_count_and_cost_of_the_published_sizes():
    """2048-512(20, 20, 2, 2): a block, and the layers below and above the ten blocks; 80 bins, 3 stacked."""
    block = (2048 * 512 + 512) + (21 + 20) * 512  # to the memory's channels; the filters
    between, below = 512 * 2048 + 2048, 240 * 2048 + 2048
    above = between + (2048 * 2048 + 2048) + (2048 * 512 + 512) + (512 * 1000 + 1000)
    two = build_dfsmn(DfsmnConfig(blocks=2), feature_bins=80, classes=1000)
    assert two.count_params() == below + 2 * block + between + above
    assert below + 10 * block + 9 * between + above == 27_459_048

    biases = 2048 + 2 * 512 + 2 * 2048 + 2048 + 512 + 1000
    assert multiply_accumulates(two, 300) == 100 * (two.count_params() - biases)


def test_layers_follow_the_paper():
    model = build_dfsmn(SMALL, feature_bins=6, classes=5)
    units = [layer.units for layer in model.layers if isinstance(layer, keras.layers.Dense)]
    assert units == [12, 8, 12, 8, 12, 8, 5]  # hidden and projection of two blocks, top, linear, logits
    terms = [len(layer.input) for layer in model.layers if isinstance(layer, keras.layers.Add)]
    assert terms == [3, 4]  # the second block adds the memory of the first


def test_padding_has_no_influence():
    assert_padding_has_no_influence(build_dfsmn(SMALL, 6, 5), 3, 6)


def test_saving_and_loading(tmp_path):
    assert_weights_round_trip(lambda: build_dfsmn(SMALL, 6, 5), tmp_path)
    assert_survives_keras_files(build_dfsmn(SMALL, 6, 5), tmp_path)


def test_learns_through_a_recipe(tiny_manifest, tmp_path):
    settings = ["model.blocks=2", "model.hidden=32", "model.projection=16", "model.past=3", "model.future=3"]
    assert_learns_through_a_recipe("dfsmn", [*settings, "model.top=1"], tiny_manifest, tmp_path)
