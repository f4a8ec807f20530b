"""Layers over frames, common to the keyword models: (B, T, C) or (B, T, F, C) in, convolved or pooled out.

Time is axis 1. ``padding`` says what lies outside of the clip:

* ``causal``: zeros before the first frame, as many as the window reaches back: no frame sees a later
  one, and the model streams. Over the features as ``same``.
* ``same``: zeros on both sides. Frames see later ones: such a model doesn't stream.
* ``valid``: nothing; the output is shorter by what the window reaches back. Streams too.

Padding is a layer of its own before a ``valid`` convolution: that is the form that the conversion for
streaming knows. With a stride of s the output frames end at the input frames 0, s, 2s, …, as those of
Keras's causal convolutions. Every layer is named, its helpers after it: ``conv_1_pad``, ``conv_1``,
``conv_1_norm``, ``conv_1_act``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import keras
from keras import layers

from model_keyword.layers.layer_lists import check_kernel_fits, check_stride

Padding = Literal["causal", "same", "valid"]
# Where a residual is added, the number of frames must stay.
KeptLength = Literal["causal", "same"]
OUTPUT_LAYER = "logits"  # of every keyword model: its units are the labels
# Runs are short, some thousand steps: Keras's usual 0.99 would still remember the first epochs.
_MOMENTUM = 0.97
_ROUNDING = 1e-6  # of a share of frames


def clip_mean(x, clip_share: float = 1.0):
    """Mean over the clip's frames: (B, T, C) or (B, T, F, C) → (B, C).

    A causal model that streams hears what was before the clip, where a clip alone has the padding's zeros.
    Given sound before the clip (``data.context_ms``), its layers get used to that; only the clip counts here.

    Args:
        x: frames; the sound before the clip first.
        clip_share: of the frames, the last ones, that the clip itself is.
    """
    before = x.shape[1] - math.ceil(x.shape[1] * clip_share - _ROUNDING)
    if len(x.shape) == 4:
        x = layers.Cropping2D(((before, 0), (0, 0)), name="newest")(x) if before else x
        return layers.GlobalAveragePooling2D(name="clip")(x)
    x = layers.Cropping1D((before, 0), name="newest")(x) if before else x
    return layers.GlobalAveragePooling1D(name="clip")(x)


def convolution(
    x,
    filters: int,
    kernel: int | Sequence[int],
    *,
    name: str,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    padding: Padding = "causal",
    feature_padding: Padding | None = None,
    **settings,
):
    """Convolution: (B, T, C) or (B, T, F, C) → (B, T', [F',] filters).

    Args:
        x: frames.
        filters: channels of the output.
        kernel: frames, or (frames, features) for a 4-D input; so are stride and dilation.
        name: of the layer.
        stride: step of the window.
        dilation: distance between what the window sees.
        padding: see the module; over time, and over features if they have none of their own.
        feature_padding: over features.
        **settings: of the Keras layer.

    Raises:
        ConfigError: the kernel doesn't fit into its input, or stride and dilation don't go together.
    """
    layer = layers.Conv1D if len(x.shape) == 3 else layers.Conv2D
    kernel, stride, dilation = _per_axis(x, kernel, stride, dilation)
    check_stride(name, stride, dilation)
    x = _padded(x, kernel, stride, dilation, padding, feature_padding, name)
    return layer(filters, kernel, strides=stride, dilation_rate=dilation, name=name, **settings)(x)


def depthwise(
    x,
    kernel: int | Sequence[int],
    *,
    name: str,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    padding: Padding = "causal",
    feature_padding: Padding | None = None,
    **settings,
):
    """Depthwise convolution, a kernel a channel: (B, T, [F,] C) → (B, T', [F',] C); see `convolution`."""
    layer = layers.DepthwiseConv1D if len(x.shape) == 3 else layers.DepthwiseConv2D
    kernel, stride, dilation = _per_axis(x, kernel, stride, dilation)
    check_stride(name, stride, dilation, depthwise=True)
    x = _padded(x, kernel, stride, dilation, padding, feature_padding, name)
    # Depthwise layers want one number for their stride.
    return layer(kernel, strides=stride[0], dilation_rate=dilation, name=name, **settings)(x)


def max_pooling(x, size: int, stride: int, *, name: str, padding: Padding = "causal"):
    """Largest values of ``size`` frames: (B, T, C), none negative → (B, T', C); the input for a stride of 1.

    Raises:
        ConfigError: the window doesn't fit into its input.
    """
    if stride == 1:
        return x
    x = _padded(x, (size,), (stride,), (1,), padding, None, name)
    return layers.MaxPooling1D(size, strides=stride, name=name)(x)


def normalised(x, name: str, activation: str | None = "relu", *, scale: bool = True):
    """Batch normalisation of each channel, then the activation; both named after the layer before them.

    Args:
        x: output of a layer.
        name: the name of that layer.
        activation: or None.
        scale: whether it learns a factor a channel; needless where the next layer is linear.
    """
    x = layers.BatchNormalization(momentum=_MOMENTUM, scale=scale, name=f"{name}_norm")(x)
    return layers.Activation(activation, name=f"{name}_act")(x) if activation else x


def image_convolutions(config, x, *, normalise: bool = False):
    """A config's lists of convolutions, ``filters``, ``kernels`` and so on: (B, T, F, 1) → (B, T', F', C).

    Args:
        config: with the fields of `model_keyword.models.crnn.CrnnConfig` that describe convolutions.
        x: image.
        normalise: whether batch normalisation follows each activation.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    lists = (config.filters, config.kernels, config.strides, config.dilations, config.activations)
    for number, (filters, kernel, stride, dilation, activation) in enumerate(zip(*lists, strict=True), 1):
        x = convolution(
            x,
            filters,
            kernel,
            stride=stride,
            dilation=dilation,
            padding=config.padding,
            activation=activation,
            name=f"conv_{number}",
        )
        x = normalised(x, f"conv_{number}", None) if normalise else x
    return x


def hidden_layers(x, units: Sequence[int], activations: Sequence[str], name: str = "dense"):
    """Dense layers, one after the other: (…, C) → (…, units[-1])."""
    for number, (size, activation) in enumerate(zip(units, activations, strict=True), 1):
        x = layers.Dense(size, activation=activation, name=f"{name}_{number}")(x)
    return x


def last_state(x, cell: type[keras.Layer], units: Sequence[int], name: str):
    """Recurrent layers, one after the other: (B, T, C) → (B, units[-1]), the last one's state at the end."""
    for number, size in enumerate(units, 1):
        x = cell(size, return_sequences=number < len(units), name=f"{name}_{number}")(x)
    return x


def label_logits(x, labels: int):
    """The model's last layer: (B, C) → logits (B, labels) float32, whatever the precision before it."""
    return layers.Dense(labels, name=OUTPUT_LAYER, dtype="float32")(x)


def as_image(x):
    """Frames of features as an image of one channel: (B, T, F) → (B, T, F, 1)."""
    return layers.Reshape((-1, x.shape[2], 1), name="image")(x)


def _per_axis(x, *settings) -> list[tuple[int, ...]]:
    axes = len(x.shape) - 2
    return [(setting,) * axes if isinstance(setting, int) else tuple(setting) for setting in settings]


def _padded(x, kernel, stride, dilation, padding: Padding, feature_padding: Padding | None, name: str):
    """``x`` with the zeros that the window asks for, in a layer of their own."""
    sizes = x.shape[1:-1]
    paddings = (padding, feature_padding or ("same" if padding == "causal" else padding))
    zeros = [
        _zeros(size, (k - 1) * d + 1, s, kind)
        for size, k, d, s, kind in zip(sizes, kernel, dilation, stride, paddings, strict=False)
    ]
    check_kernel_fits(
        name, [size + sum(pair) for size, pair in zip(sizes, zeros, strict=True)], kernel, dilation
    )
    if not any(map(any, zeros)):
        return x
    if len(zeros) == 1:
        return layers.ZeroPadding1D(zeros[0], name=f"{name}_pad")(x)
    return layers.ZeroPadding2D(zeros, name=f"{name}_pad")(x)


def _zeros(size: int, span: int, stride: int, padding: Padding) -> tuple[int, int]:
    """Zeros before and after an axis of ``size`` for a window of ``span``."""
    if padding == "valid":
        return 0, 0
    if padding == "causal":
        return span - 1, 0
    total = max((-(-size // stride) - 1) * stride + span - size, 0)  # TensorFlow's rule for "same"
    return total // 2, total - total // 2
