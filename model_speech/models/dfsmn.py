"""DFSMN, the deep feed-forward sequential memory network: log-mel features + lengths in, CTC logits out.

Zhang et al., "Deep-FSMN for Large Vocabulary Continuous Speech Recognition" (2018, arXiv:1803.05030). No
layer remembers: what was and what comes enters through memory blocks, weighted sums over some frames before
and after, a weight a channel. Each block adds the memory of the one below, so that deep networks learn.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
from keras import layers

from model_speech.layers.masking import MaskFrames, masked_inputs
from utils.config import check_at_least


@dataclass(frozen=True)
class DfsmnConfig:
    """Geometry of `build_dfsmn`; the defaults are the paper's, which writes them as 2048-512(20, 20, 2, 2).

    Attributes:
        stack: feature frames put side by side before the first layer, and so the time stride (the paper's
            lower frame rate).
        blocks: memory blocks.
        hidden: units of the layers with a ReLU.
        projection: channels of the memory.
        past: N1, frames before a frame that its memory sees; the frame itself comes on top.
        future: N2, frames after it; 0 makes a network that doesn't wait.
        past_stride: s1, distance between those frames.
        future_stride: s2.
        top: layers with a ReLU between the last memory block and the linear layer below the logits.
    """

    name: str = "dfsmn"
    stack: int = 3
    blocks: int = 10
    hidden: int = 2048
    projection: int = 512
    past: int = 20
    future: int = 20
    past_stride: int = 2
    future_stride: int = 2
    top: int = 2

    def __post_init__(self):
        check_at_least(self, "model", stack=1, blocks=1, hidden=1, projection=1, past=0, future=0)
        check_at_least(self, "model", past_stride=1, future_stride=1, top=0)

    @property
    def time_stride(self) -> int:
        """Input frames per output frame."""
        return self.stack


def build_dfsmn(config: DfsmnConfig, feature_bins: int, classes: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        feature_bins: F, bins of a feature frame.
        classes: C, the blank included.

    Returns:
        model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits
        (B, ceil(T / stack), C). Frames beyond ``lengths`` have no influence.
    """
    inputs, x, valid_at = masked_inputs(feature_bins, config.time_stride)  # x: (B, T, F, 1)
    x = layers.Reshape((-1, config.stack * feature_bins))(x)  # (B, T', stack · F)
    for block in range(config.blocks):
        hidden = layers.Dense(config.hidden, activation="relu")(x)
        p = layers.Dense(config.projection)(hidden)  # (B, T', projection)
        p = MaskFrames()(p, valid_at(config.time_stride))
        terms = _memory(p, config)
        x = layers.Add()([x, *terms] if block else terms)  # x is the memory of the block below
    for _ in range(config.top):
        x = layers.Dense(config.hidden, activation="relu")(x)
    x = layers.Dense(config.projection)(x)
    logits = layers.Dense(classes, name="logits", dtype="float32")(x)
    return keras.Model(inputs, logits, name=config.name)


def _memory(p, config: DfsmnConfig) -> list[keras.KerasTensor]:
    """The terms of a memory block but its skip connection, each (B, T', projection); ``p`` is 0 at padding.

    At frame t: p(t), Σ a(i) ⊙ p(t - s1 · i) with i = 0 … N1, and Σ c(j) ⊙ p(t + s2 · j) with j = 1 … N2, as
    two depthwise convolutions with holes. Outside of the utterance p is 0.
    """
    past = layers.ZeroPadding1D((config.past * config.past_stride, 0))(p)
    past = _weighted_sum(config.past + 1, config.past_stride)(past)
    if not config.future:
        return [p, past]
    future = layers.ZeroPadding1D((0, config.future * config.future_stride))(p)
    future = layers.Cropping1D((config.future_stride, 0))(future)  # begins at t + s2
    future = _weighted_sum(config.future, config.future_stride)(future)
    return [p, past, future]


def _weighted_sum(frames: int, stride: int) -> layers.DepthwiseConv1D:
    return layers.DepthwiseConv1D(frames, dilation_rate=stride, use_bias=False)
