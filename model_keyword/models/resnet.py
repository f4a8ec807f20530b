"""ResNet, a residual network over time and frequency: feature frames in, label logits out.

Tang & Lin, "Deep Residual Learning for Small-Footprint Keyword Spotting" (2018, arXiv:1710.10361): a
convolution, blocks of two convolutions with residual connections, and the mean over time and frequency. A
kernel over a few bins of a few frames detects a pattern at any frequency, so a word learnt from few voices is
also recognised in others. The default is the paper's res8-narrow, which pools after the first
convolution; strides of the blocks, as in He et al. (2015, arXiv:1512.03385), let channels grow instead. As
there, values are normalised before the activation (the paper: after it). The paper pads on both sides
("same"); the default here pads before the clip only, so that the model can stream.

res8-narrow has 19,893 parameters (the paper's 19.9 K) for 12 labels, res8 (45 channels) 110,295 (110 K),
without normalisation and the bias of the logits.
"""

from dataclasses import dataclass

from keras import layers

from model_keyword.layers.layer_settings import KeptLength, LayerSettings, Pair, check_kernel_fits, each_layer
from model_keyword.layers.time_layers import (
    as_image,
    mean_head,
    normalised_convolution,
    residual_block,
)
from utils.limits import Count, Fraction


@dataclass(frozen=True)
class ResnetConfig(LayerSettings):
    """Settings of `build_resnet`; the lists have one entry for each block.

    Attributes:
        first_filters: channels of the first convolution.
        first_kernel: its size over frames and features.
        first_stride: its stride over frames and features.
        pooling: size of the average pooling over frames and features; incomplete windows are dropped.
        channels: output channels of each block.
        strides: strides of each block's first convolution, over frames and features.
        kernel: size of the convolutions in the blocks, over frames and features.
        padding: how the clip is padded in time; see `model_keyword.layers.time_layers`.
        dropout: fraction of channels dropped before the logits.
    """

    name: str = "resnet"
    first_filters: Count = 19
    first_kernel: Pair = (3, 3)
    first_stride: Pair = (1, 1)
    pooling: Pair = (4, 3)
    channels: tuple[Count, ...] = (19,) * 3
    strides: tuple[Pair, ...] = ((1, 1),) * 3
    kernel: Pair = (3, 3)
    padding: KeptLength = "causal"
    dropout: Fraction = 0.0


def build_resnet(config: ResnetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32.

    The features are log mel rather than MFCC: neighbouring values must be neighbouring frequencies.

    Raises:
        ConfigError: the pooling is larger than its input.
    """
    settings = {"padding": config.padding}
    x = normalised_convolution(
        as_image(x),
        config.first_filters,
        config.first_kernel,
        stride=config.first_stride,
        name="conv",
        **settings,
    )  # (B, T', F', first_filters)
    if max(config.pooling) > 1:
        check_kernel_fits("pooling", x.shape[1:3], config.pooling)
        x = layers.AveragePooling2D(config.pooling, name="pooling")(x)
    for number, channels, stride in each_layer(config.channels, config.strides):
        x = residual_block(x, channels, config.kernel, stride, name=f"block_{number}", **settings)
    return mean_head(x, config, labels, clip_fraction)
