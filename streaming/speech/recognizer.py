"""Recognises recordings or live audio with a stream; reports segments as they end, partial results before.

The counterpart of `recognition.recognizer.Recognizer`: nothing waits for the end of the recording, partial
results (hypotheses that may still grow) of each utterance are reported while it is spoken, and memory doesn't
grow with the recording's length.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, Self

import numpy as np
import soxr

from utils.audio.reading import audio_blocks
from utils.audio.samples import mono_samples
from utils.errors import AudioError
from utils.hypotheses.recognition import Ending, Recognition
from utils.hypotheses.whole_recordings import whole_recording
from utils.processes import one_blas_thread

PIECE_SECONDS = 1.0  # files are read by the minute, and processed by the second
LIVE_PIECE_SECONDS = 0.1  # of live audio that has been waiting

# Name; file, or blocks of mono samples in [-1, 1] at the model's rate.
Source = tuple[str, str | Path | Iterable[np.ndarray]]


class LiveStream(Protocol):
    """Samples → partial results and segments of utterances, with any model.

    Attributes:
        sample_rate: Hz.
        look_ahead_seconds: seconds from the end of a syllable until it is recognised reliably.
    """

    sample_rate: int
    look_ahead_seconds: float

    def reset(self) -> None:
        """Start a new stream."""

    def feed(self, samples: np.ndarray, behind: bool = False) -> list[Recognition]:
        """Process the next samples (n,) float32 in [-1, 1]; return the events that they complete, in order.

        ``behind``: more audio is waiting already, so partial results may be rarer.
        """

    def flush(self) -> list[Recognition]:
        """Return the events that the end of the audio completes; then `reset`."""


class RecognitionStream:
    """Chunks of live audio → results. As a context manager, its end is the end of the audio.

    Args:
        stream: the model.
        rate: Hz, of the chunks.

    Attributes:
        segments: the final results so far, in order.
    """

    def __init__(self, stream: LiveStream, rate: int):
        self.segments: list[Recognition] = []
        self._stream, self._rate, self._samples = stream, rate, 0
        resampled = rate != stream.sample_rate
        self._resampler = (
            soxr.ResampleStream(rate, stream.sample_rate, 1, dtype="float32") if resampled else None
        )
        stream.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.finish()

    def feed(self, samples: np.ndarray) -> list[Recognition]:
        """Process a chunk; return the results that it completes, in order.

        A partial result (``is_final`` is False) is replaced by the next one, or by a final one.

        Args:
            samples: (n,) mono, floats in [-1, 1] or 16-bit integers.

        Raises:
            AudioError: the samples are of another kind.
        """
        samples = mono_samples(samples)
        self._samples += len(samples)
        return self._results(self._stream.feed(self._at_rate(samples)))

    def finish(self) -> list[Recognition]:
        """End the audio; return the final results that this completes. A later chunk begins new audio."""
        rest = self._at_rate(np.zeros(0, np.float32), last=True)
        results = self._results(self._stream.feed(rest, True))
        return results + self._results(self._stream.flush())

    @property
    def result(self) -> Recognition:
        """All final results so far as one."""
        return whole_recording("stream", self._samples / self._rate, self.segments)

    def _at_rate(self, samples: np.ndarray, last: bool = False) -> np.ndarray:
        if self._resampler is None:
            return samples
        return np.clip(self._resampler.resample_chunk(samples, last=last), -1.0, 1.0)

    def _results(self, found: list[Recognition]) -> list[Recognition]:
        self.segments += (result for result in found if result.is_final)
        return found


class StreamRecognizer:
    """Recordings → segments.

    Args:
        stream: the model.
        on_event: called with each partial result of an utterance, and with each segment when it ends; None:
            partial results are rarer.

    Attributes:
        sample_rate: Hz, of blocks of samples.
        sound_seconds: seconds of audio processed so far.
        busy_seconds: processing time so far, in seconds.
    """

    def __init__(self, stream: LiveStream, on_event: Callable[[Recognition], None] | None = None):
        self.sample_rate = stream.sample_rate
        self.sound_seconds = self.busy_seconds = 0.0
        self._stream, self._on_event = stream, on_event

    def segments(self, sources: Iterable[Source]) -> Iterator[tuple[str, Iterator[Recognition | Ending]]]:
        """Recognise recordings of any length.

        Args:
            sources: read lazily: a generator or a microphone works as well. A block of live audio holds all
                that has arrived since the one before. If the recogniser is slower than the audio, blocks get
                longer; only their last pieces have partial results, so that it catches up.

        Yields:
            name and events of each recording: its segments in order, then one ending. Consume the events
            before asking for the next recording.
        """
        for name, audio in sources:
            yield name, self._events(name, audio)

    def speed(self) -> str:
        """The processing speed so far, in words."""
        sound, busy = self.sound_seconds, self.busy_seconds
        ahead = f"looking ahead {1000 * self._stream.look_ahead_seconds:.0f} ms"
        factor = f", real-time factor {busy / sound:.3f}" if sound else ""
        return f"{sound:.1f} s of audio processed in {busy:.1f} s, {ahead}{factor}"

    def _events(self, name: str, audio: str | Path | Iterable[np.ndarray]) -> Iterator[Recognition | Ending]:
        blocks = audio_blocks(audio, self.sample_rate) if isinstance(audio, str | Path) else audio
        is_file = blocks is not audio
        size = round((PIECE_SECONDS if is_file else LIVE_PIECE_SECONDS) * self.sample_rate)
        samples, error = 0, None
        self._stream.reset()
        try:
            for block in blocks:
                for start in range(0, len(block), size):
                    piece = block[start : start + size]
                    is_last = is_file or start + size >= len(block)
                    samples += len(piece)
                    yield from self._segments(self._stream.feed, piece, not (self._on_event and is_last))
            if not samples:
                error = AudioError("there are no samples", where=name)
        except AudioError as caught:
            error = caught
        yield from self._segments(self._stream.flush)
        self.sound_seconds += samples / self.sample_rate
        yield Ending(samples / self.sample_rate, error)

    def _segments(self, method: Callable[..., list[Recognition]], *arguments: object) -> list[Recognition]:
        """Call a method of the stream, report its events, return the segments among them."""
        start = time.perf_counter()
        # One thread for each matrix product: those of a chunk are so small that threads wait for each other.
        with one_blas_thread():
            events = method(*arguments)
        self.busy_seconds += time.perf_counter() - start
        if self._on_event:
            for event in events:
                self._on_event(event)
        return [event for event in events if event.is_final]
