"""The layers that a streamed model has beside the trained ones: they carry time from one call to the next.

Each state is a tensor that begins with zeros. With ``external=False`` the layer keeps it as a weight that
isn't trained; with ``external=True`` it gets the state as its last argument and gives the next one after its
output. Chunks are ``(1, c, …)``: a batch of one, c frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


class StreamState(keras.layers.Layer):
    """What the layers with a state share.

    Args:
        shapes: of the states.
        external: whether the caller keeps them.
    """

    def __init__(self, shapes: Sequence[Sequence[int]], external: bool = False, **kwargs):
        super().__init__(trainable=False, **kwargs)
        self.shapes = [list(shape) for shape in shapes]
        self.external = external
        kept = [] if external else enumerate(self.shapes)
        self.kept = [
            self.add_weight(shape=shape, initializer="zeros", trainable=False, name=f"state_{index}")
            for index, shape in kept
        ]

    def past(self, given: Sequence[Any] | None) -> list[Any]:
        """The states before this chunk."""
        return list(given) if self.external else [ops.convert_to_tensor(state) for state in self.kept]

    def done(self, output: Any, states: Sequence[Any]) -> Any:
        """The output, and the states after this chunk: given out, or kept."""
        if self.external:
            return (output, *states)
        for kept, state in zip(self.kept, states, strict=True):
            kept.assign(state)
        return output

    def reset(self) -> None:
        """Forget what was heard (internal states)."""
        for kept in self.kept:
            kept.assign(ops.zeros(kept.shape))

    def get_config(self) -> dict[str, Any]:
        """Settings, to build it again."""
        config = super().get_config() | {"shapes": self.shapes, "external": self.external}
        config.pop("trainable")
        return config


@keras.saving.register_keras_serializable(package="streaming")
class History(StreamState):
    """(1, c, …) → (1, B + c, …): the B frames before the chunk, then the chunk. One state (1, B, …)."""

    def call(self, chunk, given=None):
        """``given``: list of the one state, if it is external."""
        (past,) = self.past(given)
        frames = ops.concatenate([past, chunk], axis=1)  # (1, B + c, …)
        return self.done(frames, [frames[:, chunk.shape[1] :]])


@keras.saving.register_keras_serializable(package="streaming")
class FrameIndex(StreamState):
    """(1, c, …) → (1, c) float32: numbers of the chunk's frames since the reset. One state (1, 1).

    They stop growing at ``limit``, so that a stream may go on for ever.
    """

    def __init__(self, limit: int, **kwargs):
        super().__init__(**kwargs)
        self.limit = limit

    def call(self, chunk, given=None):
        """``given``: list of the one state, if it is external."""
        (past,) = self.past(given)
        count = chunk.shape[1]
        index = past + ops.reshape(ops.arange(count, dtype="float32"), (1, count))
        return self.done(index, [ops.minimum(past + float(count), float(self.limit))])

    def get_config(self) -> dict[str, Any]:
        """Settings, to build it again."""
        return super().get_config() | {"limit": self.limit}


@keras.saving.register_keras_serializable(package="streaming")
class RecurrentStream(StreamState):
    """A recurrent layer that goes on where the last chunk ended. Its states are (1, units) each.

    Its cell is called frame by frame: a chunk is short, and a graph without a loop runs in any runtime.

    Args:
        recurrent: the layer: SimpleRNN, GRU or LSTM.
        warm_up: input frames that it must not hear; then the call needs their numbers.
        stride: input frames of one frame of the chunk.
    """

    def __init__(self, recurrent: keras.layers.RNN, warm_up: int = 0, stride: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.recurrent, self.warm_up, self.stride = recurrent, warm_up, stride

    def build(self, chunk_shape):
        """Build the layer inside."""
        self.recurrent.build(chunk_shape)
        self.built = True

    def call(self, chunk, index=None, given=None):
        """``index`` (1, input frames) float32 if there is warm-up; ``given``: list of external states."""
        heard = heard_frames(index, self.warm_up, self.stride) if self.warm_up else None  # (1, c)
        states, outputs = self.past(given), []
        for frame in range(chunk.shape[1]):
            output, after = self.recurrent.cell(chunk[:, frame], states, training=False)
            if heard is not None:
                now = heard[:, frame : frame + 1]  # (1, 1)
                after = [ops.where(now, new, old) for new, old in zip(after, states, strict=True)]
            states = list(after)
            outputs.append(output)
        return self.done(ops.stack(outputs, axis=1) if self.recurrent.return_sequences else output, states)

    def get_config(self) -> dict[str, Any]:
        """Settings, to build it again."""
        inner = keras.saving.serialize_keras_object(self.recurrent)
        inner.pop("build_config", None)  # it is built with the layer around it, in its place
        return super().get_config() | {"recurrent": inner, "warm_up": self.warm_up, "stride": self.stride}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> RecurrentStream:
        """Build it again."""
        return cls(**config | {"recurrent": keras.saving.deserialize_keras_object(config["recurrent"])})


def heard_frames(index: Any, warm_up: int, stride: int) -> Any:
    """(1, c · stride) numbers of input frames → (1, c) bool: whether a frame is no warm-up."""
    return index[:, ::stride] >= warm_up - 0.5  # half a frame of room: quantised numbers aren't whole


@keras.saving.register_keras_serializable(package="streaming")
class WarmUpMask(keras.layers.Layer):
    """(1, c, …) → the same, with zeros for frames that begin before the input frame ``warm_up``."""

    def __init__(self, warm_up: int, stride: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.warm_up, self.stride = warm_up, stride

    def call(self, chunk, index):
        """``index``: (1, c · stride) numbers of the input frames."""
        heard = heard_frames(index, self.warm_up, self.stride)
        heard = ops.reshape(heard, (1, chunk.shape[1]) + (1,) * (len(chunk.shape) - 2))
        return ops.where(heard, chunk, ops.zeros_like(chunk))

    def get_config(self) -> dict[str, Any]:
        """Settings, to build it again."""
        return super().get_config() | {"warm_up": self.warm_up, "stride": self.stride}


@keras.saving.register_keras_serializable(package="streaming")
class TakeFrames(keras.layers.Layer):
    """(1, c, …) → (1, count, …), from the frame ``first`` on."""

    def __init__(self, first: int, count: int, **kwargs):
        super().__init__(**kwargs)
        self.first, self.count = first, count

    def call(self, chunk):
        """``chunk`` holds at least ``first + count`` frames."""
        return chunk[:, self.first : self.first + self.count]

    def get_config(self) -> dict[str, Any]:
        """Settings, to build it again."""
        return super().get_config() | {"first": self.first, "count": self.count}


def reset_state(model: keras.Model) -> None:
    """Let a model with internal state forget what it has heard."""
    for layer in model.layers:
        if isinstance(layer, StreamState):
            layer.reset()
