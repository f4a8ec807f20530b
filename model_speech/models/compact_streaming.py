"""The compact model for streams: log-mel features and lengths in, CTC logits for every eighth frame out.

An output frame depends on past frames and on at most `look_ahead` future frames, so that the model can
process a stream. All layers are causal. For the look-ahead the outputs are shifted in time: `look_ahead` zero
frames are appended to the utterance, and the first `delay` outputs are dropped. The first `ahead_blocks`
blocks, and with `front_ahead` the residual blocks over time and frequency, delay their input by a frame, so
that their convolutions also see the frame after it. The network must learn how to use the rest of the delay.
A stream runs the causal network without masks (`causal_network`), and its outputs, `delay` frames late, equal
those of the trained model up to rounding. Its gates average the frames so far.
"""

from dataclasses import dataclass

import keras
from keras import layers, ops

from model_speech.layers.masking import FrameMask, MaskFrames, PadTime
from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.layers.precision import float32_except_products
from model_speech.layers.running_mean import RunningMean
from model_speech.models.compact import (
    MOMENTUM,
    STRIDE,
    CompactSettings,
    Normalise,
    front,
    output_layer,
    residual_block,
)
from utils.errors import ConfigError
from utils.limits import Size

_EPSILON = 1e-3


@dataclass(frozen=True)
class CompactStreamingConfig(CompactSettings):
    """Configuration of `build_compact_streaming`.

    Attributes:
        look_ahead: future feature frames that an output frame waits for, beyond its own; a multiple of the
            time stride. Each adds its hop to the latency.
        ahead_blocks: number of blocks, from the first one on, whose convolutions see one output frame ahead,
            within ``look_ahead``.
        front_ahead: whether the residual blocks over time and frequency see one of their frames ahead,
            within ``look_ahead``, as those of `compact` do.
    """

    name: str = "compact_streaming"
    look_ahead: Size = 32
    ahead_blocks: Size = 0
    front_ahead: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.look_ahead % self.time_stride:
            lower = self.look_ahead // self.time_stride * self.time_stride
            raise ConfigError(
                f"model.look_ahead is {self.look_ahead}",
                hint=f"a multiple of the time stride {self.time_stride}: {lower} or "
                f"{lower + self.time_stride}",
            )
        most = min((self.look_ahead - self._front_frames_ahead) // self.time_stride, self.blocks)
        if self.ahead_blocks > most:
            raise ConfigError(
                f"model.ahead_blocks is {self.ahead_blocks}",
                hint=f"at most {max(most, 0)}: there are {self.blocks} blocks, and model.look_ahead is "
                f"{self.delay} output frames" + " with those of model.front_ahead" * self.front_ahead,
            )

    @property
    def _front_frames_ahead(self) -> int:
        """Feature frames that the residual blocks over time and frequency see ahead."""
        if not self.front_ahead:
            return 0
        blocks = sum(count * STRIDE**index for index, count in enumerate(self.front_blocks, start=1))
        return blocks + self.stacked_blocks * self.time_stride

    @property
    def delay(self) -> int:
        """Number of outputs of the causal network before that of the first input frames."""
        return self.look_ahead // self.time_stride


def build_compact_streaming(config: CompactStreamingConfig, feature_bins: int, classes: int) -> keras.Model:
    """The model as it is trained and tested, on whole utterances: logits (B, ceil(T / time_stride), C).

    The statistics of the batch normalisation include the zero frames of the look-ahead, and no other padding.
    """
    with float32_except_products() as products:
        features = keras.Input((None, feature_bins), name="features")
        lengths = keras.Input((), dtype="int32", name="lengths")
        unpadded = MaskFrames(name="spoken")(features, FrameMask(1, name="valid")(features, lengths))
        # (B, T' + look_ahead, F)
        padded = PadTime(config.time_stride, config.look_ahead, name="end")(unpadded)
        padded_lengths = PaddedLengths(config.time_stride, config.look_ahead, name="padded_lengths")(lengths)

        def normalise(name: str, x: keras.KerasTensor, stride: int, gamma: str) -> keras.KerasTensor:
            mask = FrameMask(stride, name=f"{name}_valid")(padded, padded_lengths)
            return MaskedBatchNormalization(MOMENTUM, _EPSILON, gamma, name=name)(x, mask)

        late = _network(padded, normalise, products, config, classes)  # (B, T' / time_stride + delay, C)
        logits = layers.Cropping1D((config.delay, 0), name="on_time")(late)
    return keras.Model({"features": features, "lengths": lengths}, logits, name=config.name)


def causal_network(model: keras.Model, config: CompactStreamingConfig) -> keras.Model:
    """The network alone, for streams and exports: no lengths, no masks, no future frames.

    Args:
        model: result of `build_compact_streaming`; its weights are copied.
        config: settings of the model.

    Returns:
        model of features (B, T, F) float32, T a multiple of the time stride → logits (B, T / time_stride, C)
        float32. Output ``delay + i`` equals output i of ``model`` if zero frames follow the utterance: up to
        a multiple of the time stride, and then ``look_ahead`` more.
    """
    bins, classes = model.input["features"].shape[-1], model.output.shape[-1]
    features = keras.Input((None, bins), name="features")

    def normalise(name: str, x: keras.KerasTensor, *_) -> keras.KerasTensor:
        return layers.BatchNormalization(momentum=MOMENTUM, epsilon=_EPSILON, name=name)(x)

    with float32_except_products() as products:
        logits = _network(features, normalise, products, config, classes)
    network = keras.Model(features, logits, name=config.name)
    for layer in network.layers:
        if layer.weights:
            layer.set_weights(model.get_layer(layer.name).get_weights())
    return network


def _network(
    x, normalise: Normalise, products: keras.DTypePolicy, config: CompactStreamingConfig, classes: int
):
    """Features (B, T, F) → logits (B, T / time_stride, C) float32, with causal layers only."""
    x = normalise("input_norm", x, 1, "ones")  # each bin at one scale, for any normalisation of the features
    x = layers.Reshape((-1, x.shape[-1], 1), name="image")(x)  # (B, T, F, 1)
    x = front(x, config, normalise, products, causal=True, ahead=config.front_ahead)  # (B, T', width)
    for index in range(1, config.blocks + 1):
        ahead = 1 if index <= config.ahead_blocks else 0
        x = residual_block(
            x,
            f"block_{index}",
            config,
            normalise,
            products,
            _running_mean,
            ahead,
        )
    return output_layer(x, config, classes, products)


def _running_mean(name: str, frames: keras.KerasTensor) -> keras.KerasTensor:
    return RunningMean(name=name)(frames)


@keras.saving.register_keras_serializable(package="model_speech")
class PaddedLengths(keras.layers.Layer):
    """Lengths of the utterances as the network sees them: (B,) → (B,) int32.

    Rounded up to whole output frames, plus the look-ahead; 0 for an utterance without
    frames (a row that fills up a batch).
    """

    def __init__(self, time_stride: int, look_ahead: int, **kwargs):
        super().__init__(**kwargs)
        self.time_stride, self.look_ahead = time_stride, look_ahead

    def call(self, lengths):
        """Round up, and add the look-ahead."""
        whole = (lengths + self.time_stride - 1) // self.time_stride * self.time_stride
        return ops.where(lengths > 0, whole + self.look_ahead, ops.zeros_like(whole))

    def compute_output_spec(self, lengths):
        """Integers for any dtype policy of the layer."""
        return keras.KerasTensor(lengths.shape, dtype="int32")
