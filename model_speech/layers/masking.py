"""Padding kept out of the acoustic models: true lengths in, masks for layers and zeroed frames out.

A batch holds utterances of several lengths. These layers see to it that an utterance's valid outputs are
the same alone and in any batch: time is padded to a whole number of output frames (so that "same" padding
of strided layers falls alike), and whatever lies beyond the end is zero before every layer that mixes time.
"""

from __future__ import annotations

from collections.abc import Callable

import keras
from keras import layers, ops


def masked_inputs(
    feature_bins: int, time_stride: int
) -> tuple[dict[str, keras.KerasTensor], keras.KerasTensor, Callable[[int], keras.KerasTensor]]:
    """How every acoustic model begins.

    Args:
        feature_bins: F, bins of a feature frame.
        time_stride: input frames per output frame; the time axis is padded to a multiple of it.

    Returns:
        inputs ``{"features": (B, T, F) float32, "lengths": (B,) int32}``; the features as an image
        (B, T', F, 1) whose padding is zero; and a function of a stride that gives the mask of the frames
        that are valid there, (B, T' / stride) bool.
    """
    features = keras.Input((None, feature_bins), name="features")
    lengths = keras.Input((), dtype="int32", name="lengths")
    padded = PadTime(time_stride)(features)

    def valid_at(stride: int) -> keras.KerasTensor:
        return FrameMask(stride)(padded, lengths)

    image = layers.Reshape((-1, feature_bins, 1))(MaskFrames()(padded, valid_at(1)))
    return {"features": features, "lengths": lengths}, image, valid_at


@keras.saving.register_keras_serializable(package="model_speech")
class PadTime(keras.layers.Layer):
    """Append zero frames up to a multiple: (B, T, F) → (B, ceil(T / multiple) * multiple + more, F)."""

    def __init__(self, multiple: int, more: int = 0, **kwargs):
        super().__init__(**kwargs)
        self.multiple, self.more = multiple, more

    def call(self, features):
        """Pad the time axis at its end."""
        frames = ops.shape(features)[1]
        wanted = (frames + self.multiple - 1) // self.multiple * self.multiple + self.more
        # A fixed amount, then a cut: padding by a tensor's value doesn't work in every backend.
        return ops.pad(features, ((0, 0), (0, self.multiple - 1 + self.more), (0, 0)))[:, :wanted]

    def compute_output_shape(self, shape):
        """(B, T, F) → (B, T', F)."""
        frames = None if shape[1] is None else -(-shape[1] // self.multiple) * self.multiple + self.more
        return (shape[0], frames, shape[2])

    def get_config(self):
        """Return the constructor's arguments."""
        return {**super().get_config(), "multiple": self.multiple, "more": self.more}


@keras.saving.register_keras_serializable(package="model_speech")
class FrameMask(keras.layers.Layer):
    """Valid frames after subsampling: (B, T, F), (B,) → (B, T / time_stride) bool.

    T must be a multiple of the stride (see `PadTime`); a frame is valid if it saw a valid input frame.
    """

    def __init__(self, time_stride: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.time_stride = time_stride

    def call(self, features, lengths):
        """Compare each frame's position with its utterance's length."""
        frames = ops.shape(features)[1] // self.time_stride
        valid = (lengths + self.time_stride - 1) // self.time_stride
        return ops.arange(frames)[None, :] < ops.cast(valid, "int32")[:, None]

    def compute_output_shape(self, features_shape, lengths_shape):
        """(B, T, F), (B,) → (B, T / time_stride)."""
        frames = features_shape[1]
        return (features_shape[0], None if frames is None else frames // self.time_stride)

    def compute_output_spec(self, features, lengths):
        """Boolean whatever the layer's dtype policy."""
        return keras.KerasTensor(self.compute_output_shape(features.shape, lengths.shape), dtype="bool")

    def get_config(self):
        """Return the constructor's arguments."""
        return {**super().get_config(), "time_stride": self.time_stride}


@keras.saving.register_keras_serializable(package="model_speech")
class MaskFrames(keras.layers.Layer):
    """Set frames beyond the end to zero, whatever they hold (NaN too): (B, T, …), (B, T) bool → (B, T, …)."""

    def call(self, frames, valid):
        """Keep valid frames."""
        valid = ops.reshape(valid, (*ops.shape(valid), *[1] * (len(frames.shape) - 2)))
        return ops.where(valid, frames, ops.zeros((), dtype=frames.dtype))

    def compute_output_shape(self, frames_shape, valid_shape):
        """Return the shape of ``frames``."""
        return frames_shape


@keras.saving.register_keras_serializable(package="model_speech")
class ReverseFrames(keras.layers.Layer):
    """Turn each utterance around, padding staying at the end: (B, T, D), (B, T) bool → (B, T, D)."""

    def call(self, frames, valid):
        """Take frame ``length - 1 - t`` for each t below the length."""
        batch, size = ops.shape(valid)
        place = ops.arange(size, dtype="int32")[None, :]  # (1, T)
        length = ops.sum(ops.cast(valid, "int32"), axis=1, keepdims=True)  # (B, 1)
        source = ops.where(valid, length - 1 - place, place)  # (B, T)
        # One flat gather of whole frames, rather than one of single values (ops.take_along_axis).
        source = source + ops.arange(batch, dtype="int32")[:, None] * size
        return ops.take(ops.reshape(frames, (-1, frames.shape[-1])), source, axis=0)

    def compute_output_shape(self, frames_shape, valid_shape):
        """Return the shape of ``frames``."""
        return frames_shape


@keras.saving.register_keras_serializable(package="model_speech")
class MeanFrame(keras.layers.Layer):
    """The mean over an utterance's valid frames: (B, T, D), (B, T) bool → (B, D); no frame gives zeros."""

    def call(self, frames, valid):
        """Average what is valid."""
        weight = ops.cast(valid, "float32")[:, :, None]  # (B, T, 1); in half precision a long sum overflows
        total = ops.sum(ops.cast(frames, "float32") * weight, axis=1)
        return ops.cast(total / ops.maximum(ops.sum(weight, axis=1), 1.0), frames.dtype)

    def compute_output_shape(self, frames_shape, valid_shape):
        """(B, T, D), (B, T) → (B, D)."""
        return (frames_shape[0], frames_shape[2])
