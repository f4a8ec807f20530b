"""ResNet, a residual network over time and frequency: frames of features in, logits of the labels out.

Tang & Lin, "Deep Residual Learning for Small-Footprint Keyword Spotting" (2018, arXiv:1710.10361): a
convolution, then blocks of two more around which their input goes by, and the mean over what is left. A
kernel that sees a few bins of a few frames answers alike wherever in frequency a pattern lies, so a word
learnt from few voices is heard in others. The default is the paper's res8-narrow, which pools after the first
convolution; strides of the blocks, as in He et al. (2015, arXiv:1512.03385), let channels grow instead. As
there, values are normalised before the activation (the paper: after it). The paper pads on both sides
("same"); the default here pads before the clip only, so that the model streams.

res8-narrow has 19,893 parameters (the paper's 19.9 K) for 12 labels, res8 (45 channels) 110,295 (110 K),
without normalisation and the bias of the logits.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_kernel_fits, check_layers, check_value
from model_keyword.layers.time_layers import (
    KeptLength,
    as_image,
    clip_mean,
    convolution,
    label_logits,
    normalised,
)


@dataclass(frozen=True)
class ResnetConfig:
    """Geometry of `build_resnet`; the lists have an entry a block.

    Attributes:
        first_filters: channels of the first convolution.
        first_kernel: frames and features that it sees.
        first_stride: its steps over frames and features.
        pooling: frames and features that become one after it; what doesn't fill them is left out.
        channels: of each block.
        strides: steps of each block's first convolution over frames and features.
        kernel: frames and features that the convolutions of the blocks see.
        padding: around the clip in time; see `model_keyword.layers.time_layers`.
        dropout: share of channels dropped before the logits.
    """

    name: str = "resnet"
    first_filters: int = 19
    first_kernel: tuple[int, int] = (3, 3)
    first_stride: tuple[int, int] = (1, 1)
    pooling: tuple[int, int] = (4, 3)
    channels: tuple[int, ...] = (19,) * 3
    strides: tuple[tuple[int, int], ...] = ((1, 1),) * 3
    kernel: tuple[int, int] = (3, 3)
    padding: KeptLength = "causal"
    dropout: float = 0.0

    def __post_init__(self):
        check_value(self, first_filters="count", first_kernel="pair", first_stride="pair", pooling="pair")
        check_value(self, kernel="pair", padding="kept_length", dropout="share")
        check_layers(self, channels="count", strides="pair")


def build_resnet(config: ResnetConfig, x, labels: int, clip_share: float = 1.0):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F), log-mel rather than MFCC: neighbours have to be neighbours in frequency.
        labels: L.
        clip_share: of the frames, how many make the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.

    Raises:
        ConfigError: the pooling doesn't fit the features.
    """
    first = (config.first_filters, config.first_kernel, config.first_stride)
    x = normalised(_convolution(as_image(x), *first, config, "conv"), "conv")  # (B, T', F', first_filters)
    if max(config.pooling) > 1:
        check_kernel_fits("pooling", x.shape[1:3], config.pooling)
        x = layers.AveragePooling2D(config.pooling, name="pooling")(x)
    for number, (channels, stride) in enumerate(zip(config.channels, config.strides, strict=True), 1):
        x = _block(x, channels, stride, config, f"block_{number}")
    x = clip_mean(x, clip_share)  # (B, channels)
    return label_logits(layers.Dropout(config.dropout, name="dropout")(x), labels)


def _block(x, channels: int, stride: tuple[int, int], config: ResnetConfig, name: str):
    """Residual block: (B, T, F, C) → (B, T / stride, F / stride, channels)."""
    shortcut = x
    if x.shape[-1] != channels or max(stride) > 1:
        shortcut = _convolution(x, channels, (1, 1), stride, config, f"{name}_shortcut")
        shortcut = normalised(shortcut, f"{name}_shortcut", None)
    x = _convolution(x, channels, config.kernel, stride, config, f"{name}_conv_1")
    x = normalised(x, f"{name}_conv_1")
    x = _convolution(x, channels, config.kernel, (1, 1), config, f"{name}_conv_2")
    x = layers.Add(name=f"{name}_add")([normalised(x, f"{name}_conv_2", None), shortcut])
    return layers.ReLU(name=f"{name}_act")(x)


def _convolution(x, filters: int, kernel, stride, config: ResnetConfig, name: str):
    return convolution(x, filters, kernel, stride=stride, padding=config.padding, use_bias=False, name=name)
