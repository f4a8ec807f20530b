"""Recognises live audio in two passes: partial results during an utterance, its segments when it has ended.

First pass: while one speaks, a small causal model computes each moment of the sound once and gives partial
results (hypotheses that the segments replace). Second pass: at a pause, the recogniser reads the samples of
the utterance again, with a model of whole utterances and its full search. Recordings are cut in the same way
(:mod:`recognition.voice_activity`), so a segment is what a recording of the same samples gives. Only where
noise hides the pauses from the level, the first pass ends utterances, too.
"""

import dataclasses

import numpy as np

from recognition.live.partial_results import PartialResultDecoder
from recognition.recognizer import Recognizer
from recognition.voice_activity import FRAME_SECONDS, PAUSE_FRAMES, Stretch, VoiceActivity
from streaming.speech.stream import LogitStream
from utils.hypotheses.recognition import Recognition
from utils.vocabulary import SPACE

# A pause by the first pass, where noise hides it from the level: seconds since the middle of the last
# syllable, and the part of them that belongs to the utterance.
BLANK_SECONDS, BLANK_MARGIN_SECONDS = 1.4, 0.5
# An utterance of NOISE_SECONDS without a syllable is noise: all but its last KEPT_NOISE_SECONDS is dropped.
NOISE_SECONDS, KEPT_NOISE_SECONDS = 4.0, 2.0


class FirstPass:
    """Follows one utterance at a time with a causal model.

    Args:
        stream: samples → rows of logits.
        recognizer: of the same acoustic model; its converter writes the hanzi.
    """

    def __init__(self, stream: LogitStream, recognizer: Recognizer):
        self.look_ahead_seconds = stream.look_ahead_seconds
        self._stream, self._recognizer = stream, recognizer
        vocabulary = recognizer.acoustic.vocabulary
        self._soundless = [vocabulary.index(SPACE)] if SPACE in vocabulary else []
        self._soundless.append(vocabulary.blank_index)
        self.begin()

    def begin(self) -> None:
        """Start a new utterance."""
        self._stream.reset()
        self._decoder = PartialResultDecoder(self._recognizer)
        self._rows = np.zeros((0, len(self._recognizer.acoustic.vocabulary)), np.float32)
        self._syllables = 0

    def feed(self, samples: np.ndarray) -> bool:
        """Process the next samples (n,) of the utterance; return whether a syllable has begun."""
        self._rows = np.concatenate([self._rows, self._stream.feed(samples)])
        before, self._syllables = self._syllables, len(self._onsets())
        return self._syllables > before

    def partial(self, start: float, seconds: float) -> Recognition:
        """The hypothesis so far of an utterance that began at ``start`` and has ``seconds``.

        All of it is stable: a causal model does not revise its output.
        """
        partial = self._decoder.partial(self._rows, start, seconds)
        return dataclasses.replace(partial, stable=len(partial.pinyin))

    @property
    def seconds(self) -> float:
        """The part of the utterance whose syllables are known."""
        return len(self._rows) * self._recognizer.acoustic.frame_seconds

    @property
    def last_syllable(self) -> float | None:
        """The middle of the last syllable, in seconds from the start of the utterance, if there is one."""
        onsets = self._onsets()
        if not len(onsets):
            return None
        lead = self._recognizer.calibration.lead_seconds
        return (int(onsets[-1]) + 0.5) * self._recognizer.acoustic.frame_seconds + lead

    def _onsets(self) -> np.ndarray:
        """The rows where a syllable begins."""
        best = self._rows.argmax(axis=1)
        return np.flatnonzero((np.diff(best, prepend=-1) != 0) & ~np.isin(best, self._soundless))


class TwoPassStream:
    """Samples → partial results and segments; a `LiveStream` of :mod:`streaming.speech.recognizer`.

    Args:
        recognizer: recognises each utterance when it has ended; shared by any number of streams.
        first_pass: gives the partial results; None: there are none.
    """

    def __init__(self, recognizer: Recognizer, first_pass: FirstPass | None):
        self.sample_rate = recognizer.sample_rate
        pause_seconds = PAUSE_FRAMES * FRAME_SECONDS
        self.look_ahead_seconds = first_pass.look_ahead_seconds if first_pass else pause_seconds
        self._recognizer, self._first_pass = recognizer, first_pass
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._activity = VoiceActivity(self.sample_rate)
        self._start: int | None = None  # first sample of the utterance that the first pass follows
        self._followed = 0  # samples before this number were processed by the first pass
        self._shown = False  # whether there was a partial result of the utterance

    def feed(self, samples: np.ndarray, behind: bool = False) -> list[Recognition]:
        """Process the next samples (n,) float32 in [-1, 1]; return the events that they complete, in order.

        Args:
            samples: any number of samples.
            behind: more audio is waiting already: no partial results are needed.
        """
        events: list[Recognition] = []
        for ended in self._activity.feed(samples):
            events += self._settled(ended) if ended else []
            events += self._follow(self._first_pass, behind) if self._first_pass else []
        return events

    def flush(self) -> list[Recognition]:
        """Return the events that the end of the audio completes; then `reset`."""
        events = [event for ended in self._activity.flush() for event in self._settled(ended)]
        events += self._withdrawn()
        self.reset()
        return events

    def _settled(self, utterance: Stretch) -> list[Recognition]:
        """The segments of an utterance that has ended, by the second pass."""
        piece = self._recognizer.piece(utterance.start / self.sample_rate, utterance.samples)
        (found,) = self._recognizer.recognise_pieces([piece])
        segments: list[Recognition] = [segment for segment in found if segment.times]
        if not segments:
            return self._withdrawn()
        self._start, self._shown = None, False
        return segments

    def _follow(self, first_pass: FirstPass, behind: bool) -> list[Recognition]:
        """Continue the first pass; end the utterance if it has no syllable any more."""
        endpoints = self._activity.endpoints
        start = None if endpoints.first is None else endpoints.first * endpoints.frame_samples
        events: list[Recognition] = []
        if start != self._start:
            events = self._withdrawn()
            self._start, self._followed = start, start or 0
            first_pass.begin()
        if start is None:
            return events
        begun = first_pass.feed(self._activity.sound(self._followed))
        self._followed = self._activity.samples
        last = first_pass.last_syllable
        if last is None and first_pass.seconds > NOISE_SECONDS:
            endpoints.cut(self._frame(start, first_pass.seconds - KEPT_NOISE_SECONDS), speaking=True)
            return events + self._withdrawn()
        if last is not None and first_pass.seconds - last > BLANK_SECONDS:
            return events + self._settled(self._activity.cut(self._frame(start, last + BLANK_MARGIN_SECONDS)))
        if begun and not behind:
            self._shown = True
            seconds = (self._followed - start) / self.sample_rate
            events.append(first_pass.partial(start / self.sample_rate, seconds))
        return events

    def _withdrawn(self) -> list[Recognition]:
        """A partial result without syllables, if the utterance has shown some; it has ended without text."""
        events: list[Recognition] = []
        if self._shown and self._start is not None:
            start, end = (sample / self.sample_rate for sample in (self._start, self._followed))
            events = [Recognition(start, end, is_final=False)]
        self._start, self._shown = None, False
        return events

    def _frame(self, start: int, seconds: float) -> int:
        """The frame at a time in the utterance from sample ``start`` on; it may be shorter than 20 ms."""
        return (start + round(seconds * self.sample_rate)) // self._activity.endpoints.frame_samples
