"""Finds where utterances begin and end in live audio, by its level above the noise. NumPy only.

The measure is that of :mod:`recognition.voice_activity`, which uses the sound before and after a frame. Here
only the sound so far is known: the last seconds are scored again at each step, so that the beginning of an
utterance is found even if the noise level becomes known only later. An utterance ends when a pause has
followed it.
"""

import numpy as np

from recognition.voice_activity import (
    CERTAIN_DB,
    FRAME_SECONDS,
    MARGIN_FRAMES,
    REACH_SUB_WINDOWS,
    SPEECH_DB,
    SUB_WINDOW_FRAMES,
    band_levels,
    quietest_frame,
    speech_scores,
)

STEP_FRAMES = 5  # 0.1 s
PAUSE_FRAMES = 40  # 0.8 s: a speaker who looks for a word rarely stops for longer
CONTEXT_FRAMES = (REACH_SUB_WINDOWS + 1) * SUB_WINDOW_FRAMES  # 4.5 s are scored at each step
LONGEST_FRAMES = 1000  # 20 s, as pieces of recordings


class Endpointer:
    """Follows a stream; all frame numbers count from its beginning, a frame has 20 ms.

    Args:
        sample_rate: Hz.

    Attributes:
        frames: number of frames so far.
        first: the first frame of the current utterance, or None.
        last: the last frame that was speech, if there is an utterance.
        frame_samples, step_samples: samples of a frame, and of a step.
    """

    def __init__(self, sample_rate: int):
        self._rate = sample_rate
        self.frame_samples = int(sample_rate * FRAME_SECONDS)
        self.step_samples = STEP_FRAMES * self.frame_samples
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self.frames = 0
        self.first: int | None = None
        self.last = 0
        self._free = 0  # the first frame that belongs to no utterance
        self._levels: np.ndarray | None = None  # (frames ≤ CONTEXT_FRAMES, bands)
        self._power = np.zeros(0)  # of the last LONGEST_FRAMES frames

    @property
    def oldest(self) -> int:
        """The earliest frame that the current or the next utterance can contain."""
        return max(self.frames - CONTEXT_FRAMES, self._free) if self.first is None else self.first

    def feed(self, samples: np.ndarray) -> tuple[int, int] | None:
        """Process the next step, (step_samples,) or less at the end of the stream.

        Returns:
            the first frame of an utterance that has ended, with a pause or because it is as long as
            utterances may be, and the frame after it; or None.
        """
        levels = band_levels(samples, self._rate)
        self.frames += len(levels)
        self._power = np.concatenate([self._power, levels.sum(axis=1)])[-LONGEST_FRAMES:]
        before = levels[:0] if self._levels is None else self._levels
        self._levels = np.concatenate([before, levels])[-CONTEXT_FRAMES:]
        scores = speech_scores(self._levels)
        first_scored = self.frames - len(scores)  # the first frame with a score
        speech = np.flatnonzero(scores > SPEECH_DB) + first_scored
        speech = speech[speech >= self.oldest]
        self.last = int(speech[-1]) if len(speech) else first_scored - 1
        silent = self.frames - 1 - self.last >= PAUSE_FRAMES
        if self.first is None:
            if len(speech) and not silent and scores[speech - first_scored].max() > CERTAIN_DB:
                gaps = np.flatnonzero(np.diff(speech) > PAUSE_FRAMES)
                begin = int(speech[gaps[-1] + 1 if len(gaps) else 0])
                self.first = max(begin - MARGIN_FRAMES, self.oldest)
        elif silent:
            return self.cut(max(self.last + 1 + MARGIN_FRAMES, self.first + 1))
        elif self.frames - self.first >= LONGEST_FRAMES:
            first_measured = self.frames - len(self._power)  # may be some frames after the first one
            return self.cut(first_measured + quietest_frame(self._power), speaking=True)
        return None

    def cut(self, end: int, speaking: bool = False) -> tuple[int, int]:
        """End the current utterance before frame ``end``; if ``speaking``, the next one begins there.

        Returns:
            its first frame, and ``end``.
        """
        first = self.first
        self._free = end
        self.first = end if speaking else None
        return first, end
