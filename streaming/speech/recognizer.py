"""Recordings or live sound in, their segments as they end out: `recognition.recognizer.Recognizer` for models
that stream.

Nothing is cut beforehand and nothing waits for the recording's end; memory stays flat however long it is.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from streaming.speech.stream import SpeechStream
from streaming.speech.utterances import Syllable
from utils.audio.reading import audio_blocks
from utils.errors import AudioError
from utils.hypotheses.recognition import Ending, Segment

PIECE_SECONDS = 1.0  # files are read by the minute, and heard by the second

Convert = Callable[[Sequence[tuple[str, ...]]], Sequence[str]]
# Name; file, or blocks of mono samples in [-1, 1] at the model's rate.
Source = tuple[str, str | Path | Iterable[np.ndarray]]


class StreamRecognizer:
    """Recordings → segments, by a model that hears them along.

    Args:
        stream: the acoustic model.
        convert: hanzi of each of several sequences of syllables; None gives syllables only.
        on_event: called with each syllable as it is heard, and with each segment as it ends.

    Attributes:
        sample_rate: Hz, of samples that are given as such.
        heard_seconds: sound so far.
        busy_seconds: that the acoustic model has taken for it.
    """

    def __init__(
        self,
        stream: SpeechStream,
        convert: Convert | None = None,
        on_event: Callable[[Syllable | Segment], None] | None = None,
    ):
        self.sample_rate = stream.sample_rate
        self.heard_seconds = self.busy_seconds = 0.0
        self._stream, self._convert, self._on_event = stream, convert, on_event

    def segments(self, sources: Iterable[Source]) -> Iterator[tuple[str, Iterator[Segment | Ending]]]:
        """Recognise recordings of any length.

        Args:
            sources: read as they are needed, so a generator will do, and a microphone.

        Yields:
            of each recording its name and what comes of it: its segments, in their order, then one ending. To
            be consumed before the next recording is asked for.
        """
        for name, audio in sources:
            yield name, self._events(name, audio)

    def speed(self) -> str:
        """What was heard and what it took, in words."""
        heard, busy = self.heard_seconds, self.busy_seconds
        ahead = f"looking ahead {1000 * self._stream.look_ahead_seconds:.0f} ms"
        factor = f", real-time factor {busy / heard:.3f}" if heard else ""
        return f"{heard:.1f} s of sound heard in {busy:.1f} s, {ahead}{factor}"

    def _events(self, name: str, audio: str | Path | Iterable[np.ndarray]) -> Iterator[Segment | Ending]:
        blocks = audio_blocks(audio, self.sample_rate) if isinstance(audio, str | Path) else audio
        samples, error = 0, None
        self._stream.reset()
        try:
            for piece in _pieces(blocks, round(PIECE_SECONDS * self.sample_rate)):
                samples += len(piece)
                yield from self._told(self._stream.feed, piece)
            if not samples:
                error = AudioError("there are no samples", where=name)
        except AudioError as caught:
            error = caught
        yield from self._told(self._stream.flush)
        self.heard_seconds += samples / self.sample_rate
        yield Ending(samples / self.sample_rate, error)

    def _told(self, listen: Callable[..., list[Syllable | Segment]], *samples: np.ndarray) -> list[Segment]:
        """Call a method of the stream, tell what it hears, return the segments among it, with hanzi."""
        start = time.perf_counter()
        events = listen(*samples)
        self.busy_seconds += time.perf_counter() - start
        found = []
        for event in events:
            if self._on_event:
                self._on_event(event)
            if isinstance(event, Segment):
                found.append(self._in_hanzi(event))
        return found

    def _in_hanzi(self, segment: Segment) -> Segment:
        if not self._convert:
            return segment
        hanzi = self._convert([alternative.pinyin for alternative in segment.n_best])
        n_best = tuple(
            dataclasses.replace(alternative, hanzi=one)
            for alternative, one in zip(segment.n_best, hanzi, strict=True)
        )
        return dataclasses.replace(segment, n_best=n_best)


def _pieces(blocks: Iterable[np.ndarray], most: int) -> Iterator[np.ndarray]:
    """The same samples, in pieces of at most ``most``."""
    for block in blocks:
        for start in range(0, len(block), most):
            yield block[start : start + most]
