"""Conformer, a model for GPUs: log-mel features and lengths in, CTC logits every 40 ms out.

The encoder of Gulati et al., "Conformer: Convolution-augmented Transformer for Speech Recognition" (2020,
arXiv:2005.08100), with one dense layer to CTC logits in place of the paper's transducer. In each block,
attention models distant context and convolution local context, between two half-step feed-forward modules.

Sizes of the paper: S (the defaults), M: width 256, L: width 512, heads 8, blocks 17. Its parameter counts
(10.3, 30.7 and 118.8 million) include the transducer's decoder; the encoders alone have 8.7, 27.3 and 115.1
million.
"""

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import MaskFrames, masked_inputs
from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.layers.relative_attention import RelativeAttention, RelativePositions
from utils.limits import Count, Fraction, Limited, Size, check_multiple


@dataclass(frozen=True)
class ConformerConfig(Limited, section="model"):
    """Configuration of `build_conformer`; the defaults are those of the paper's Conformer (S).

    Attributes:
        blocks: number of Conformer blocks.
        width: channels of the subsampling and of every block's output; a multiple of ``heads``.
        heads: attention heads per block.
        feed_forward: hidden size of the feed-forward modules, in multiples of ``width``.
        kernel: frames in the window of a convolution module.
        dropout: fraction of activations dropped in training, at the end of every module.
    """

    name: str = "conformer"
    blocks: Size = 16
    width: Count = 144
    heads: Count = 4
    feed_forward: Count = 4
    kernel: Count = 32
    dropout: Fraction = 0.1

    def __post_init__(self):
        super().__post_init__()
        check_multiple(self, "model", "width", "heads", hint="each head gets an equal part of the width")

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: each of the two front convolutions halves the rate."""
        return 4


def build_conformer(config: ConformerConfig, feature_bins: int, classes: int) -> keras.Model:
    """Features (B, T, F) → logits (B, ceil(T / 4), C); 80 bins in the paper.

    Padding has no influence on valid outputs, nor on the statistics of the batch normalisation.
    """
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    for stride in (2, 4):
        name = f"front_{stride // 2}"
        settings = {"strides": 2, "padding": "same", "activation": "relu"}
        x = layers.Conv2D(config.width, 3, name=f"{name}_conv", **settings)(x)  # half of T and F
        x = MaskFrames(name=f"{name}_mask")(x, valid_at(stride))
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]), name="flat")(x)  # (B, T / 4, F / 4 · width)
    x = layers.Dropout(config.dropout, name="front_dropout")(layers.Dense(config.width, name="front")(x))
    valid, positions = valid_at(config.time_stride), RelativePositions(name="positions")(x)
    for index in range(1, config.blocks + 1):
        x = _block(x, f"block_{index}", positions, valid, config)
    logits = layers.Dense(classes, name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _block(x, name: str, positions, valid, config: ConformerConfig):
    """A Conformer block (section 2.4, equation 1): (B, T', width) → the same shape."""
    x = x + 0.5 * _feed_forward(x, f"{name}_feed_forward_1", config)
    x = x + _attend(x, f"{name}_attention", positions, valid, config)
    x = x + _convolve(x, f"{name}_convolution", valid, config)
    x = x + 0.5 * _feed_forward(x, f"{name}_feed_forward_2", config)
    return layers.LayerNormalization(name=f"{name}_norm")(x)


def _feed_forward(x, name: str, config: ConformerConfig):
    """Feed-forward module (figure 4): (B, T', width) → the same shape."""
    y = layers.LayerNormalization(name=f"{name}_norm")(x)
    y = layers.Dense(config.feed_forward * config.width, activation="swish", name=f"{name}_hidden")(y)
    y = layers.Dropout(config.dropout, name=f"{name}_hidden_dropout")(y)
    y = layers.Dense(config.width, name=f"{name}_projection")(y)
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(y)


def _attend(x, name: str, positions, valid, config: ConformerConfig):
    """Multi-headed self-attention module (figure 3): (B, T', width) → the same shape."""
    y = layers.LayerNormalization(name=f"{name}_norm")(x)
    y = RelativeAttention(config.heads, name=name)(y, positions, valid)
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(y)


def _convolve(x, name: str, valid, config: ConformerConfig):
    """Convolution module (figure 2): (B, T', width) → the same shape.

    The first pointwise convolution and its gated linear unit are written as two dense layers.
    """
    y = layers.LayerNormalization(name=f"{name}_norm")(x)
    gate = layers.Dense(config.width, activation="sigmoid", name=f"{name}_gate")
    y = layers.Dense(config.width, name=f"{name}_input")(y) * gate(y)
    y = MaskFrames(name=f"{name}_mask")(y, valid)
    # float32 in mixed precision too: for an utterance of 30 s, oneDNN generates code for minutes in bfloat16.
    settings = {"padding": "same", "use_bias": False, "dtype": "float32"}
    y = layers.DepthwiseConv1D(config.kernel, name=f"{name}_time", **settings)(y)
    y = MaskedBatchNormalization(name=f"{name}_batch_norm")(y, valid)
    y = layers.Activation("swish", name=f"{name}_swish")(y)
    y = layers.Dense(config.width, name=f"{name}_projection")(y)
    return layers.Dropout(config.dropout, name=f"{name}_dropout")(y)
