"""Whisper's encoder under a CTC layer: log-mel features and lengths in, logits every 40 ms out.

The encoder of Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022,
arXiv:2212.04356), whose published weights `model_speech.import_whisper` reads. It runs at the natural length
of the utterances, with masked padding; the published recognisers pad each one to 30 s. The head joins two
encoder frames of 20 ms.

Sizes (blocks, width, heads): tiny 4, 384, 6; base 6, 512, 8 (the defaults); small 12, 768, 12; medium 24,
1024, 16; large 32, 1280, 20. All take 80 mel bins, large-v3 128.
"""

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import MaskFrames, masked_frames
from model_speech.layers.self_attention import SelfAttention, SinusoidalPositions
from utils.limits import Count, Fraction, Limited, Size, check_multiple

_EPSILON = 1e-5  # of layer normalisation
_FEED_FORWARD = 4  # hidden size of a feed-forward module, in multiples of the width


@dataclass(frozen=True)
class WhisperConfig(Limited, section="model"):
    """Configuration of `build_whisper`; the defaults are those of Whisper base.

    Attributes:
        blocks: number of transformer blocks.
        width: channels; an even multiple of ``heads``.
        heads: attention heads per block.
        head_width: channels of the hidden layer between encoder and logits.
        dropout: fraction of activations dropped in training at the end of each attention and feed-forward
            module.
        head_dropout: the same, in front of the logits.
    """

    name: str = "whisper"
    blocks: Size = 6
    width: Count = 512
    heads: Count = 8
    head_width: Count = 640
    dropout: Fraction = 0.05
    head_dropout: Fraction = 0.15

    def __post_init__(self):
        super().__post_init__()
        check_multiple(self, "model", "width", "heads", hint="each head gets an equal part of the width")

    @property
    def time_stride(self) -> int:
        """Input frames per output frame: the second convolution and the head each halve the rate."""
        return 4


def build_whisper(config: WhisperConfig, feature_bins: int, classes: int) -> keras.Model:
    """Features (B, T, F) → logits (B, ceil(T / 4), C); 80 bins, or 128 for large-v3."""
    inputs, x, valid_at = masked_frames(feature_bins, config.time_stride)  # x: (B, T, F)
    for number, stride in ((1, 1), (2, 2)):
        x = layers.ZeroPadding1D(1, name=f"conv_{number}_pad")(x)  # on both sides, also with stride 2
        x = layers.Conv1D(config.width, 3, strides=stride, name=f"conv_{number}")(x)
        x = layers.Activation("gelu", name=f"conv_{number}_gelu")(x)
        x = MaskFrames(name=f"conv_{number}_mask")(x, valid_at(stride))
    x = SinusoidalPositions(name="positions")(x)  # (B, T / 2, width)
    for index in range(1, config.blocks + 1):
        x = _block(x, f"block_{index}", valid_at(2), config)
    x = layers.LayerNormalization(epsilon=_EPSILON, name="encoder_norm")(x)
    x = MaskFrames(name="encoder_mask")(x, valid_at(2))
    x = layers.Reshape((-1, 2 * config.width), name="frame_pairs")(x)  # (B, T / 4, 2 · width)
    x = layers.Dense(config.head_width, name="head")(x)
    x = layers.LayerNormalization(epsilon=_EPSILON, name="head_norm")(x)
    x = layers.Activation("gelu", name="head_gelu")(x)
    x = layers.Dropout(config.head_dropout, name="head_dropout")(x)
    logits = layers.Dense(classes, name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _block(x, name: str, valid, config: WhisperConfig):
    """A transformer block, normalised before each module: (B, T / 2, width) → the same shape."""
    y = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_attention_norm")(x)
    y = SelfAttention(config.heads, name=f"{name}_attention")(y, valid)
    x = x + layers.Dropout(config.dropout, name=f"{name}_attention_dropout")(y)
    y = layers.LayerNormalization(epsilon=_EPSILON, name=f"{name}_feed_forward_norm")(x)
    y = layers.Dense(_FEED_FORWARD * config.width, activation="gelu", name=f"{name}_hidden")(y)
    y = layers.Dense(config.width, name=f"{name}_output")(y)
    return x + layers.Dropout(config.dropout, name=f"{name}_feed_forward_dropout")(y)
