"""Keras layer for the running mean of a stream's frames, for gates that cannot wait for its end.

With the prior p, the mean m(t) after frame x(t), t = 0, 1, …, is

    m(t) = m(t - 1) + (x(t) - m(t - 1)) / min(t + 1 + PRIOR_FRAMES, MEMORY_FRAMES),    m(-1) = p

so that all frames count alike at first, and later the mean forgets exponentially. The share of a frame in
each later mean does not depend on the frames: all means are a cumulative sum of weighted frames.
"""

from typing import Any

import keras
from keras import ops

PRIOR_FRAMES = 12
"""Frames that the mean before the first frame counts for."""
MEMORY_FRAMES = 256
"""Frames after which older ones begin to be forgotten."""


@keras.saving.register_keras_serializable(package="model_speech")
class RunningMean(keras.layers.Layer):
    """Mean of the frames so far and of a learned prior: (B, T, D) → (B, T, D) float32."""

    def build(self, shape):
        """Create the prior."""
        self.prior = self.add_weight(name="prior", shape=(shape[-1],), initializer="zeros", autocast=False)

    def call(self, frames):
        """The means from the start of an utterance."""
        return self.streaming_chunk(frames, [0.0, 0.0])[0]

    def streaming_chunk(self, frames: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        """All means of a chunk at once, and the states after it: those of :class:`RunningMeanCell`.

        ``exp(-log_kept)`` overflows after 22,000 frames (25 minutes of 68 ms each); streams have no limit.
        """
        mean, before = states
        length = ops.shape(frames)[1]
        count = before + ops.arange(1, length + 1, dtype="float32")  # (T,) or (1, T)
        share = 1.0 / ops.minimum(count + PRIOR_FRAMES, float(MEMORY_FRAMES))  # of the latest frame
        log_kept = ops.cumsum(ops.log(1.0 - share), axis=-1)  # of the mean before the chunk, in each mean
        weighted = (ops.cast(frames, "float32") - self.prior) * (share * ops.exp(-log_kept))[..., None]
        means = (mean + ops.cumsum(weighted, axis=1)) * ops.exp(log_kept)[..., None]
        after = ops.minimum(before + ops.cast(length, "float32"), float(MEMORY_FRAMES - PRIOR_FRAMES))
        return self.prior + means, [means[:, -1], after]

    def compute_output_spec(self, frames):
        """The same shape, float32."""
        return keras.KerasTensor(frames.shape, dtype="float32")

    @property
    def streaming_cell(self) -> "RunningMeanCell":
        """Computes the means frame by frame (see :mod:`streaming.conversion.rules`)."""
        return RunningMeanCell(self.prior)


class RunningMeanCell:
    """Computes one frame of :class:`RunningMean` after the other.

    Attributes:
        state_size: values of the states: the mean without the prior, and the number of frames so far.
    """

    def __init__(self, prior: keras.Variable):
        self._prior, self.state_size = prior, [prior.shape[0], 1]

    def __call__(self, frame: Any, states: list[Any], training: bool = False) -> tuple[Any, list[Any]]:
        """The mean after ``frame`` (1, D), and the states (1, D) and (1, 1) after it."""
        mean, count = states
        count = ops.minimum(count + 1.0, float(MEMORY_FRAMES - PRIOR_FRAMES))
        mean = mean + (frame - self._prior - mean) / (count + PRIOR_FRAMES)
        return mean + self._prior, [mean, count]
