"""Cuts recordings and live audio into stretches of speech, one for each utterance, in constant memory.

Files, uploads and live audio are all cut here, so the same samples give the same stretches wherever they
come from. Stretches depend on the samples only, not on the blocks in which they come.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from recognition.endpoints import CONTEXT_FRAMES, Endpointer
from utils.errors import AudioError


@dataclass(frozen=True)
class Stretch:
    """A part of a recording: the index of its first sample, and its samples."""

    start: int
    samples: np.ndarray


class VoiceActivity:
    """Samples → stretches of speech, each as soon as a pause has followed it.

    Up to 20 s of samples are in memory.

    Args:
        sample_rate: Hz.

    Attributes:
        endpoints: the utterances, in frames.
    """

    def __init__(self, sample_rate: int):
        self.endpoints = Endpointer(sample_rate)
        self._pending = np.zeros(0, np.float32)  # less than a step
        self._sound, self._origin = np.zeros(0, np.float32), 0  # samples in memory, number of the first one
        self._found = False  # whether there was a stretch

    def feed(self, samples: np.ndarray) -> Iterator[Stretch | None]:
        """Add samples (n,) in [-1, 1]; yield after each step of 0.1 s the stretch that has ended, or None."""
        self._pending = np.concatenate([self._pending, samples])
        size = self.endpoints.step_samples
        while len(self._pending) >= size:
            step, self._pending = self._pending[:size], self._pending[size:]
            yield self._step(step)

    def flush(self) -> Iterator[Stretch]:
        """The stretches that the end of the recording completes."""
        last = self._step(self._pending)
        if last:
            yield last
        while ended := self.endpoints.finish():
            yield self._stretch(*ended)
        if not self._found and 0 < self.samples <= CONTEXT_FRAMES * self.endpoints.frame_samples:
            yield Stretch(0, self._sound)  # too short to distinguish speech from noise

    @property
    def samples(self) -> int:
        """The number of samples that were processed."""
        return self._origin + len(self._sound)

    def sound(self, start: int) -> np.ndarray:
        """The samples from number ``start`` on."""
        return self._sound[start - self._origin :]

    def cut(self, end: int) -> Stretch:
        """End the current utterance before frame ``end``, where the next one begins."""
        return self._stretch(*self.endpoints.cut(end, speaking=True))

    def _step(self, samples: np.ndarray) -> Stretch | None:
        dropped = max(self.endpoints.oldest * self.endpoints.frame_samples - self._origin, 0)
        self._sound = np.concatenate([self._sound[dropped:], samples])
        self._origin += dropped
        ended = self.endpoints.feed(samples)
        return self._stretch(*ended) if ended else None

    def _stretch(self, first: int, end: int) -> Stretch:
        self._found = True
        start, size = self._origin, self.endpoints.frame_samples
        return Stretch(first * size, self._sound[first * size - start : end * size - start])


def speech_stretches(blocks: Iterable[np.ndarray], sample_rate: int) -> Iterator[Stretch]:
    """Find the stretches of speech in a recording while it is read.

    Args:
        blocks: (samples,) floats in [-1, 1], of any length.
        sample_rate: Hz.

    Yields:
        the stretches in order; they don't overlap and have at most 20 s. Speech without a pause is cut at
        its quietest point.

    Raises:
        AudioError: reading a block has raised it; after the stretches of the samples before it.
    """
    activity, error = VoiceActivity(sample_rate), None
    try:
        for block in blocks:
            yield from filter(None, activity.feed(block))
    except AudioError as caught:
        error = caught
    yield from activity.flush()
    if error:
        raise error
