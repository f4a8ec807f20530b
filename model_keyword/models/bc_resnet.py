"""BC-ResNet, with residuals broadcast over frequency: log-mel feature frames in, label logits out.

Kim et al., "Broadcasted Residual Learning for Efficient Keyword Spotting" (2021, arXiv:2106.04140): a block
convolves over frequency, takes the mean over frequency, convolves the mean over time, and adds the result to
every frequency. Most convolutions are thus one-dimensional, and the position in frequency is kept.
Sub-spectral normalisation is batch normalisation of each band of features by itself (Chang et al.,
"SubSpectral Normalization for Neural Audio Data Processing", 2021, arXiv:2103.13620).
The paper pads time on both sides; the default here pads before the clip only, so that the model can stream.

``scale`` is the number in the paper's names: BC-ResNet-1 has 9,232 parameters (the paper's 9.2 K) for 40
features and 12 labels, BC-ResNet-8 321,068 (321 K), not counting the moving statistics of the normalisation.
"""

from dataclasses import dataclass

import keras
from keras import layers, ops

from model_keyword.layers.layer_settings import KeptLength, LayerSettings, each_layer
from model_keyword.layers.time_layers import (
    as_image,
    clip_mean,
    depthwise,
    label_logits,
    normalised_convolution,
    normalised_depthwise,
)
from utils.backend.devices import is_replicated
from utils.errors import ConfigError
from utils.limits import Count, Fraction, Positive


@dataclass(frozen=True)
class BcResnetConfig(LayerSettings):
    """Settings of `build_bc_resnet`; the lists have one entry for each stage.

    Attributes:
        scale: factor for all numbers of channels.
        first_filters: channels of the first convolution, which halves the features.
        channels: channels of each stage.
        blocks: blocks of each stage; the first of them changes the channels.
        strides: stride of the first block over the features.
        dilations: dilation of the convolution over three frames in each block.
        last_filters: channels before the logits.
        bands: sub-bands of the normalisation; must divide the number of features, also after each stride.
        padding: how the clip is padded in time; see `model_keyword.layers.time_layers`.
        dropout: fraction of channels that a block drops.
    """

    name: str = "bc_resnet"
    scale: Positive = 1.0
    first_filters: Count = 16
    channels: tuple[Count, ...] = (8, 12, 16, 20)
    blocks: tuple[Count, ...] = (2, 2, 4, 4)
    strides: tuple[Count, ...] = (1, 2, 2, 1)
    dilations: tuple[Count, ...] = (1, 2, 4, 8)
    last_filters: Count = 32
    bands: Count = 5
    padding: KeptLength = "causal"
    dropout: Fraction = 0.1

    def scaled(self, channels: int) -> int:
        """Number of channels, multiplied by ``scale``."""
        return max(1, int(channels * self.scale))


def build_bc_resnet(config: BcResnetConfig, x, labels: int, clip_fraction: float = 1.0):
    """Features (B, T, F) → logits (B, labels) float32.

    The features are log mel rather than MFCC: neighbouring values must be neighbouring frequencies.

    Raises:
        ConfigError: the sub-bands do not divide the features, or there are too few features.
    """
    first_filters = config.scaled(config.first_filters)
    x = normalised_convolution(
        as_image(x), first_filters, (5, 5), stride=(1, 2), padding=config.padding, name="conv"
    )  # (B, T, F / 2, C)
    for stage, channels, blocks, stride, dilation in each_layer(
        config.channels, config.blocks, config.strides, config.dilations
    ):
        for block in range(1, blocks + 1):
            name = f"stage_{stage}_block_{block}"
            x = _block(x, config.scaled(channels), stride if block == 1 else 1, dilation, config, name)
    x = depthwise(
        x, (5, 5), padding=config.padding, feature_padding="valid", use_bias=False, name="last_depthwise"
    )
    x = layers.AveragePooling2D((1, x.shape[2]), name="all_features")(x)  # (B, T, 1, C)
    x = normalised_convolution(x, config.scaled(config.last_filters), 1, name="last_mix")
    x = clip_mean(x, clip_fraction)  # (B, C)
    return label_logits(x, labels)


def _block(x, channels: int, stride: int, dilation: int, config: BcResnetConfig, name: str):
    """y = f2(x) + f1(mean(f2(x))), plus x if its shape is the same: (B, T, F, C) → (B, T, F', C')."""
    shortcut, is_transition = x, x.shape[-1] != channels or stride > 1
    if is_transition:
        x = normalised_convolution(x, channels, 1, name=f"{name}_channels")
    x = _over_features(x, stride, config, f"{name}_features")
    frames = _over_time(x, dilation, config, f"{name}_time")  # (B, T, 1, C')
    terms = [x, frames] if is_transition else [x, frames, shortcut]
    return layers.ReLU(name=f"{name}_act")(layers.Add(name=f"{name}_add")(terms))


def _over_features(x, stride: int, config: BcResnetConfig, name: str):
    """f2: convolution over three features, sub-band normalisation: (B, T, F, C) → (B, T, F / s, C)."""
    x = depthwise(x, (1, 3), padding=config.padding, use_bias=False, name=name)
    if stride > 1:  # TensorFlow's depthwise convolution needs equal strides
        x = layers.MaxPooling2D((1, 1), strides=(1, stride), name=f"{name}_stride")(x)
    return SubSpectralNorm(config.bands, name=f"{name}_norm")(x)


def _over_time(x, dilation: int, config: BcResnetConfig, name: str):
    """f1: convolution over three frames of the mean over the features: (B, T, F, C) → (B, T, 1, C)."""
    channels = x.shape[-1]
    x = layers.AveragePooling2D((1, x.shape[2]), name=f"{name}_mean")(x)
    x = layers.Reshape((-1, channels), name=f"{name}_frames")(x)  # (B, T, C)
    settings = {"dilation": dilation, "padding": config.padding}
    x = normalised_depthwise(x, 3, name=name, activation="silu", **settings)
    x = layers.Dense(channels, use_bias=False, name=f"{name}_mix")(x)
    x = layers.SpatialDropout1D(config.dropout, name=f"{name}_dropout")(x)
    return layers.Reshape((-1, 1, channels), name=f"{name}_broadcast")(x)


@keras.saving.register_keras_serializable(package="model_keyword")
class SubSpectralNorm(keras.layers.Layer):
    """Batch normalisation with statistics, factor and offset for each channel of each sub-band.

    In inference each frame is normalised independently of the others.

    Args:
        bands: S, the number of sub-bands, of equal size.
        momentum: weight of the old value when a moving statistic is updated.
        epsilon: added to the variance.

    Call arguments:
        x: (B, T, F, C), F a multiple of ``bands`` → the same shape.
    """

    frame_wise = True

    def __init__(self, bands: int, momentum: float = 0.97, epsilon: float = 1e-3, **kwargs):
        super().__init__(**kwargs)
        self.bands, self.momentum, self.epsilon = bands, momentum, epsilon

    def build(self, input_shape):
        """Create the weights, (S, C) each.

        Raises:
            ConfigError: the number of features is not a multiple of the number of bands.
        """
        features, channels = input_shape[2:]
        if features % self.bands:
            raise ConfigError(
                f"layer {self.name}: {features} features can't be {self.bands} sub-bands of one size",
                hint=f"a multiple of {self.bands} features, here and after each stride",
            )
        self.band_features = features // self.bands
        shape = (self.bands, channels)
        self.gamma = self.add_weight(shape, "ones", name="gamma")
        self.beta = self.add_weight(shape, "zeros", name="beta")
        moving = {"trainable": False, "autocast": False}
        self.moving_mean = self.add_weight(shape, "zeros", name="moving_mean", **moving)
        self.moving_variance = self.add_weight(shape, "ones", name="moving_variance", **moving)

    def call(self, x, training=False):
        """Normalise; in training by the statistics of the batch."""
        mean, variance = self.moving_mean, self.moving_variance
        if training and self.trainable:
            mean, variance = self._batch_statistics(x)
        factor = ops.cast(self.gamma, "float32") * ops.rsqrt(variance + self.epsilon)
        offset = ops.cast(self.beta, "float32") - mean * factor  # (S, C)
        return x * self._per_feature(factor, x.dtype) + self._per_feature(offset, x.dtype)

    def multiply_accumulates(self, positions: int) -> int:
        """None: scaling and shifting are not counted (:mod:`utils.backend.model_cost`)."""
        return 0

    def _batch_statistics(self, x):
        """Mean and variance (S, C) over batch, frames and features; updates the moving statistics."""
        by_band = ops.reshape(x, (-1, self.bands, self.band_features, x.shape[-1]))  # (B · T, S, F / S, C)
        mean, variance = ops.moments(ops.cast(by_band, "float32"), axes=(0, 2), synchronized=is_replicated())
        for moving, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(self.momentum * moving + (1 - self.momentum) * ops.stop_gradient(new))
        return mean, variance

    def _per_feature(self, values, dtype):
        """Repeat the values of a band for each of its features: (S, C) → (F, C)."""
        return ops.cast(ops.repeat(values, self.band_features, axis=0), dtype)
