"""Tests of the DFSMN: memory against the paper's equation, geometry by hand, padding, training."""

import itertools

import keras
import numpy as np
import pytest

from model_speech.models.dfsmn import DfsmnConfig, build_dfsmn
from utils.backend.model_cost import multiply_accumulates


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
