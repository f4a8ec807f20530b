"""Building blocks over time that the keyword models share: convolutions, residual blocks, pooling, heads.

They take frames (B, T, C) or (B, T, F, C); time is axis 1. ``padding`` selects what is added around the clip:

* ``causal``: zeros before the first frame only, so that no frame depends on a later one and the model can
  stream. Over the features it is the same as ``same``.
* ``same``: zeros on both sides. Frames depend on later frames: such a model cannot stream.
* ``valid``: no padding; the output is shorter than the input. The model can stream.

Padding is a separate layer before a ``valid`` convolution: the streaming conversion expects this form. With a
stride of s the output frames end at the input frames 0, s, 2s, …, as in Keras's causal convolutions. Every
layer has a name, and its padding, normalisation and activation are named after it: ``conv_1_pad``,
``conv_1``, ``conv_1_norm``, ``conv_1_act``.
"""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import layers

from model_keyword.layers.layer_settings import Padding, check_kernel_fits, check_stride, each_layer
from utils.backend.devices import is_replicated

POOL = 3  # frames of a max pooling, as in the papers of inception and xception
OUTPUT_LAYER = "logits"  # name of the last layer of every keyword model; one unit a label
# Training takes a few thousand steps: with Keras's default of 0.99 the first epochs would still have weight.
_MOMENTUM = 0.97
_ROUNDING = 1e-6  # tolerance for a fraction of frames


def clip_mean(x, clip_fraction: float = 1.0):
    """Mean over the clip's frames: (B, T, C) or (B, T, F, C) → (B, C).

    In a stream, sound precedes a clip; in training, the padding's zeros do. With sound before the clip
    (``data.context_ms``) there is no such difference. The mean covers the frames of the clip only.

    Args:
        x: frames of the context, then of the clip.
        clip_fraction: the fraction of the frames, at the end, that belong to the clip.
    """
    before = x.shape[1] - math.ceil(x.shape[1] * clip_fraction - _ROUNDING)
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
        name: name of the layer.
        stride: step of the window.
        dilation: distance between the inputs of the window.
        padding: padding over time, and over features unless ``feature_padding`` is given; see the module.
        feature_padding: padding over features.
        **settings: further arguments of the Keras layer.

    Raises:
        ConfigError: the kernel is larger than its input, or both stride and dilation are above 1.
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
    """Depthwise convolution, one kernel for each channel: (B, T, [F,] C) → (B, T', [F',] C)."""
    layer = layers.DepthwiseConv1D if len(x.shape) == 3 else layers.DepthwiseConv2D
    kernel, stride, dilation = _per_axis(x, kernel, stride, dilation)
    check_stride(name, stride, dilation, depthwise=True)
    x = _padded(x, kernel, stride, dilation, padding, feature_padding, name)
    # Depthwise layers take one number for the stride.
    return layer(kernel, strides=stride[0], dilation_rate=dilation, name=name, **settings)(x)


def normalised_convolution(x, filters: int, kernel, *, name: str, activation="relu", scale=True, **settings):
    """Convolution without a bias, batch normalisation, activation; see `convolution` and `normalised`."""
    x = convolution(x, filters, kernel, use_bias=False, name=name, **settings)
    return normalised(x, name, activation, scale=scale)


def normalised_depthwise(x, kernel, *, name: str, activation="relu", scale=True, **settings):
    """Depthwise convolution without a bias, batch normalisation, activation."""
    x = depthwise(x, kernel, use_bias=False, name=name, **settings)
    return normalised(x, name, activation, scale=scale)


def normalised_dense(x, units: int, *, name: str, activation="relu", scale=True):
    """Dense layer without a bias, batch normalisation, activation: (…, C) → (…, units)."""
    return normalised(layers.Dense(units, use_bias=False, name=name)(x), name, activation, scale=scale)


def residual_block(x, channels: int, kernel, stride, *, padding, name: str, shortcut_activation=None):
    """Two convolutions with their input added, or its projection where the shape changes.

    Args:
        x: (B, T, C) or (B, T, F, C).
        channels: channels of the output.
        kernel: size of both convolutions.
        stride: stride of the first convolution.
        padding: see the module.
        name: name of the block.
        shortcut_activation: activation after the projection; None: linear.
    """
    settings = {"padding": padding}
    shortcut, stride = x, _per_axis(x, stride)[0]
    if x.shape[-1] != channels or max(stride) > 1:
        shortcut = normalised_convolution(
            x,
            channels,
            1,
            stride=stride,
            name=f"{name}_shortcut",
            activation=shortcut_activation,
            **settings,
        )
    x = normalised_convolution(x, channels, kernel, stride=stride, name=f"{name}_conv_1", **settings)
    x = normalised_convolution(x, channels, kernel, name=f"{name}_conv_2", activation=None, **settings)
    return layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")([x, shortcut]))


def max_pooling(x, size: int, stride: int, *, name: str, padding: Padding = "causal"):
    """Maxima over ``size`` frames: non-negative (B, T, C) → (B, T', C); the input itself for a stride of 1.

    Raises:
        ConfigError: the window is larger than its input.
    """
    if stride == 1:
        return x
    x = _padded(x, (size,), (stride,), (1,), padding, None, name)
    return layers.MaxPooling1D(size, strides=stride, name=name)(x)


def normalised(x, name: str, activation: str | None = "relu", *, scale: bool = True):
    """Batch normalisation of each channel, then the activation; both are named after the layer before them.

    Args:
        x: output of a layer.
        name: the name of that layer.
        activation: name of a Keras activation, or None.
        scale: whether a factor for each channel is learnt; not needed before a linear layer.
    """
    settings = {"momentum": _MOMENTUM, "scale": scale, "synchronized": is_replicated()}
    x = layers.BatchNormalization(**settings, name=f"{name}_norm")(x)
    return layers.Activation(activation, name=f"{name}_act")(x) if activation else x


def image_convolutions(config, x, *, normalise: bool = False):
    """The convolutions that a config lists: (B, T, F, 1) → (B, T', F', C).

    Args:
        config: has ``padding`` and the lists ``filters``, ``kernels``, ``strides``, ``dilations`` and
            ``activations``, with one entry for each layer.
        x: image.
        normalise: whether batch normalisation follows each activation.

    Raises:
        ConfigError: a kernel is too large for its input.
    """
    for number, filters, kernel, stride, dilation, activation in each_layer(
        config.filters, config.kernels, config.strides, config.dilations, config.activations
    ):
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
    """A stack of dense layers: (…, C) → (…, units[-1])."""
    for number, size, activation in each_layer(units, activations):
        x = layers.Dense(size, activation=activation, name=f"{name}_{number}")(x)
    return x


def last_state(x, cell: type[keras.Layer], units: Sequence[int], name: str):
    """A stack of recurrent layers: (B, T, C) → (B, units[-1]), the final state of the last layer."""
    for number, size in enumerate(units, 1):
        x = cell(size, return_sequences=number < len(units), name=f"{name}_{number}")(x)
    return x


def dense_head(x, config, labels: int):
    """Dropout, the dense layers that a config lists, and logits: (B, C) → (B, labels).

    Args:
        x: one vector for each clip.
        config: has ``dropout``, and the lists ``units`` and ``unit_activations``.
        labels: number of labels.
    """
    x = layers.Dropout(config.dropout, name="dropout")(x)
    return label_logits(hidden_layers(x, config.units, config.unit_activations), labels)


def mean_head(x, config, labels: int, clip_fraction: float):
    """Mean over the clip, dropout and logits: (B, T, C) or (B, T, F, C) → (B, labels).

    Args:
        x: frames of the context, then of the clip.
        config: has ``dropout``.
        labels: number of labels.
        clip_fraction: see `clip_mean`.
    """
    x = layers.Dropout(config.dropout, name="dropout")(clip_mean(x, clip_fraction))
    return label_logits(x, labels)


def pooled_convolutions(x, config, settings: dict[str, Any]):
    """The convolutions before the blocks, each with a max pooling after it: (B, T, C) → (B, T', C').

    Args:
        x: frames.
        config: has ``padding`` and the lists ``first_filters``, ``first_kernels`` and ``first_strides``
            (of the pooling), with one entry for each convolution.
        settings: further arguments of `normalised_convolution`.
    """
    for number, filters, kernel, stride in each_layer(
        config.first_filters, config.first_kernels, config.first_strides
    ):
        x = normalised_convolution(x, filters, kernel, name=f"conv_{number}", **settings)
        x = max_pooling(x, POOL, stride, padding=config.padding, name=f"conv_{number}_pool")
    return x


def label_logits(x, labels: int):
    """The last layer: (B, C) → logits (B, labels) float32, also under mixed precision."""
    return layers.Dense(labels, name=OUTPUT_LAYER, dtype="float32")(x)


def as_image(x):
    """Features as an image of one channel: (B, T, F) → (B, T, F, 1)."""
    return layers.Reshape((-1, x.shape[2], 1), name="image")(x)


def _per_axis(x, *settings) -> list[tuple[int, ...]]:
    axes = len(x.shape) - 2
    return [(setting,) * axes if isinstance(setting, int) else tuple(setting) for setting in settings]


def _padded(x, kernel, stride, dilation, padding: Padding, feature_padding: Padding | None, name: str):
    """``x`` with zeros for the window, added by a separate layer."""
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
    """Number of zeros before and after an axis of length ``size`` for a window of length ``span``."""
    if padding == "valid":
        return 0, 0
    if padding == "causal":
        return span - 1, 0
    total = max((-(-size // stride) - 1) * stride + span - size, 0)  # TensorFlow's rule for "same"
    return total // 2, total - total // 2
