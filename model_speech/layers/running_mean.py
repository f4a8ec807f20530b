"""Keras layer for the running mean of a stream's frames, for gates that cannot wait for its end."""

from typing import Any

import keras
from keras import ops

from model_speech.running_mean_numpy import MEMORY_FRAMES, PRIOR_FRAMES


@keras.saving.register_keras_serializable(package="model_speech")
class RunningMean(keras.layers.Layer):
    """Mean of the frames so far and of a learned prior: (B, T, D) → (B, T, D) float32.

    :mod:`model_speech.running_mean_numpy` has the formula.
    """

    def build(self, shape):
        """Create the prior."""
        self.prior = self.add_weight(name="prior", shape=(shape[-1],), initializer="zeros", autocast=False)

    def call(self, frames):
        """All means at once: the share of a frame in later means is known in advance.

        ``exp(-log_kept)`` overflows after 22,000 frames (25 minutes of 68 ms each); streams have no limit.
        """
        count = ops.arange(1, ops.shape(frames)[1] + 1, dtype="float32")
        share = 1.0 / ops.minimum(count + PRIOR_FRAMES, float(MEMORY_FRAMES))  # (T,), of the latest frame
        log_kept = ops.cumsum(ops.log1p(-share))  # of the prior, in each mean
        weighted = (ops.cast(frames, "float32") - self.prior) * (share * ops.exp(-log_kept))[:, None]
        return self.prior + ops.cumsum(weighted, axis=1) * ops.exp(log_kept)[:, None]

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
