"""Chunks of samples in, syllables as they are heard and utterances as they end out: speech recognised along.

samples ─ utils/feature_stream ─▶ frames ─ a streamed network ─▶ rows of logits ─┬─ greedy ─▶ syllables
                                                                                 └─ decoder ─▶ utterances

The rows are those that the model gives of the whole recording, to its end and whatever the chunks are; so are
the syllables. An utterance ends with a pause: the network itself says where nobody speaks, with blanks.
"""

from __future__ import annotations

import numpy as np

from model_speech.causal import CausalModel
from model_speech.ctc.decoder import Decoder
from streaming.conversion.convert import to_mode
from streaming.conversion.modes import Mode
from streaming.conversion.runner import KerasStream, Runner
from streaming.speech.utterances import Syllable, UtteranceDecoder
from utils.backend.prediction import prepare_prediction
from utils.errors import ConfigError
from utils.features.stream import FeatureStream
from utils.hypotheses.recognition import Segment


class LogitStream:
    """Samples → rows of logits.

    Args:
        model: the network that ``runner`` runs, with its geometry.
        runner: the network in a streaming mode, in any runtime: (1, frames_per_call, F) → (1, rows, C).
        frames_per_call: frames that it takes at once, a multiple of the time stride.

    Raises:
        ConfigError: the features need an utterance's end, or the chunk doesn't suit the strides.
    """

    def __init__(self, model: CausalModel, runner: Runner, frames_per_call: int):
        _check_chunk(model, frames_per_call)
        self._model, self._runner, self._chunk = model, runner, frames_per_call
        self._features = FeatureStream(model.features)
        self.reset()

    def reset(self) -> None:
        """Forget what was heard."""
        self._features.reset()
        self._runner.reset()
        self._waiting = self._features.feed(np.zeros(0, np.float32))  # frames (n, F) that fill no chunk yet
        self._frames = 0  # of the sound so far
        self._early = self._model.delay  # rows still to come that belong to no sound
        self._rows = 0  # given

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Take the next samples (n,) in [-1, 1]; returns the rows that they complete, (m, C) float32."""
        return self._run(self._features.feed(samples))

    def flush(self) -> np.ndarray:
        """The rows that the end of the sound completes, (m, C); then `reset`."""
        rows = self._run(self._features.flush())
        missing = -(-self._frames // self._model.time_stride) - self._rows
        if missing:
            # Zero frames as in training, enough for the last row to be complete, and the chunk.
            silence = self._model.time_stride + self._model.look_ahead + self._chunk
            rest = self._run(np.zeros((silence, self._waiting.shape[1]), np.float32))
            rows = np.concatenate([rows, rest[:missing]])
        self.reset()
        return rows

    def _run(self, frames: np.ndarray) -> np.ndarray:
        """Frames (n, F) → the rows (m, C) of the chunks that they fill."""
        self._frames += len(frames)
        self._waiting = np.concatenate([self._waiting, frames])
        chunks = len(self._waiting) // self._chunk
        rows = [np.zeros((0, len(self._model.vocabulary)), np.float32)]
        for start in range(0, chunks * self._chunk, self._chunk):
            made = self._runner.step(self._waiting[None, start : start + self._chunk])[0]
            rows.append(made[self._early :])
            self._early = max(self._early - len(made), 0)
        self._waiting = self._waiting[chunks * self._chunk :]
        self._rows += sum(map(len, rows))
        return np.concatenate(rows)


class SpeechStream:
    """Samples → syllables as they are heard, and segments as their utterances end.

    Args:
        model: the network that ``runner`` runs, with all that belongs to it.
        runner, frames_per_call: as `LogitStream` takes them.
        decoder: reads each utterance once more when it has ended, with a beam or a language model; None: the
            syllables as they were heard.
    """

    def __init__(
        self, model: CausalModel, runner: Runner, frames_per_call: int, decoder: Decoder | None = None
    ):
        self.sample_rate = model.features.sample_rate  # Hz
        self.look_ahead_seconds = model.look_ahead_seconds  # that a syllable waits for
        self._logits = LogitStream(model, runner, frames_per_call)
        decoder = decoder or Decoder(model.vocabulary.blank_index)
        self._utterances = UtteranceDecoder(model.vocabulary, decoder, model.frame_seconds)

    def reset(self) -> None:
        """Forget what was heard."""
        self._logits.reset()
        self._utterances.reset()

    def feed(self, samples: np.ndarray) -> list[Syllable | Segment]:
        """Take the next samples (n,) in [-1, 1]; returns what was heard for certain, in its order."""
        return self._utterances.feed(self._logits.feed(samples))

    def flush(self) -> list[Syllable | Segment]:
        """What the end of the sound completes; then `reset`."""
        events = self._utterances.feed(self._logits.flush())
        return events + self._utterances.flush()


def keras_stream(model: CausalModel, frames_per_call: int) -> KerasStream:
    """The network of a causal model, fed ``frames_per_call`` frames at a time by Keras.

    It is compiled at its first call, and then costs half as much.

    Raises:
        ConfigError: the chunk doesn't suit the strides.
    """
    _check_chunk(model, frames_per_call)
    streamed = to_mode(model.network, Mode.STREAM_INTERNAL_STATE_INFERENCE, frames_per_call)
    prepare_prediction(streamed)
    return KerasStream(streamed)


def _check_chunk(model: CausalModel, frames: int) -> None:
    if frames < 1 or frames % model.time_stride:
        least = f"{model.time_stride} frames, {1000 * model.frame_seconds:.0f} ms"
        hint = f"a multiple of the model's time stride: {least}"
        raise ConfigError(f"a chunk of {frames} feature frames", hint=hint)
