"""TC-ResNet, a residual network that convolves over time alone: frames of features in, label logits out.

Choi et al., "Temporal Convolution for Real-time Keyword Spotting on Mobile Devices" (2019,
arXiv:1904.03814). Each feature is a channel, so that the first layer already hears all frequencies and few
layers are enough. A block that changes the number of channels halves the frames. The default is the paper's
TC-ResNet8; more channels of the same number, ``[16, 24, 24, 32, 32, 48, 48]``, make TC-ResNet14. The paper
pads on both sides ("same"); the default here pads before the clip only, so that the model streams.

65,836 parameters (the paper's 66 K) for 40 features and 12 labels, 136,940 (137 K) for TC-ResNet14.
"""

from __future__ import annotations

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_lists import check_layers, check_value
from model_keyword.layers.time_layers import KeptLength, clip_mean, convolution, label_logits, normalised


@dataclass(frozen=True)
class TcResnetConfig:
    """Geometry of `build_tc_resnet`.

    Attributes:
        channels: of the first convolution, then of each block.
        first_kernel: frames that the first convolution sees.
        kernel: frames that the convolutions of the blocks see.
        padding: around the clip; see `model_keyword.layers.time_layers`.
        dropout: share of channels dropped before the logits.
    """

    name: str = "tc_resnet"
    channels: tuple[int, ...] = (16, 24, 32, 48)
    first_kernel: int = 3
    kernel: int = 9
    padding: KeptLength = "causal"
    dropout: float = 0.2

    def __post_init__(self):
        check_layers(self, channels="count")
        check_value(self, channels="counts", first_kernel="count", kernel="count")
        check_value(self, padding="kept_length", dropout="share")


def build_tc_resnet(config: TcResnetConfig, x, labels: int, clip_share: float = 1.0):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.
        clip_share: of the frames, how many make the clip; see `clip_mean`.

    Returns:
        logits (B, L) float32.
    """
    first, *blocks = config.channels
    x = normalised(_convolution(x, first, config.first_kernel, 1, config, "conv"), "conv")  # (B, T, first)
    for number, channels in enumerate(blocks, 1):
        x = _block(x, channels, config, f"block_{number}")
    x = clip_mean(x, clip_share)  # (B, channels)
    return label_logits(layers.Dropout(config.dropout, name="dropout")(x), labels)


def _block(x, channels: int, config: TcResnetConfig, name: str):
    """Residual block: (B, T, C) → (B, T, C), or half the frames with other channels."""
    shortcut, stride = x, 1
    if x.shape[-1] != channels:
        stride = 2
        shortcut = _convolution(x, channels, 1, stride, config, f"{name}_shortcut")
        shortcut = normalised(shortcut, f"{name}_shortcut")
    x = _convolution(x, channels, config.kernel, stride, config, f"{name}_conv_1")
    x = normalised(x, f"{name}_conv_1")
    x = _convolution(x, channels, config.kernel, 1, config, f"{name}_conv_2")
    x = layers.Add(name=f"{name}_add")([normalised(x, f"{name}_conv_2", None), shortcut])
    return layers.ReLU(name=f"{name}_act")(x)


def _convolution(x, filters: int, kernel: int, stride: int, config: TcResnetConfig, name: str):
    return convolution(x, filters, kernel, stride=stride, padding=config.padding, use_bias=False, name=name)
