"""TC-ResNet, a residual network that convolves over time only: feature frames in, label logits out.

Choi et al., "Temporal Convolution for Real-time Keyword Spotting on Mobile Devices" (2019,
arXiv:1904.03814). Features are channels, so that the first layer already covers all frequencies and few
layers are enough. A block that changes the number of channels halves the number of frames. The default is the
paper's TC-ResNet8; TC-ResNet14 has two blocks of each size: ``channels: [16, 24, 24, 32, 32, 48, 48]``. The
paper pads on both sides ("same"); the default here pads before the clip only, so that the model can stream.

65,836 parameters (the paper's 66 K) for 40 features and 12 labels, 136,940 (137 K) for TC-ResNet14.
"""

from dataclasses import dataclass

from model_keyword.layers.layer_settings import Counts, KeptLength, LayerSettings
from model_keyword.layers.time_layers import (
    mean_head,
    normalised_convolution,
    residual_block,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class TcResnetConfig(LayerSettings):
    """Settings of `build_tc_resnet`.

    Attributes:
        channels: channels of the first convolution, then of each block.
        first_kernel: size of the first convolution, in frames.
        kernel: size of the convolutions in the blocks, in frames.
        padding: how the clip is padded; see `model_keyword.layers.time_layers`.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "tc_resnet"
    channels: Counts = (16, 24, 32, 48)
    first_kernel: Count = 3
    kernel: Count = 9
    padding: KeptLength = "causal"
    dropout: Fraction = 0.2


def build_tc_resnet(config: TcResnetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32."""
    first, *blocks = config.channels
    settings = {"padding": config.padding}
    x = normalised_convolution(x, first, config.first_kernel, name="conv", **settings)  # (B, T, first)
    for number, channels in enumerate(blocks, 1):
        stride = 2 if x.shape[-1] != channels else 1
        name = f"block_{number}"
        x = residual_block(
            x, channels, config.kernel, stride, name=name, shortcut_activation="relu", **settings
        )
    return mean_head(x, config, labels, clip_fraction)
