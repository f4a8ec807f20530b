"""Keras layers that ``convert`` inserts into a model so that it can stream: they keep frames and states.

`History` (the last frames), `FrameIndex` (a frame counter) and `RecurrentStream` (the state of a recurrent
layer) have states: tensors that are zero when a stream starts. With ``external=False`` the layer keeps its
states as weights that aren't trained; with ``external=True`` it takes a list of them as its last argument and
returns the next states after its output. `WarmUpMask` and `TakeFrames` have no states. ``timing`` explains
where each layer is needed. Each maps a chunk ``(1, c, …)`` to a chunk: a batch of one, c frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


class StreamState(keras.layers.Layer):
    """Base class of the layers with states."""

    def __init__(self, shapes: Sequence[Sequence[int]], external: bool = False, **kwargs):
        super().__init__(**kwargs | {"trainable": False})
        self.shapes = [list(shape) for shape in shapes]
        self.external = external
        internal = [] if external else enumerate(self.shapes)
        self.kept = [
            self.add_weight(shape=shape, initializer="zeros", trainable=False, name=f"state_{index}")
            for index, shape in internal
        ]

    def past(self, given: Sequence[Any] | None) -> list[Any]:
        """Return the states before this chunk."""
        return list(given or ()) if self.external else [ops.convert_to_tensor(state) for state in self.kept]

    def finish(self, output: Any, states: Sequence[Any]) -> Any:
        """Keep the states after this chunk, or return them with the output."""
        if self.external:
            return (output, *states)
        for kept, state in zip(self.kept, states, strict=True):
            kept.assign(state)
        return output

    def reset(self) -> None:
        """Set the internal states to zero."""
        for kept in self.kept:
            kept.assign(ops.zeros(kept.shape))


@keras.saving.register_keras_serializable(package="streaming")
class History(StreamState):
    """Prepend the previous B frames: (1, c, …) → (1, B + c, …). One state (1, B, …)."""

    def call(self, chunk, given=None):
        """``given``: a list with the state, if it is external."""
        (past,) = self.past(given)
        frames = ops.concatenate([past, chunk], axis=1)  # (1, B + c, …)
        return self.finish(frames, [frames[:, -past.shape[1] :]])


@keras.saving.register_keras_serializable(package="streaming")
class FrameIndex(StreamState):
    """Index of the chunk's frames since the reset: (1, c, …) → (1, c) float32. One state (1, 1).

    It stops growing at ``limit``, so that a stream may be endless.
    """

    def __init__(self, limit: int, **kwargs):
        super().__init__(**kwargs)
        self.limit = limit

    def call(self, chunk, given=None):
        """``given``: a list with the state, if it is external."""
        (past,) = self.past(given)
        count = chunk.shape[1]
        index = past + ops.reshape(ops.arange(count, dtype="float32"), (1, count))
        return self.finish(index, [ops.minimum(past + float(count), float(self.limit))])


@keras.saving.register_keras_serializable(package="streaming")
class RecurrentStream(StreamState):
    """A recurrent layer that continues where the last chunk ended. Its states are (1, units) each.

    Its cell is called frame by frame: a chunk is short, and every runtime supports a graph without a loop.
    Only a layer with a ``streaming_chunk`` accepts chunks of any length.

    Args:
        recurrent: the layer: SimpleRNN, GRU or LSTM, or one with a ``streaming_cell`` or only a
            ``streaming_chunk``.
        warm_up: number of input frames to ignore; if not 0, the call needs their indices.
        stride: input frames per frame of the chunk.
    """

    def __init__(self, recurrent: keras.layers.Layer, warm_up: int = 0, stride: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.recurrent, self.warm_up, self.stride = recurrent, warm_up, stride

    def build(self, chunk_shape):
        """Build the recurrent layer."""
        self.recurrent.build(chunk_shape)
        self.built = True

    def call(self, chunk, index=None, given=None):
        """``index``: (1, input frames) float32, if there is warm-up; ``given``: list of external states."""
        if chunk.shape[1] is None:
            return self.finish(*self.recurrent.streaming_chunk(chunk, self.past(given)))
        valid = after_warm_up(index, self.warm_up, self.stride) if self.warm_up else None  # (1, c)
        states, outputs, cell = self.past(given), [], cell_of(self.recurrent)
        if cell is self.recurrent:
            return self.finish(*cell.streaming_chunk(chunk, states, valid))
        for frame in range(chunk.shape[1]):
            output, after = cell(chunk[:, frame], states, training=False)
            if valid is not None:
                is_valid = valid[:, frame : frame + 1]  # (1, 1)
                after = [ops.where(is_valid, new, old) for new, old in zip(after, states, strict=True)]
            states = list(after)
            outputs.append(output)
        every_frame = getattr(self.recurrent, "return_sequences", True)
        return self.finish(ops.stack(outputs, axis=1) if every_frame else output, states)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        inner = keras.saving.serialize_keras_object(self.recurrent)
        inner.pop("build_config", None)  # this layer builds it
        own = {"recurrent": inner, "warm_up": self.warm_up, "stride": self.stride}
        return super().get_config() | {"shapes": self.shapes, "external": self.external} | own

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> RecurrentStream:
        """Create the layer from :meth:`get_config`."""
        return cls(**config | {"recurrent": keras.saving.deserialize_keras_object(config["recurrent"])})


def cell_of(recurrent: keras.layers.Layer) -> Any:
    """The cell that computes the output of a recurrent layer frame by frame; without one the layer itself."""
    return getattr(recurrent, "streaming_cell", None) or getattr(recurrent, "cell", recurrent)


def after_warm_up(index: Any, warm_up: int, stride: int) -> Any:
    """Whether each frame comes after the warm-up: (1, c · stride) indices of input frames → (1, c) bool."""
    return index[:, ::stride] >= warm_up - 0.5  # half a frame of tolerance: quantised indices aren't integers


@keras.saving.register_keras_serializable(package="streaming")
class WarmUpMask(keras.layers.Layer):
    """Set frames that start before the input frame ``warm_up`` to zero: (1, c, …) → the same shape."""

    def __init__(self, warm_up: int, stride: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.warm_up, self.stride = warm_up, stride

    def call(self, chunk, index):
        """``index``: (1, c · stride) indices of the input frames."""
        valid = after_warm_up(index, self.warm_up, self.stride)
        valid = ops.reshape(valid, (1, chunk.shape[1]) + (1,) * (len(chunk.shape) - 2))
        return ops.where(valid, chunk, ops.zeros_like(chunk))


@keras.saving.register_keras_serializable(package="streaming")
class TakeFrames(keras.layers.Layer):
    """Select ``count`` frames from ``first`` on: (1, c, …) → (1, count, …).

    Args:
        first: index of the first frame.
        count: number of frames; None: all that follow; -n: without the last n.
    """

    def __init__(self, first: int, count: int | None, **kwargs):
        super().__init__(**kwargs)
        self.first, self.count = first, count

    def call(self, chunk):
        """``chunk`` has at least ``first + count`` frames."""
        end = self.count if self.count is None or self.count < 0 else self.first + self.count
        return chunk[:, self.first : end]


def reset_state(model: keras.Model) -> None:
    """Set all internal states of a model to zero."""
    for layer in model.layers:
        if isinstance(layer, StreamState):
            layer.reset()
