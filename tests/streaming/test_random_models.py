"""Tests of random stacks of layers with any kernels, strides and paddings: the stream equals the model."""

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keras import layers

from streaming.conversion.plan import stream_geometry
from tests.support.streamed import STREAMS, assert_streams, model_of

CHANNELS = 3
LARGEST_WINDOW = 10  # frames: a kernel of 4, dilation 3
kernels = st.integers(1, 4)
# (kind, kernel, stride, dilation, causal)
convolutions = st.tuples(
    st.sampled_from(["conv", "conv", "depthwise", "separable"]),
    kernels,
    st.sampled_from([1, 1, 1, 2, 3]),
    st.integers(1, 3),
    st.booleans(),
)
poolings = st.tuples(
    st.sampled_from(["maximum", "average"]), kernels, st.integers(1, 3), st.just(1), st.booleans()
)
residuals = st.tuples(st.just("residual"), kernels, st.just(1), st.integers(1, 3), st.booleans())
others = st.tuples(
    st.sampled_from(["recurrent", "crop", "norm", "relu"]), kernels, st.just(1), st.just(1), st.just(False)
)
stacks = st.lists(st.one_of(convolutions, poolings, residuals, others), min_size=1, max_size=4)
endings = st.sampled_from(["per frame", "flatten", "average", "gru"])


def padded(x, frames: int):
    if len(x.shape) == 4:
        return layers.ZeroPadding2D(((frames, 0), (0, 0)))(x)
    return layers.ZeroPadding1D((frames, 0))(x)


def cropped(x, left: int, right: int):
    if len(x.shape) == 4:
        return layers.Cropping2D(((left, right), (0, 0)))(x)
    return layers.Cropping1D((left, right))(x)


def convolution(x, kind: str, kernel: int, stride: int, dilation: int):
    dilation = 1 if stride > 1 else dilation
    if len(x.shape) == 3:
        if kind == "depthwise":
            return layers.DepthwiseConv1D(kernel, strides=stride, dilation_rate=dilation)(x)
        of = layers.SeparableConv1D if kind == "separable" else layers.Conv1D
        return of(CHANNELS, kernel, strides=stride, dilation_rate=dilation)(x)
    size, rate = (kernel, 2 if x.shape[2] > 2 else 1), (dilation, 1)
    strides = (stride, 1)
    if kind != "conv" and stride > 1:
        size, strides = (
            (kernel, 1),
            (stride, stride),
        )  # TensorFlow's depthwise convolutions require equal strides
    if kind == "depthwise":
        return layers.DepthwiseConv2D(size, strides=strides, dilation_rate=rate)(x)
    of = layers.SeparableConv2D if kind == "separable" else layers.Conv2D
    return of(CHANNELS, size, strides=strides, dilation_rate=rate)(x)


def block(x, kind: str, kernel: int, stride: int, dilation: int, causal: bool):
    """One random block on (B, T, C) or (B, T, F, C)."""
    two = len(x.shape) == 4
    window = (kernel - 1) * dilation + 1
    if kind in ("conv", "depthwise", "separable"):
        before = (kernel - 1) * (1 if stride > 1 else dilation) if causal else 0
        return convolution(padded(x, before), kind, kernel, stride, dilation)
    if kind in ("maximum", "average"):
        x = padded(x, kernel - 1) if causal else x
        of = {"maximum": (layers.MaxPooling1D, layers.MaxPooling2D)}.get(
            kind, (layers.AveragePooling1D, layers.AveragePooling2D)
        )[two]
        return of((kernel, 1) if two else kernel, (stride, 1) if two else stride)(x)
    if kind == "residual":
        of = layers.DepthwiseConv2D if two else layers.DepthwiseConv1D
        size, rate = ((kernel, 1), (dilation, 1)) if two else (kernel, dilation)
        y = of(size, dilation_rate=rate)(padded(x, window - 1) if causal else x)
        skipped = x if causal else cropped(x, (window - 1) // 2, window - 1 - (window - 1) // 2)
        return layers.Add()([skipped, layers.BatchNormalization()(y)])
    if kind == "recurrent":
        shape = x.shape[1:]
        x = layers.Reshape((shape[0], -1))(x) if two else x
        x = layers.GRU(CHANNELS, return_sequences=True)(x)
        return layers.Reshape((shape[0], 1, CHANNELS))(x) if two else x
    if kind == "crop":
        return cropped(x, kernel - 1, 1)
    return layers.BatchNormalization()(x) if kind == "norm" else layers.ReLU()(x)


def ended(x, ending: str):
    if ending == "per frame":
        return x
    if ending == "flatten":
        return layers.Dense(2)(layers.Flatten()(x))
    if ending == "average":
        return (layers.GlobalAveragePooling2D if len(x.shape) == 4 else layers.GlobalAveragePooling1D)()(x)
    return layers.GRU(2)(layers.Reshape((x.shape[1], -1))(x))


@given(
    stack=stacks,
    ending=endings,
    two=st.booleans(),
    mode=st.sampled_from(STREAMS),
    hops=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def check_random_stack(stack, ending, two, mode, hops, seed):
    # Long enough for the largest windows behind the largest strides.
    inputs = keras.Input((90, 4, 2) if two else (90, CHANNELS))
    x = inputs
    for layer in stack:
        if x.shape[1] >= LARGEST_WINDOW:
            x = block(x, *layer)
    model = model_of(inputs, ended(x, ending), seed)
    facts = stream_geometry(model)
    step = facts.frames_per_call
    assert_streams(model, (mode, hops * step))
    assert all(np.prod(state.shape) > 0 for state in facts.states)


@pytest.mark.timeout(3600)
def test_random_stacks(nightly):
    """Five fixed stacks; 200 others with ``--nightly``."""
    common = {"database": None, "suppress_health_check": list(HealthCheck)}
    examples = settings(max_examples=200 if nightly else 5, derandomize=not nightly, **common)
    examples(check_random_stack)()
