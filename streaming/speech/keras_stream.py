"""Converts the network of a causal Keras model into a stream that Keras runs."""

from model_speech.causal import CausalModel
from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.conversion.runner import KerasStream
from streaming.speech.stream import check_chunk
from utils.backend.prediction import prepare_prediction


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
