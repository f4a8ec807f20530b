"""DFSMN, a deep feed-forward sequential memory network: log-mel features and lengths in, CTC logits out.

Zhang et al., "Deep-FSMN for Large Vocabulary Continuous Speech Recognition" (2018, arXiv:1803.05030). The
network is not recurrent: context enters through memory blocks, weighted sums over some past and future frames
with one weight per channel. Skip connections between the memory blocks make deep networks trainable.
"""

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import MaskFrames, masked_inputs
from utils.limits import Count, Limited, Size


@dataclass(frozen=True)
class DfsmnConfig(Limited, section="model"):
    """Configuration of `build_dfsmn`; the defaults are those of the paper, 2048-512(20, 20, 2, 2).

    Attributes:
        stack: feature frames that are concatenated before the first layer; this is the time stride (the
            paper's lower frame rate).
        blocks: number of memory blocks.
        hidden: units of the layers with a ReLU.
        projection: channels of the memory.
        past: N1, number of past frames in the memory of a frame, besides the frame itself.
        future: N2, number of future frames; 0 for a causal network.
        past_stride: s1, distance between the past frames.
        future_stride: s2, distance between the future frames.
        top: layers with a ReLU between the last memory block and the linear layer before the logits.
    """

    name: str = "dfsmn"
    stack: Count = 3
    blocks: Count = 10
    hidden: Count = 2048
    projection: Count = 512
    past: Size = 20
    future: Size = 20
    past_stride: Count = 2
    future_stride: Count = 2
    top: Size = 2

    @property
    def time_stride(self) -> int:
        """Input frames per output frame."""
        return self.stack


def build_dfsmn(config: DfsmnConfig, feature_bins: int, classes: int) -> keras.Model:
    """Features (B, T, F) → logits (B, ceil(T / stack), C)."""
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    x = layers.Reshape((-1, config.stack * feature_bins), name="stack")(x)  # (B, T', stack · F)
    for block in range(1, config.blocks + 1):
        name = f"block_{block}"
        hidden = layers.Dense(config.hidden, activation="relu", name=f"{name}_hidden")(x)
        p = layers.Dense(config.projection, name=f"{name}_projection")(hidden)  # (B, T', projection)
        p = MaskFrames(name=f"{name}_mask")(p, valid_at(config.time_stride))
        terms = _memory(p, name, config)
        # x is the memory of the previous block.
        x = layers.Add(name=f"{name}_memory")([x, *terms] if block > 1 else terms)
    for index in range(1, config.top + 1):
        x = layers.Dense(config.hidden, activation="relu", name=f"top_{index}")(x)
    x = layers.Dense(config.projection, name="top_projection")(x)
    logits = layers.Dense(classes, name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _memory(p, name: str, config: DfsmnConfig) -> list[keras.KerasTensor]:
    """The terms of a memory block without its skip connection, each (B, T', projection).

    At frame t: p(t), Σ a(i) ⊙ p(t - s1 · i) with i = 0 … N1, and Σ c(j) ⊙ p(t + s2 · j) with j = 1 … N2, as
    two dilated depthwise convolutions. ``p`` is 0 at padding and outside the utterance.
    """
    past = layers.ZeroPadding1D((config.past * config.past_stride, 0), name=f"{name}_past_pad")(p)
    past = _weighted_sum(config.past + 1, config.past_stride, f"{name}_past")(past)
    if not config.future:
        return [p, past]
    future = layers.ZeroPadding1D((0, config.future * config.future_stride), name=f"{name}_future_pad")(p)
    # The first future frame of frame t is t + s2.
    future = layers.Cropping1D((config.future_stride, 0), name=f"{name}_future_crop")(future)
    future = _weighted_sum(config.future, config.future_stride, f"{name}_future")(future)
    return [p, past, future]


def _weighted_sum(frames: int, stride: int, name: str) -> layers.DepthwiseConv1D:
    return layers.DepthwiseConv1D(frames, dilation_rate=stride, use_bias=False, name=name)
