"""Keras layers that mask the padding of a batch: masks of the valid frames, zeroed padding, reversal, means.

A batch holds utterances of several lengths. With these layers an utterance has the same valid outputs alone
and in any batch: time is padded to a whole number of output frames (so that "same" padding of strided layers
is the same), and padding is set to zero before every layer that mixes frames.
"""

from collections.abc import Callable
from functools import cache

import keras
from keras import layers, ops


def masked_inputs(
    feature_bins: int, time_stride: int
) -> tuple[dict[str, keras.KerasTensor], keras.KerasTensor, Callable[[int], keras.KerasTensor]]:
    """:func:`masked_frames` with the features as an image, (B, T', F, 1)."""
    inputs, masked, valid_at = masked_frames(feature_bins, time_stride)
    return inputs, layers.Reshape((-1, feature_bins, 1), name="image")(masked), valid_at


def masked_frames(
    feature_bins: int, time_stride: int
) -> tuple[dict[str, keras.KerasTensor], keras.KerasTensor, Callable[[int], keras.KerasTensor]]:
    """Inputs and first layers of an acoustic model.

    Args:
        feature_bins: F, bins of a feature frame.
        time_stride: input frames per output frame; the time axis is padded to a multiple of it.

    Returns:
        inputs ``{"features": (B, T, F) float32, "lengths": (B,) int32}``; the features (B, T', F) with zeroed
        padding; and a function from a time stride to the mask of the valid frames at that stride,
        (B, T' / stride) bool.
    """
    features = keras.Input((None, feature_bins), name="features")
    lengths = keras.Input((), dtype="int32", name="lengths")
    padded = PadTime(time_stride, name="pad_time")(features)

    @cache
    def valid_at(stride: int) -> keras.KerasTensor:
        return FrameMask(stride, name=f"valid_{stride}")(padded, lengths)

    masked = MaskFrames(name="mask_features")(padded, valid_at(1))
    return {"features": features, "lengths": lengths}, masked, valid_at


@keras.saving.register_keras_serializable(package="model_speech")
class PadTime(keras.layers.Layer):
    """Append zero frames: (B, T, F) → (B, ceil(T / multiple) * multiple + more, F)."""

    def __init__(self, multiple: int, more: int = 0, **kwargs):
        super().__init__(**kwargs)
        self.multiple, self.more = multiple, more

    def call(self, features):
        """Pad the time axis at its end."""
        frames = ops.shape(features)[1]
        padded_frames = (frames + self.multiple - 1) // self.multiple * self.multiple + self.more
        # Pad by a constant, then cut: not every backend can pad by the value of a tensor.
        return ops.pad(features, ((0, 0), (0, self.multiple - 1 + self.more), (0, 0)))[:, :padded_frames]

    def compute_output_shape(self, shape):
        """(B, T, F) → (B, T', F)."""
        frames = None if shape[1] is None else -(-shape[1] // self.multiple) * self.multiple + self.more
        return (shape[0], frames, shape[2])


@keras.saving.register_keras_serializable(package="model_speech")
class FrameMask(keras.layers.Layer):
    """Valid frames after subsampling: (B, T, F), (B,) → (B, T / time_stride) bool.

    T must be a multiple of the stride (see `PadTime`). An output frame is valid if any of its input frames
    is.
    """

    def __init__(self, time_stride: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.time_stride = time_stride

    def call(self, features, lengths):
        """Compare the index of each frame with the length of its utterance."""
        frames = ops.shape(features)[1] // self.time_stride
        valid = (lengths + self.time_stride - 1) // self.time_stride
        return ops.arange(frames)[None, :] < ops.cast(valid, "int32")[:, None]

    def compute_output_shape(self, features_shape, lengths_shape):
        """(B, T, F), (B,) → (B, T / time_stride)."""
        frames = features_shape[1]
        return (features_shape[0], None if frames is None else frames // self.time_stride)

    def compute_output_spec(self, features, lengths):
        """Boolean for any dtype policy of the layer."""
        return keras.KerasTensor(self.compute_output_shape(features.shape, lengths.shape), dtype="bool")


@keras.saving.register_keras_serializable(package="model_speech")
class MaskFrames(keras.layers.Layer):
    """Set padding to zero, even where it is NaN: (B, T, …), (B, T) bool → (B, T, …)."""

    def call(self, frames, valid):
        """Keep the valid frames."""
        valid = ops.reshape(valid, (*ops.shape(valid), *[1] * (len(frames.shape) - 2)))
        return ops.where(valid, frames, ops.zeros((), dtype=frames.dtype))

    def compute_output_shape(self, frames_shape, valid_shape):
        """Return the shape of ``frames``."""
        return frames_shape


@keras.saving.register_keras_serializable(package="model_speech")
class ReverseFrames(keras.layers.Layer):
    """Reverse each utterance in time; padding stays at the end: (B, T, D), (B, T) bool → (B, T, D)."""

    def call(self, frames, valid):
        """Take frame ``length - 1 - t`` for each t below the length."""
        batch, size = ops.shape(valid)
        index = ops.arange(size, dtype="int32")[None, :]  # (1, T)
        length = ops.sum(ops.cast(valid, "int32"), axis=1, keepdims=True)  # (B, 1)
        source = ops.where(valid, length - 1 - index, index)  # (B, T)
        # One gather of whole frames: ops.take_along_axis would gather single values.
        source = source + ops.arange(batch, dtype="int32")[:, None] * size
        return ops.take(ops.reshape(frames, (-1, frames.shape[-1])), source, axis=0)

    def compute_output_shape(self, frames_shape, valid_shape):
        """Return the shape of ``frames``."""
        return frames_shape


@keras.saving.register_keras_serializable(package="model_speech")
class MeanFrame(keras.layers.Layer):
    """Mean over the valid frames: (B, T, D), (B, T) bool → (B, D); zeros for an utterance without frames."""

    def call(self, frames, valid):
        """Average the valid frames."""
        weight = ops.cast(valid, "float32")[:, :, None]  # (B, T, 1); float16 sums overflow
        total = ops.sum(ops.cast(frames, "float32") * weight, axis=1)
        return ops.cast(total / ops.maximum(ops.sum(weight, axis=1), 1.0), frames.dtype)

    def compute_output_shape(self, frames_shape, valid_shape):
        """(B, T, D), (B, T) → (B, D)."""
        return (frames_shape[0], frames_shape[2])
