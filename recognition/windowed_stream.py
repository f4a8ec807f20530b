"""Recognises live audio with an acoustic model that needs whole utterances: partial results, then segments.

The utterance so far is recognised again and again, which gives partial results (hypotheses that may still
change). The model that ships is of this kind. Two things bound the cost: only the last :data:`WINDOW_SECONDS`
are computed again, and the time between two partial results is at least a :data:`SHARE`-th of what is
computed. So a second of speech costs at most ``SHARE`` times as much as in a recording, in partial results,
and once more in the segment; silence costs almost nothing. Utterances, and therefore segments, depend on the
samples only, not on the pieces in which they come. A segment equals the result of the recogniser for a
recording of the same samples.
"""

import dataclasses
from collections import deque

import numpy as np

from recognition.endpoints import CONTEXT_FRAMES, Endpointer
from recognition.partial_results import PartialResultDecoder, common_syllables
from recognition.recognizer import Recognizer
from utils.features.speech import extract_features
from utils.hypotheses.recognition import Partial, Segment

WINDOW_SECONDS = 6.4  # the audio that is computed again for a partial result
LEFT_SECONDS = 2.4  # left context is missing at the start of a window: here earlier logits are kept
SHARE = 20  # upper limit of the audio computed again for partial results, as a multiple of the audio itself
SHORTEST_SECONDS = 0.3  # minimum time between two partial results
# From one check for a pause or noise to the next: always in the audio that is computed again, and not put off
# while more audio is waiting, so that utterances do not depend on how fast they are processed.
CHECK_SECONDS = 1.6
RIGHT_SECONDS = 0.4  # a syllable that ended longer ago rarely changes
STABLE_RESULTS = 3  # syllables that were the same in this many partial results are reported as stable
# A pause by the acoustic model, where noise hides it from the level: seconds since the middle of the last
# syllable, and the part of them that belongs to the utterance.
BLANK_SECONDS, BLANK_MARGIN_SECONDS = 1.4, 0.5
# An utterance of NOISE_SECONDS without a syllable is noise: all but its last KEPT_NOISE_SECONDS is dropped.
NOISE_SECONDS, KEPT_NOISE_SECONDS = 4.0, 2.0


class WindowedStream:
    """Samples → partial results and segments; a `LiveStream` of :mod:`streaming.speech.recognizer`.

    Args:
        recognizer: recognises each utterance; shared by any number of streams.
    """

    look_ahead_seconds = RIGHT_SECONDS

    def __init__(self, recognizer: Recognizer):
        self.sample_rate = recognizer.sample_rate
        self._recognizer = recognizer
        self._endpoints = Endpointer(self.sample_rate)
        self._row_samples = round(recognizer.acoustic.frame_seconds * self.sample_rate)
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._endpoints.reset()
        self._pending = np.zeros(0, np.float32)  # less than a step
        self._sound, self._origin = np.zeros(0, np.float32), 0  # samples in memory, number of the first one
        self._recognised = False  # whether any sound was taken for speech
        self._new_utterance()

    def feed(self, samples: np.ndarray, behind: bool = False) -> list[Partial | Segment]:
        """Process the next samples (n,) float32 in [-1, 1]; return the events that they complete, in order.

        Args:
            samples: any number of samples.
            behind: more audio is waiting already: partial results are rarer.
        """
        self._pending = np.concatenate([self._pending, samples])
        size, events = self._endpoints.step_samples, []
        while len(self._pending) >= size:
            step, self._pending = self._pending[:size], self._pending[size:]
            events += self._step(step, behind)
        return events

    def flush(self) -> list[Partial | Segment]:
        """Return the events that the end of the audio completes; then `reset`."""
        events = self._step(self._pending, behind=True)
        first, end = self._endpoints.first, self._origin + len(self._sound)
        if first is None and not self._recognised and end <= CONTEXT_FRAMES * self._endpoints.frame_samples:
            first = 0  # too short to distinguish speech from noise
        if first is not None and end > first * self._endpoints.frame_samples:
            events += self._segments(first * self._endpoints.frame_samples, end)
        self.reset()
        return events

    def _step(self, samples: np.ndarray, behind: bool) -> list[Partial | Segment]:
        """Process a step, or the rest at the end of the stream."""
        endpoints, size = self._endpoints, self._endpoints.frame_samples
        self._sound = np.concatenate([self._sound, samples])
        ended = endpoints.feed(samples)
        now = endpoints.frames * size
        events: list[Partial | Segment] = []
        if ended:
            events = self._segments(ended[0] * size, ended[1] * size)
        elif endpoints.first is not None:
            check = now - max(self._checked, endpoints.first * size) >= CHECK_SECONDS * self.sample_rate
            silent = self._recognised_up_to >= endpoints.last * size + RIGHT_SECONDS * self.sample_rate
            if check or not (behind or silent or now - self._recognised_up_to < self._interval(now)):
                events = self._partial_result(endpoints.first * size, now, check)
        dropped = max(endpoints.oldest * size - self._origin, 0)
        self._sound, self._origin = self._sound[dropped:], self._origin + dropped
        return events

    def _interval(self, now: int) -> float:
        """Samples between two partial results."""
        length = now - self._endpoints.first * self._endpoints.frame_samples
        computed = min(length, WINDOW_SECONDS * self.sample_rate)
        return max(SHORTEST_SECONDS * self.sample_rate, computed / SHARE)

    def _partial_result(self, start: int, now: int, check: bool) -> list[Partial | Segment]:
        """Recognise the samples from ``start`` to ``now``; ``check`` whether the utterance has ended."""
        self._recognised_up_to, self._recognised = now, True
        rows = self._logits(start, now)
        seconds = (now - start) / self.sample_rate
        partial = self._decoder.partial(rows, start / self.sample_rate, seconds)
        if check:
            self._checked = now
            if not partial.pinyin and seconds > NOISE_SECONDS:
                self._endpoints.cut(self._frame(now / self.sample_rate - KEPT_NOISE_SECONDS), speaking=True)
                withdrawn = [Partial(partial.start, partial.end, ())] if self._shown[0] else []
                self._new_utterance()
                return withdrawn
            middle = sum(partial.times[-1]) / 2 if partial.times else partial.end
            if partial.end - middle > BLANK_SECONDS:
                first, end = self._endpoints.cut(self._frame(middle + BLANK_MARGIN_SECONDS), speaking=True)
                size = self._endpoints.frame_samples
                return self._segments(first * size, end * size)
        self._partials.append(partial.pinyin)
        if not partial.pinyin and not self._shown[0]:
            return []
        old = sum(end < partial.end - RIGHT_SECONDS for _, end in partial.times)
        same = common_syllables(self._partials) if len(self._partials) == STABLE_RESULTS else 0
        partial = dataclasses.replace(partial, stable=min(old, same))
        if (partial.pinyin, partial.stable) == self._shown:
            return []
        self._shown = partial.pinyin, partial.stable
        return [partial]

    def _logits(self, start: int, now: int) -> np.ndarray:
        """Rows (T, C) of the utterance so far; those before the window are of earlier partial results."""
        skipped = max(0, -int(-(now - start - WINDOW_SECONDS * self.sample_rate) // self._row_samples))
        left = round(LEFT_SECONDS * self.sample_rate / self._row_samples)
        # An utterance that begins at a cut in mid-speech is long at once, without earlier rows.
        skipped = min(skipped, max(len(self._rows) - left, 0))
        begin = start + skipped * self._row_samples - self._origin
        acoustic = self._recognizer.acoustic
        window = self._sound[begin : now - self._origin]
        logits, lengths = acoustic.logits([extract_features(window, acoustic.features)])
        kept = left if skipped else 0
        self._rows = np.concatenate([self._rows[: skipped + kept], logits[0, kept : lengths[0]]])
        return self._rows

    def _segments(self, start: int, end: int) -> list[Partial | Segment]:
        """Recognise the samples from ``start`` to ``end``, an utterance."""
        samples = self._sound[start - self._origin : end - self._origin]
        (found,) = self._recognizer.recognise_pieces(
            [self._recognizer.piece(start / self.sample_rate, samples)]
        )
        segments: list[Partial | Segment] = [segment for segment in found if segment.times]
        if not segments and self._shown[0]:
            segments = [Partial(start / self.sample_rate, end / self.sample_rate, ())]
        self._recognised = True
        self._new_utterance()
        return segments

    def _new_utterance(self) -> None:
        self._decoder = PartialResultDecoder(self._recognizer)
        self._rows = np.zeros((0, len(self._recognizer.acoustic.vocabulary)), np.float32)
        self._partials: deque[tuple[str, ...]] = deque(maxlen=STABLE_RESULTS)
        # Syllables of the last partial result, and how many are stable.
        self._shown: tuple[tuple[str, ...], int] = ((), 0)
        # Sample numbers at the last partial result and at the last check.
        self._recognised_up_to = self._checked = 0

    def _frame(self, seconds: float) -> int:
        """The frame at a time in the stream; a frame may be shorter than 20 ms by a part of a sample."""
        return round(seconds * self.sample_rate) // self._endpoints.frame_samples
