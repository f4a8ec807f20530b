"""Recognises samples in chunks with a causal network: partial results, then segments of utterances.

samples ─ utils/features/stream ─▶ frames ─ a streamed network ─▶ rows of logits ─ utterances ─▶ events

A row has the logits of one output frame. Rows equal those of the whole recording, for pieces of any length.
An utterance ends with a pause, which the network marks with blanks.
"""

import numpy as np

from model_speech.causal_timing import CausalTiming
from streaming.chunks import ChunkBuffer, StreamedModel
from streaming.speech.utterances import UtteranceDecoder, UtteranceSegmenter
from utils.errors import ConfigError
from utils.features.settings import feature_bins
from utils.features.stream import FeatureStream
from utils.hypotheses.recognition import Recognition


class LogitStream:
    """Samples → rows of logits, one row per output frame.

    Args:
        model: the loaded model.
        network: its network as a stream, in any runtime: (1, frames_per_call, F) → (1, rows, C).
        frames_per_call: frames per chunk, a multiple of the time stride.

    Attributes:
        look_ahead_seconds: latency of a syllable.

    Raises:
        ConfigError: the features need the whole utterance, or the chunk is no multiple of the time stride.
    """

    def __init__(self, model: CausalTiming, network: StreamedModel, frames_per_call: int):
        check_chunk(model, frames_per_call)
        self.look_ahead_seconds = model.look_ahead_seconds
        self._model, self._network, self._chunks = model, network, ChunkBuffer(frames_per_call)
        self._features = FeatureStream(model.features)
        # Zero frames, as in training, that complete the last row and the last chunk.
        frames = model.time_stride + model.look_ahead + frames_per_call
        self._end = np.zeros((frames, feature_bins(model.features)), np.float32)
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._features.reset()
        self._network.reset()
        self._chunks.reset()
        self._frames = 0  # fed so far
        self._rows = 0  # returned so far
        self._skipped = self._model.delay  # rows still to come that belong to no sound

    def feed(self, samples: np.ndarray) -> np.ndarray:
        """Process the next samples (n,) in [-1, 1]; return the rows that they complete, (m, C) float32."""
        return self._run(self._features.feed(samples))

    def flush(self) -> np.ndarray:
        """Return the rows that the end of the audio completes, (m, C); then `reset`."""
        rows = self._run(self._features.flush())
        missing = -(-self._frames // self._model.time_stride) - self._rows
        if missing:
            rows = np.concatenate([rows, self._run(self._end)[:missing]])
        self.reset()
        return rows

    def _run(self, frames: np.ndarray) -> np.ndarray:
        """Frames (n, F) → the rows (m, C) of the chunks that they complete."""
        self._frames += len(frames)
        rows = [np.zeros((0, len(self._model.vocabulary)), np.float32)]
        chunks, at_once = self._chunks.feed(frames), self._model.chunks_at_once
        for start in range(0, len(chunks), at_once):
            output = self._network.step(np.concatenate(chunks[start : start + at_once], axis=1))[0]
            rows.append(output[self._skipped :])
            self._skipped = max(self._skipped - len(output), 0)
        self._rows += sum(map(len, rows))
        return np.concatenate(rows)


class SpeechStream:
    """Samples → partial results and segments of utterances, with a causal network."""

    def __init__(
        self, model: CausalTiming, network: StreamedModel, frames_per_call: int, decoder: UtteranceDecoder
    ):
        self.sample_rate = model.features.sample_rate  # Hz
        self.look_ahead_seconds = model.look_ahead_seconds  # latency of a syllable
        self._logits = LogitStream(model, network, frames_per_call)
        self._utterances = UtteranceSegmenter(model.vocabulary, decoder, model.frame_seconds)
        self._samples = 0  # fed so far

    def reset(self) -> None:
        """Start a new stream."""
        self._logits.reset()
        self._utterances.reset()
        self._samples = 0

    def feed(self, samples: np.ndarray, behind: bool = False) -> list[Recognition]:
        """Process the next samples (n,) in [-1, 1]; return the events that they complete, in order.

        Args:
            samples: float32.
            behind: more audio is waiting: no partial results are needed.
        """
        self._samples += len(samples)
        return self._utterances.feed(self._logits.feed(samples), behind)

    def flush(self) -> list[Recognition]:
        """Return the events that the end of the audio completes; then `reset`."""
        events = self._utterances.feed(self._logits.flush(), behind=True)
        events += self._utterances.flush(self._samples / self.sample_rate)
        self._samples = 0
        return events


def check_chunk(model: CausalTiming, frames: int) -> None:
    """Check that a model can process chunks of this many frames.

    Raises:
        ConfigError: they are no multiple of its time stride.
    """
    if frames < 1 or frames % model.time_stride:
        stride = f"{model.time_stride} frames, {1000 * model.frame_seconds:.0f} ms"
        raise ConfigError(
            f"a chunk of {frames} feature frames", hint=f"a multiple of the model's time stride: {stride}"
        )
