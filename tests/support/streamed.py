"""Runs a plain model on a clip and its stream on the same clip, chunk by chunk, and compares them."""

import math

import keras
import numpy as np

from streaming.chunks import StreamedModel
from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.conversion.plan import StreamGeometry, stream_geometry
from streaming.conversion.timing import round_up
from streaming.speech.keras_stream import KerasStream

INTERNAL, EXTERNAL = Mode.STREAM_INTERNAL_STATE_INFERENCE, Mode.STREAM_EXTERNAL_STATE_INFERENCE
STREAMS = (INTERNAL, EXTERNAL)
TOLERANCE = 1e-5


def with_random_weights(model: keras.Model, seed: int = 0) -> keras.Model:
    """Randomise biases and statistics in all layers: initial ones (0 and 1) would hide errors."""
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        if "variance" in variable.path or "gamma" in variable.path:
            values = rng.uniform(0.5, 1.5, variable.shape)
        else:
            fan_in = math.prod(variable.shape[:-1]) if len(variable.shape) > 1 else 4
            values = rng.normal(size=variable.shape) / math.sqrt(fan_in)
        variable.assign(values.astype(np.float32))
    return model


def model_of(inputs, outputs, seed: int = 0) -> keras.Model:
    """A functional model with random weights."""
    return with_random_weights(keras.Model(inputs, outputs), seed)


def noise(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run(stream: StreamedModel, frames: np.ndarray, chunk: int) -> list[np.ndarray]:
    """Outputs for (1, frames, …), ``chunk`` frames per call, without an incomplete chunk at the end."""
    last = frames.shape[1] // chunk * chunk
    return [stream.step(frames[:, start : start + chunk]) for start in range(0, last, chunk)]


def difference(stream: StreamedModel, clip: np.ndarray, expected: np.ndarray, facts: StreamGeometry) -> float:
    """Largest difference of the common outputs; after the clip the stream continues with noise.

    Args:
        clip: (1, frames, …).
        expected: (1, …), the plain model's answer.
    """
    chunk = stream.chunk_shape[1]
    end = facts.window if facts.delay is None else (expected.shape[1] + facts.delay) * facts.stride
    end = round_up(end, chunk)
    more = noise((1, max(0, end - clip.shape[1]), *clip.shape[2:]), seed=9)
    outputs = run(stream, np.concatenate([clip, more], axis=1)[:, :end], chunk)
    if facts.delay is None:
        return np.abs(outputs[-1] - expected).max()
    streamed = np.concatenate(outputs, axis=1)[:, facts.delay :]
    return np.abs(streamed[:, : expected.shape[1]] - expected).max()


def assert_streams(model: keras.Model, *calls: tuple[Mode, int]) -> StreamGeometry:
    """The stream equals the plain model on two clips, with a reset between them.

    Args:
        model: the plain model.
        calls: modes of streaming with the frames per call.
    """
    facts = stream_geometry(model)
    clips = noise((2, *model.inputs[0].shape[1:]), seed=1)
    expected = keras.ops.convert_to_numpy(model(clips, training=False))
    for mode, frames_per_call in calls:
        stream = KerasStream(to_mode(model, mode, frames_per_call))
        for clip, reference in zip(clips, expected, strict=True):
            stream.reset()
            worst = difference(stream, clip[None], reference[None], facts)
            assert worst <= TOLERANCE, (mode, frames_per_call)
    return facts
