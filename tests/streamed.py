"""Runs a plain model on a clip and its stream on the same clip, chunk by chunk, and compares them."""

from __future__ import annotations

import math

import keras
import numpy as np

from streaming.convert import to_mode
from streaming.modes import Mode
from streaming.runner import KerasStream, Runner
from streaming.streamability import StreamFacts, stream_facts

STREAMS = (Mode.STREAM_INTERNAL_STATE_INFERENCE, Mode.STREAM_EXTERNAL_STATE_INFERENCE)
TOLERANCE = 1e-5


def with_random_weights(model: keras.Model, seed: int = 0) -> keras.Model:
    """Biases and statistics of their own in all layers: fresh ones (0 and 1) would hide errors."""
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


def run(stream: Runner, frames: np.ndarray, chunk: int) -> list[np.ndarray]:
    """Outputs for (1, frames, …), ``chunk`` frames a call; frames behind the last whole chunk are left out."""
    last = frames.shape[1] // chunk * chunk
    return [stream.step(frames[:, start : start + chunk]) for start in range(0, last, chunk)]


def difference(model: keras.Model, stream: Runner, facts: StreamFacts, chunk: int, seed: int, lost: int = 0):
    """Largest difference on all that both have; the stream goes on with noise behind the clip.

    Args:
        lost: output frames at the clip's end that depend on look-ahead.
    """
    clip = noise((1, *model.input.shape[1:]), seed)
    expected = keras.ops.convert_to_numpy(model(clip, training=False))
    end = facts.window if facts.delay is None else (expected.shape[1] + facts.delay) * facts.stride
    end = -(-end // chunk) * chunk
    more = noise((1, max(0, end - clip.shape[1]), *clip.shape[2:]), seed + 1)
    outputs = run(stream, np.concatenate([clip, more], axis=1)[:, :end], chunk)
    if facts.delay is None:
        assert facts.window % chunk == 0, "the clip's end falls into a chunk"
        return np.abs(outputs[-1] - expected).max()
    heard = np.concatenate(outputs, axis=1)[:, facts.delay :]
    length = expected.shape[1] - lost
    assert length > 0
    return np.abs(heard[:, :length] - expected[:, :length]).max()


def assert_streams(
    model: keras.Model, frames_per_call: int = 1, look_ahead: bool = False, lost: int = 0, modes=STREAMS
) -> StreamFacts:
    """The stream equals the plain model, with internal and external state, on two clips with a reset between."""
    facts = stream_facts(model, look_ahead)
    chunk = frames_per_call * facts.hop
    for mode in modes:
        stream = KerasStream(to_mode(model, mode, frames_per_call, look_ahead))
        for seed in (1, 3):
            stream.reset()
            assert difference(model, stream, facts, chunk, seed, lost) <= TOLERANCE, (mode, seed)
    return facts
