"""The compact acoustic model: log-mel features and lengths in, CTC logits for every eighth frame out.

The convolutional front end has strided convolutions over time and frequency, few enough for a CPU. They
tolerate small shifts in time and in frequency; residual blocks between them may make it deeper. All later
layers run at the frame rate of the output and use what a CPU does fastest: matrix products, and depthwise
convolutions over time for the context. A gate in each block averages over the whole utterance, so that
speaker and room weight the channels (squeeze-and-excitation: Hu et al., arXiv:1709.01507; in speech
ContextNet: Han et al., arXiv:2005.03191).

``compact_streaming`` is made of the same blocks in causal form.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import MeanFrame, masked_inputs
from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.layers.precision import float32_except_products
from utils.errors import ConfigError
from utils.limits import Count, Fraction, Limited, Size

# Training takes only some thousand steps: with Keras's default 0.99 the first epoch would still have weight.
MOMENTUM = 0.97
_KERNEL, STRIDE = 3, 2  # of the convolutions of the front end, over time and over frequency
_BINS_JOINED = 2  # before the blocks on joined frames

Normalise = Callable[[str, keras.KerasTensor, int, str], keras.KerasTensor]
"""Layer name, frames (B, T, …), time stride, initializer of the scale → normalised frames, the same shape."""
Average = Callable[[str, keras.KerasTensor], keras.KerasTensor]
"""Layer name, frames (B, T, width) → their mean (B, width) or, for streams, running means (B, T, width)."""


@dataclass(frozen=True)
class CompactSettings(Limited, section="model"):
    """Settings that both compact models share.

    Attributes:
        name: name of the model in the registry.
        front_filters: filters of the convolutions of the front end, each 3 x 3 with stride 2 x 2.
        front_blocks: number of residual blocks over time and frequency after each convolution of the front
            end; empty for none at all.
        frame_stack: frames of the last convolution of the front end that form an output frame.
        stacked_blocks: number of residual blocks on the joined frames, over time and over pairs of bins.
        width: channels of the residual blocks.
        blocks: number of residual blocks.
        kernel: output frames in the window of a block's convolution.
        gate: hidden units of each block's gate; 0 for no gates.
        dropout: fraction of channels dropped in training, for a whole utterance.
    """

    name: str = "compact"
    front_filters: tuple[Count, ...] = (16, 32)
    front_blocks: tuple[Size, ...] = ()
    frame_stack: Count = 2
    stacked_blocks: Size = 0
    width: Count = 256
    blocks: Size = 8
    kernel: Count = 7
    gate: Size = 0
    dropout: Fraction = 0.1

    def __post_init__(self):
        super().__post_init__()
        if self.front_blocks and len(self.front_blocks) != len(self.front_filters):
            raise ConfigError(
                f"model.front_blocks has {len(self.front_blocks)} numbers, model.front_filters "
                f"{len(self.front_filters)}",
                hint="a number of blocks for each convolution of the front end",
            )

    @property
    def time_stride(self) -> int:
        """Input frames per output frame."""
        return STRIDE ** len(self.front_filters) * self.frame_stack


@dataclass(frozen=True)
class CompactConfig(CompactSettings):
    """Configuration of `build_compact`, which cannot stream: its gates average over the whole utterance."""

    gate: Size = 64


def build_compact(config: CompactConfig, feature_bins: int, classes: int) -> keras.Model:
    """Features (B, T, F) → logits (B, ceil(T / time_stride), C).

    Padding has no influence on valid outputs, nor on the statistics of the batch normalisation.
    """
    with float32_except_products() as products:
        inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)

        def normalise(name: str, frames: keras.KerasTensor, stride: int, gamma: str) -> keras.KerasTensor:
            return MaskedBatchNormalization(MOMENTUM, gamma_initializer=gamma, name=name)(
                frames, valid_at(stride)
            )

        def average(name: str, frames: keras.KerasTensor) -> keras.KerasTensor:
            return MeanFrame(name=name)(frames, valid_at(config.time_stride))

        x = front(x, config, normalise, products)
        for index in range(1, config.blocks + 1):
            x = residual_block(x, f"block_{index}", config, normalise, products, average)
        return keras.Model(inputs, output_layer(x, config, classes, products), name=config.name)


def front(
    x,
    config: CompactSettings,
    normalise: Normalise,
    products: keras.DTypePolicy,
    causal: bool = False,
    ahead: bool = False,
) -> keras.KerasTensor:
    """All layers over time and frequency: (B, T, F, 1) → (B, T / time_stride, width); padding stays zero.

    Args:
        x: features.
        config: settings.
        normalise: the normalisation.
        products: precision of the convolutions.
        causal: whether an output frame depends on no later frames than its own.
        ahead: whether the residual blocks of a causal front see a frame ahead: their output is late by it.

    Raises:
        ConfigError: with ``stacked_blocks``, if the number of bins after the convolutions is odd.
    """
    convolution = _Convolution(normalise, products, causal, ahead)
    blocks = config.front_blocks or [0] * len(config.front_filters)
    for index, (filters, count) in enumerate(zip(config.front_filters, blocks, strict=True), start=1):
        stride = STRIDE**index
        x = convolution.strided(x, f"front_{index}", filters, stride)
        for block in range(1, count + 1):
            x = convolution.block(x, f"front_{index}_block_{block}", stride)
    joined = config.frame_stack
    if config.stacked_blocks:
        x, joined = _stacked_blocks(x, config, convolution), 1
    size = math.prod(x.shape[2:])
    projection = {"use_bias": False, "dtype": products, "name": "front"}
    if causal:  # a strided convolution joins frames, which a stream has one after another
        x = layers.Reshape((-1, size), name="flat")(x)
        return layers.Conv1D(config.width, joined, strides=joined, **projection)(x)
    return layers.Dense(config.width, **projection)(layers.Reshape((-1, joined * size), name="flat")(x))


@dataclass(frozen=True)
class _Convolution:
    """Convolutions over time and frequency, with what all of them share; see :func:`front`."""

    normalise: Normalise
    products: keras.DTypePolicy
    causal: bool
    ahead: bool

    def strided(self, x, name: str, filters: int, stride: int) -> keras.KerasTensor:
        """(B, T, F, D) → (B, T / 2, ceil(F / 2), filters); ``stride``: that of the result."""
        bins = x.shape[2]
        missing = max((-(-bins // STRIDE) - 1) * STRIDE + _KERNEL - bins, 0)
        # In time an output ends with the last of its two frames; in frequency both sides are padded.
        x = self._padded(x, name, _KERNEL - STRIDE, (missing // 2, missing - missing // 2))
        x = self._conv(filters, name, strides=STRIDE)(x)
        return layers.ReLU(name=f"{name}_relu")(self.normalise(f"{name}_norm", x, stride, "ones"))

    def block(self, x, name: str, stride: int) -> keras.KerasTensor:
        """Residual convolution: (B, T, F, D), not negative, padding zero → the same.

        As in He et al. (arXiv:1512.03385), with a scale that begins at zero (Goyal et al., arXiv:1706.02677):
        a new block changes nothing, so that it can be added to a trained model.
        """
        y = self._padded(x, name, _KERNEL - 1, (_KERNEL // 2, _KERNEL // 2))
        y = self._conv(x.shape[-1], name)(y)
        if self.ahead:
            x = layers.ZeroPadding2D(((1, 0), (0, 0)), name=f"{name}_late_pad")(x)
            x = layers.Cropping2D(((0, 1), (0, 0)), name=f"{name}_late")(x)
        y = layers.Add(name=f"{name}_add")([x, self.normalise(f"{name}_norm", y, stride, "zeros")])
        return layers.ReLU(name=f"{name}_relu")(y)

    def _padded(self, x, name: str, before: int, bins: tuple[int, int]) -> keras.KerasTensor:
        """For a causal convolution with zeros in front, in time, and on both sides in frequency."""
        return layers.ZeroPadding2D(((before, 0), bins), name=f"{name}_pad")(x) if self.causal else x

    def _conv(self, filters: int, name: str, strides: int = 1) -> layers.Conv2D:
        return layers.Conv2D(
            filters, _KERNEL, strides=strides, padding="valid" if self.causal else "same", use_bias=False,
            kernel_initializer="he_normal", dtype=self.products, name=f"{name}_conv",
        )  # fmt: skip


def _stacked_blocks(x, config: CompactSettings, convolution: _Convolution) -> keras.KerasTensor:
    """Residual blocks on joined frames: (B, frame_stack · T', F, D) → (B, T', frame_stack · F · D).

    Joining ``frame_stack`` frames and pairs of bins lowers the resolution like a strided convolution, but
    loses nothing (space-to-depth: Sunkara & Luo, arXiv:2208.03641).
    """
    bins, channels = x.shape[2:]
    if bins % _BINS_JOINED:
        raise ConfigError(
            f"model.stacked_blocks with {bins} bins after the convolutional front end",
            hint="pairs of bins are joined: choose features.bins so that their number is even",
        )
    pairs, stack, pair_channels = bins // _BINS_JOINED, config.frame_stack, _BINS_JOINED * channels
    x = layers.Reshape((-1, stack, pairs, pair_channels), name="front_stacked_frames")(x)
    x = layers.Permute((1, 3, 2, 4), name="front_stacked_order")(x)  # (B, T', pairs, stack, pair_channels)
    x = layers.Reshape((-1, pairs, stack * pair_channels), name="front_stacked")(x)
    for block in range(1, config.stacked_blocks + 1):
        x = convolution.block(x, f"front_stacked_block_{block}", config.time_stride)
    # The order of values that the projection expects; it is the same without these blocks.
    x = layers.Reshape((-1, pairs, stack, pair_channels), name="front_unstacked_pairs")(x)
    x = layers.Permute((1, 3, 2, 4), name="front_unstacked_order")(x)  # (B, T', stack, pairs, pair_channels)
    return layers.Reshape((-1, stack * bins * channels), name="front_unstacked")(x)


def residual_block(
    x,
    name: str,
    config: CompactSettings,
    normalise: Normalise,
    products: keras.DTypePolicy,
    average: Average,
    ahead: int | None = None,
) -> keras.KerasTensor:
    """Residual convolution over time: (B, T', width) → the same shape; frames that are zero stay zero.

    Args:
        x: frames.
        name: prefix of the layers' names.
        config: settings.
        normalise: the normalisation.
        products: precision of the matrix product.
        average: the mean of the gate.
        ahead: for streams: number of later frames that the convolution sees, beside ``kernel`` - 1 earlier
            ones and its own. The output is late by as many frames. None: a window around each frame.
    """
    y, padding, taps = x, "same", config.kernel
    if ahead is not None:
        padding, taps = "valid", config.kernel + ahead
        y = layers.ZeroPadding1D((taps - 1, 0), name=f"{name}_pad")(x)
    if ahead:
        x = layers.Cropping1D((taps - 1 - ahead, ahead), name=f"{name}_late")(y)
    y = layers.DepthwiseConv1D(taps, padding=padding, use_bias=False, name=f"{name}_time")(y)
    y = layers.Dense(config.width, use_bias=False, dtype=products, name=f"{name}_mix")(y)
    y = layers.ReLU(name=f"{name}_relu")(normalise(f"{name}_norm", y, config.time_stride, "ones"))
    if config.gate:
        y = layers.Multiply(name=f"{name}_gated")([y, _gate(y, f"{name}_gate", config, average)])
    return layers.Add(name=f"{name}_add")([x, _dropout(y, f"{name}_dropout", config)])


def output_layer(x, config: CompactSettings, classes: int, products: keras.DTypePolicy) -> keras.KerasTensor:
    """(B, T', width) → logits (B, T', classes) float32."""
    logits = layers.Dense(classes, dtype=products, name="logits")(_dropout(x, "dropout", config))
    # Only where it changes something: exports and summaries of a float32 model have no such layer.
    return logits if logits.dtype == "float32" else layers.Activation("linear", name="logits_float32")(logits)


def _gate(x, name: str, config: CompactSettings, average: Average) -> keras.KerasTensor:
    """Weights of the channels, 0 to 1: (B, T', width) → (B, 1, width), by running means (B, T', width)."""
    y = average(f"{name}_mean", x)
    y = layers.Dense(config.gate, activation="relu", name=f"{name}_squeeze")(y)
    # Three quarters open at the start: a closed gate would keep the blocks from learning.
    y = layers.Dense(config.width, activation="sigmoid", bias_initializer="ones", name=f"{name}_excite")(y)
    return layers.Reshape((1, config.width), name=name)(y) if len(y.shape) < len(x.shape) else y


def _dropout(x, name: str, config: CompactSettings) -> keras.KerasTensor:
    """Drop whole channels of an utterance: as effective as single values, with far fewer random numbers."""
    return layers.Dropout(config.dropout, noise_shape=(None, 1, config.width), name=name)(x)
