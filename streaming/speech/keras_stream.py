"""Runs a streamed Keras model chunk by chunk, such as the network of a causal acoustic model."""

import keras
import numpy as np

from model_speech.causal import CausalModel
from streaming.conversion.convert import to_mode
from streaming.conversion.layers import reset_state
from streaming.conversion.modes import Mode
from streaming.speech.stream import check_chunk
from utils.backend.prediction import prepare_prediction


class KerasStream:
    """Runs a streamed Keras model, with internal or external state.

    Args:
        model: streamed model from `to_mode(…, STREAM_…)`.
    """

    def __init__(self, model: keras.Model):
        self.model = model
        self.is_external = isinstance(model.input, dict)
        self.chunk_shape = tuple(model.input["input"].shape if self.is_external else model.input.shape)
        self.reset()

    def reset(self) -> None:
        """Start a new stream: set all states to zero."""
        reset_state(self.model)
        self.states: dict[str, np.ndarray] = {}
        if self.is_external:
            names = self.model.input.keys() - {"input"}
            self.states = {name: np.zeros(self.model.input[name].shape, np.float32) for name in names}

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """Process the next chunk.

        Args:
            chunk: float32 of shape ``chunk_shape``.

        Raises:
            ValueError: the chunk has another shape.
        """
        chunk = np.asarray(chunk, np.float32)
        if chunk.shape != self.chunk_shape:
            raise ValueError(f"a chunk of shape {chunk.shape}, not {self.chunk_shape}")
        if not self.is_external:
            return self.model.predict_on_batch(chunk)
        results = self.model.predict_on_batch({"input": chunk, **self.states})
        self.states = {name: results[f"{name}_next"] for name in self.states}
        return results["output"]

    __call__ = step


def keras_stream(model: CausalModel, frames_per_call: int) -> KerasStream:
    """The network of a causal model as a stream that Keras runs, ``frames_per_call`` frames at a time.

    The first call compiles it, which halves the time of later calls.

    Raises:
        ConfigError: the chunk is no multiple of the time stride.
    """
    check_chunk(model, frames_per_call)
    streamed = to_mode(model.network, Mode.STREAM_INTERNAL_STATE_INFERENCE, frames_per_call)
    prepare_prediction(streamed)
    return KerasStream(streamed)
