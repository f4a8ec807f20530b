"""Recordings or live sound in, recognised segments as they end out, with a streamed model.

The counterpart of `recognition.recognizer.Recognizer`: nothing is cut beforehand or waits for the end of the
recording, and memory doesn't grow with its length.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from streaming.chunks import cut_blocks
from streaming.speech.stream import SpeechStream
from streaming.speech.utterances import Syllable
from utils.audio.reading import audio_blocks
from utils.errors import AudioError
from utils.hypotheses.recognition import Ending, Segment

PIECE_SECONDS = 1.0  # files are read by the minute, and processed by the second

Convert = Callable[[Sequence[tuple[str, ...]]], Sequence[str]]
# Name; file, or blocks of mono samples in [-1, 1] at the model's rate.
Source = tuple[str, str | Path | Iterable[np.ndarray]]


class StreamRecognizer:
    """Recordings → segments.

    Args:
        stream: the acoustic model.
        convert: syllable sequences → hanzi of each; None: syllables only.
        on_event: called with each syllable when it is recognised, and with each segment when it ends.

    Attributes:
        sample_rate: Hz, of blocks of samples.
        sound_seconds: seconds of sound processed so far.
        busy_seconds: seconds that the acoustic model needed for it.
    """

    def __init__(
        self,
        stream: SpeechStream,
        convert: Convert | None = None,
        on_event: Callable[[Syllable | Segment], None] | None = None,
    ):
        self.sample_rate = stream.sample_rate
        self.sound_seconds = self.busy_seconds = 0.0
        self._stream, self._convert, self._on_event = stream, convert, on_event

    def segments(self, sources: Iterable[Source]) -> Iterator[tuple[str, Iterator[Segment | Ending]]]:
        """Recognise recordings of any length.

        Args:
            sources: read lazily: a generator or a microphone works as well.

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
        return f"{sound:.1f} s of sound processed in {busy:.1f} s, {ahead}{factor}"

    def _events(self, name: str, audio: str | Path | Iterable[np.ndarray]) -> Iterator[Segment | Ending]:
        blocks = audio_blocks(audio, self.sample_rate) if isinstance(audio, str | Path) else audio
        samples, error = 0, None
        self._stream.reset()
        try:
            for piece in cut_blocks(blocks, round(PIECE_SECONDS * self.sample_rate)):
                samples += len(piece)
                yield from self._segments(self._stream.feed, piece)
            if not samples:
                error = AudioError("there are no samples", where=name)
        except AudioError as caught:
            error = caught
        yield from self._segments(self._stream.flush)
        self.sound_seconds += samples / self.sample_rate
        yield Ending(samples / self.sample_rate, error)

    def _segments(
        self, method: Callable[..., list[Syllable | Segment]], *samples: np.ndarray
    ) -> list[Segment]:
        """Call a method of the stream, report its events, return the segments among them, with hanzi."""
        start = time.perf_counter()
        events = method(*samples)
        self.busy_seconds += time.perf_counter() - start
        if self._on_event:
            for event in events:
                self._on_event(event)
        return [self._in_hanzi(event) for event in events if isinstance(event, Segment)]

    def _in_hanzi(self, segment: Segment) -> Segment:
        if not self._convert:
            return segment
        hanzi = self._convert([alternative.pinyin for alternative in segment.n_best])
        n_best = tuple(
            dataclasses.replace(alternative, hanzi=text)
            for alternative, text in zip(segment.n_best, hanzi, strict=True)
        )
        return dataclasses.replace(segment, n_best=n_best)
