"""Adds punctuation to the segments of live audio."""

import numpy as np

from model_language.punctuation import Punctuation, Punctuator
from streaming.speech.recognizer import LiveStream
from utils.hypotheses.recognition import Recognition


class PunctuatedStream:
    """A `LiveStream` whose segments have punctuation; partial results have none."""

    def __init__(self, stream: LiveStream, punctuation: Punctuation):
        self.sample_rate, self.look_ahead_seconds = stream.sample_rate, stream.look_ahead_seconds
        self._stream, self._punctuation = stream, punctuation
        self._written = Punctuator(punctuation)

    def reset(self) -> None:
        """Start a new stream."""
        self._stream.reset()
        self._written = Punctuator(self._punctuation)

    def feed(self, samples: np.ndarray, behind: bool = False) -> list[Recognition]:
        """See :class:`streaming.speech.recognizer.LiveStream`."""
        return list(map(self._written, self._stream.feed(samples, behind)))

    def flush(self) -> list[Recognition]:
        """See :class:`streaming.speech.recognizer.LiveStream`."""
        events = list(map(self._written, self._stream.flush()))  # resets the stream
        self._written = Punctuator(self._punctuation)
        return events
