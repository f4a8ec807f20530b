"""`compact` for sound that has no end yet: log-mel features + lengths in, CTC logits every 80 ms out.

An output frame hears the past and at most `look_ahead` frames to come, so that the model can go along with a
stream. All its convolutions are causal; to look ahead, their output is read later: zero frames follow the
utterance, and the first outputs, which came before there was anything to look ahead at, are dropped. What
streams is therefore the plain causal network (`causal_network`), some frames late, and equal to the last bit
that rounding leaves alone. `compact`'s gates, which hear the whole utterance, are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import keras
from keras import layers, ops

from model_speech.layers.masking import FrameMask, MaskFrames, PadTime
from model_speech.layers.normalisation import MaskedBatchNormalization
from utils.config import check_at_least, check_fraction
from utils.errors import ConfigError

# As in `compact`: runs are short.
_MOMENTUM, _EPSILON = 0.97, 1e-3
_FRONT_KERNEL, _FRONT_STRIDE = 3, 2


@dataclass(frozen=True)
class CompactStreamingConfig:
    """Geometry of `build_compact_streaming`.

    Attributes:
        front_filters: one 3 x 3 convolution of stride 2 x 2 each.
        width: channels of the residual blocks.
        blocks: residual blocks.
        kernel: output frames that a block's convolution sees, all but one of them past.
        look_ahead: feature frames, after those of its own, that an output frame waits for; a multiple of
            the time stride. The price of each is its hop in latency.
        dropout: share of channels dropped in training, for a whole utterance.
    """

    name: str = "compact_streaming"
    front_filters: tuple[int, ...] = (16, 32)
    width: int = 256
    blocks: int = 8
    kernel: int = 7
    look_ahead: int = 32
    dropout: float = 0.1

    def __post_init__(self):
        check_at_least(self, "model", front_filters=1, width=1, blocks=0, kernel=1, look_ahead=0)
        check_fraction(self, "model", "dropout")
        if self.look_ahead % self.time_stride:
            lower = self.look_ahead // self.time_stride * self.time_stride
            hint = f"a multiple of the time stride {self.time_stride}: {lower} or {lower + self.time_stride}"
            raise ConfigError(f"model.look_ahead is {self.look_ahead}", hint=hint)

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: every front convolution halves them, and so does the projection."""
        return _FRONT_STRIDE ** (len(self.front_filters) + 1)

    @property
    def delay(self) -> int:
        """Outputs of the causal network before the one that belongs to the first input frames."""
        return self.look_ahead // self.time_stride


# What follows a convolution: the layer's name, frames (B, T, …) and their stride → the same, normalised.
Normalise = Callable[[str, keras.KerasTensor, int], keras.KerasTensor]


def build_compact_streaming(config: CompactStreamingConfig, feature_bins: int, classes: int) -> keras.Model:
    """Build the model as it is trained and tested: on whole utterances, padded in a batch.

    Args:
        config: geometry.
        feature_bins: F, bins of a feature frame.
        classes: C, the blank included.

    Returns:
        model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits
        (B, ceil(T / time_stride), C). Frames beyond ``lengths`` have no influence, nor do they enter the
        statistics of the batch normalisation, apart from the zero frames for looking ahead.
    """
    features = keras.Input((None, feature_bins), name="features")
    lengths = keras.Input((), dtype="int32", name="lengths")
    valid = FrameMask(1, name="valid")(features, lengths)
    spoken = MaskFrames(name="spoken")(features, valid)
    padded = PadTime(config.time_stride, config.look_ahead, name="end")(spoken)  # (B, T' + look_ahead, F)
    heard = HeardFrames(config.time_stride, config.look_ahead, name="heard")(lengths)

    def normalise(name: str, x: keras.KerasTensor, stride: int) -> keras.KerasTensor:
        mask = FrameMask(stride, name=f"{name}_valid")(padded, heard)
        return MaskedBatchNormalization(_MOMENTUM, _EPSILON, name=name)(x, mask)

    late = _network(padded, normalise, config, classes)  # (B, T' / time_stride + delay, C)
    logits = layers.Cropping1D((config.delay, 0), name="on_time", dtype="float32")(late)
    return keras.Model({"features": features, "lengths": lengths}, logits, name=config.name)


def causal_network(model: keras.Model, config: CompactStreamingConfig) -> keras.Model:
    """The network alone, for streaming and export: no lengths, no masks, nothing but the past.

    Args:
        model: from `build_compact_streaming`; its weights are copied.
        config: its geometry.

    Returns:
        model of features (B, T, F) float32, T a multiple of the time stride → logits (B, T / time_stride, C)
        float32. Output ``delay + i`` is what ``model`` gives as output i, once zero frames follow the
        utterance: up to a multiple of the time stride, and then ``look_ahead`` more.
    """
    bins, classes = model.input["features"].shape[-1], model.output.shape[-1]
    features = keras.Input((None, bins), name="features")

    def normalise(name: str, x: keras.KerasTensor, _: int) -> keras.KerasTensor:
        return layers.BatchNormalization(momentum=_MOMENTUM, epsilon=_EPSILON, name=name)(x)

    network = keras.Model(features, _network(features, normalise, config, classes), name=config.name)
    for layer in network.layers:
        if layer.weights:
            layer.set_weights(model.get_layer(layer.name).get_weights())
    return network


def _network(x, normalise: Normalise, config: CompactStreamingConfig, classes: int):
    """Features (B, T, F) → logits (B, T / time_stride, C) float32, by causal layers alone."""
    bins = x.shape[-1]
    x = normalise("input_norm", x, 1)  # each bin at one scale, whatever the features' normalisation left
    x = layers.Reshape((-1, bins, 1), name="image")(x)  # (B, T, F, 1)
    for index, filters in enumerate(config.front_filters, start=1):
        x = _front(x, f"front_{index}", normalise, _FRONT_STRIDE**index, filters)  # half of T and F
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]), name="flat")(x)
    x = layers.Conv1D(config.width, 2, strides=2, use_bias=False, name="front")(x)  # (B, T', width)
    for index in range(1, config.blocks + 1):
        x = _block(x, f"block_{index}", normalise, config)
    return layers.Dense(classes, name="logits", dtype="float32")(_dropout(x, "dropout", config))


def _front(x, name: str, normalise: Normalise, stride: int, filters: int):
    """Strided convolution: (B, T, F, D) → (B, T / 2, ceil(F / 2), filters), causal in time."""
    bins, kernel, step = x.shape[2], _FRONT_KERNEL, _FRONT_STRIDE
    missing = max((-(-bins // step) - 1) * step + kernel - bins, 0)
    # An output ends with the last of its two frames; in frequency as much is missing on either side.
    sides = ((kernel - step, 0), (missing // 2, missing - missing // 2))
    x = layers.ZeroPadding2D(sides, name=f"{name}_pad")(x)
    x = layers.Conv2D(
        filters, kernel, strides=step, use_bias=False, kernel_initializer="he_normal", name=f"{name}_conv"
    )(x)
    return layers.ReLU(name=f"{name}_relu")(normalise(f"{name}_norm", x, stride))


def _block(x, name: str, normalise: Normalise, config: CompactStreamingConfig):
    """Residual convolution over the past: (B, T', width) → the same."""
    y = layers.ZeroPadding1D((config.kernel - 1, 0), name=f"{name}_pad")(x)
    y = layers.DepthwiseConv1D(config.kernel, use_bias=False, name=f"{name}_time")(y)
    y = layers.Dense(config.width, use_bias=False, name=f"{name}_mix")(y)
    y = layers.ReLU(name=f"{name}_relu")(normalise(f"{name}_norm", y, config.time_stride))
    return layers.Add(name=f"{name}_add")([x, _dropout(y, f"{name}_dropout", config)])


def _dropout(x, name: str, config: CompactStreamingConfig):
    """Drop whole channels of an utterance, as `compact` does."""
    return layers.Dropout(config.dropout, noise_shape=(None, 1, config.width), name=name)(x)


@keras.saving.register_keras_serializable(package="model_speech")
class HeardFrames(keras.layers.Layer):
    """Frames that the network hears of each utterance: (B,) → (B,) int32.

    The utterance up to a whole number of output frames, and what follows for looking ahead; of an utterance
    without a frame (a row that fills up a batch) none.
    """

    def __init__(self, time_stride: int, look_ahead: int, **kwargs):
        super().__init__(**kwargs)
        self.time_stride, self.look_ahead = time_stride, look_ahead

    def call(self, lengths):
        """Round up, and add."""
        whole = (lengths + self.time_stride - 1) // self.time_stride * self.time_stride
        return ops.where(lengths > 0, whole + self.look_ahead, ops.zeros_like(whole))

    def compute_output_spec(self, lengths):
        """Integers whatever the layer's dtype policy."""
        return keras.KerasTensor(lengths.shape, dtype="int32")

    def get_config(self):
        """Return the constructor's arguments."""
        return {**super().get_config(), "time_stride": self.time_stride, "look_ahead": self.look_ahead}
