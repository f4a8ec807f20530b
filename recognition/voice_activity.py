"""Cuts recordings and live audio into stretches of speech, one for each utterance, in constant memory.

Files, uploads and live audio are all cut here, so the same samples give the same stretches wherever they
come from. Stretches depend on the samples only, not on the blocks in which they come.

A frame is speech if its level is well above the noise, on average over some twenty bands. The noise of a band
is its lowest level in the last seconds (Martin, "Noise Power Spectral Density Estimation Based on Optimal
Smoothing and Minimum Statistics", IEEE Trans. Speech and Audio Processing 9(5), 2001). These seconds are
scored again at each step, so that the beginning of an utterance is found even if the noise becomes known only
later. A noise that begins or changes is taken for speech for some seconds at most. Speech without a pause
does not become noise, because each band is silent now and then. Digital silence (a muted call, a gap of a
codec) says nothing about the noise, and is left out.

Doubtful frames count as speech: speech that is dropped here is lost, while noise only costs time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from streaming.speech.utterances import PAUSE_SECONDS
from utils.errors import AudioError

FRAME_SECONDS = 0.02  # length of a frame; frames do not overlap
STEP_FRAMES = 5  # 0.1 s
CONTEXT_FRAMES = 425  # 8.5 s, in which the noise is searched, are scored at each step
SMOOTHED_FRAMES = 5  # the level of a band is the mean power over 0.1 s
BANDS = 20  # at most; equally wide on the mel scale
LOWEST_HERTZ, HIGHEST_HERTZ = 150.0, 7000.0  # below is hum, above is hardly any speech

# The noise of a band is assumed to be at most this far below the loudest level around it: fainter sound is
# not a voice, and beside a very quiet pause every rustle would count as speech.
RANGE_DB = 50.0
FAINTEST_DB = -90.0  # below full scale, in a band: the noise of rounding to 16 bits
LEAST_SIGNAL_FRAMES = 50  # 1 s: of less sound beside digital silence, nobody knows whether it is noise
SPEECH_DB = 5.0  # above the noise, on average over the bands
CERTAIN_DB = 6.0  # an utterance must reach this level somewhere
LARGEST_DB = 20.0  # the most that one band counts in the average

PAUSE_FRAMES = round(PAUSE_SECONDS / FRAME_SECONDS)
MARGIN_FRAMES = 12  # 0.24 s are kept before and after, because consonants are faint
SHORTEST_FRAMES = 8  # 0.16 s: a click is shorter, also with the frames around it that smoothing makes loud
LONGEST_FRAMES = 1000  # 20 s; a longer utterance is cut in the middle of its quietest 0.2 s
QUIET_FRAMES = 10


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


class Endpointer:
    """Follows a recording; all frame numbers count from its beginning, a frame has 20 ms.

    Args:
        sample_rate: Hz.

    Attributes:
        frames: number of frames so far.
        first: the first frame of the current utterance, or None.
        frame_samples, step_samples: samples of a frame, and of a step.
    """

    def __init__(self, sample_rate: int):
        self._rate = sample_rate
        self.frame_samples = int(sample_rate * FRAME_SECONDS)
        self.step_samples = STEP_FRAMES * self.frame_samples
        self.frames = 0
        self.first: int | None = None
        self._free = 0  # the first frame that belongs to no utterance
        self._levels = band_levels(np.zeros(0), sample_rate)  # (frames ≤ CONTEXT_FRAMES, bands)
        self._power = np.zeros(0)  # of the last LONGEST_FRAMES frames

    @property
    def oldest(self) -> int:
        """The earliest frame that the current or the next utterance can contain."""
        return max(self.frames - CONTEXT_FRAMES, self._free) if self.first is None else self.first

    def feed(self, samples: np.ndarray) -> tuple[int, int] | None:
        """Process the next step, (step_samples,), or less at the end of the recording.

        Returns:
            the first frame of an utterance that has ended, with a pause or because it is as long as
            utterances may be, and the frame after it; or None. An utterance that turns out to be noise
            ends without being returned.
        """
        levels = band_levels(samples, self._rate)
        self.frames += len(levels)
        self._power = np.concatenate([self._power, levels.sum(axis=1)])[-LONGEST_FRAMES:]
        self._levels = np.concatenate([self._levels, levels])[-CONTEXT_FRAMES:]
        return self._ended(PAUSE_FRAMES)

    def finish(self) -> tuple[int, int] | None:
        """At the end of the recording: the next utterance that has not been returned yet, or None."""
        return self._ended(0)

    def cut(self, end: int, speaking: bool = False) -> tuple[int, int]:
        """End the current utterance before frame ``end``; if ``speaking``, the next one begins there.

        Returns:
            its first frame, and ``end``.
        """
        first = end if self.first is None else self.first
        self._free = end
        self.first = end if speaking else None
        return first, end

    def _ended(self, pause: int) -> tuple[int, int] | None:
        """The first utterance that ``pause`` frames without speech follow, or that is too long."""
        scores = speech_scores(self._levels)
        scored = self.frames - len(scores)  # the first frame with a score
        speech = np.flatnonzero(scores > SPEECH_DB) + scored
        speech = speech[speech >= self.oldest]
        runs = np.split(speech, np.flatnonzero(np.diff(speech) > PAUSE_FRAMES) + 1)
        if self.first is None:
            loud = (run for run in runs if len(run) >= SHORTEST_FRAMES)
            runs = [run for run in loud if scores[run - scored].max() > CERTAIN_DB]
            if not runs:
                return None
            self.first = max(int(runs[0][0]) - MARGIN_FRAMES, self.oldest)
        last = int(runs[0][-1]) if len(runs[0]) else scored - 1
        if self.frames - 1 - last >= pause:
            if last < self.first:
                self.first = None
                return None
            return self.cut(min(last + 1 + MARGIN_FRAMES, self.frames))
        if self.frames - self.first >= LONGEST_FRAMES:
            measured = self.frames - len(self._power)  # may be some frames after the first one
            return self.cut(measured + quietest_frame(self._power), speaking=True)
        return None


def speech_scores(levels: np.ndarray) -> np.ndarray:
    """How far each frame is above the noise of all these frames.

    Args:
        levels: (frames, bands) mean power; a full-scale signal has about 1.

    Returns:
        (frames,) decibels, 0 to ``LARGEST_DB``.
    """
    if not len(levels):
        return np.zeros(0)
    floor = 10.0 ** (FAINTEST_DB / 10.0)
    smoothed = 10.0 * np.log10(_moving_mean(levels, SMOOTHED_FRAMES) + floor)  # (F, bands)
    # Beside digital silence, a smoothed level is that of a part of the frames only.
    silent = np.convolve(levels.max(axis=1) < floor, np.ones(SMOOTHED_FRAMES), "same") > 0
    known = smoothed if np.count_nonzero(~silent) < LEAST_SIGNAL_FRAMES else smoothed[~silent]
    noise = np.maximum(known.min(axis=0), smoothed.mean(axis=1).max() - RANGE_DB)  # (bands,)
    return np.clip(smoothed - noise, 0.0, LARGEST_DB).mean(axis=1)


def band_levels(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Mean power of each band in consecutive whole frames of (samples,): (frames, bands) float64."""
    size = int(sample_rate * FRAME_SECONDS)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    window, edges = _window_and_band_edges(sample_rate, size)
    spectrum = np.fft.rfft(frames * window, axis=1)
    power = np.square(spectrum.real) + np.square(spectrum.imag)  # (frames, bins)
    bands = np.add.reduceat(power, edges, axis=1)[:, :-1]
    return bands * (2 / (size * np.square(window).sum()))


def quietest_frame(power: np.ndarray) -> int:
    """The frame in the middle of the quietest 0.2 s in the second half of (frames,) power."""
    mean = _moving_mean(power[:, None], QUIET_FRAMES)[:, 0]
    half = len(power) // 2
    return half + int(mean[half : len(power) - QUIET_FRAMES // 2].argmin())


@cache
def _window_and_band_edges(sample_rate: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A Hann window; the first FFT bin of each band, and the one after the last band.

    The bands have equal widths in mel, and none is empty.
    """
    highest = min(HIGHEST_HERTZ, 0.45 * sample_rate)
    lowest_mel, highest_mel = np.log1p(np.array([LOWEST_HERTZ, highest]) / 700.0)
    hertz = 700.0 * np.expm1(np.linspace(lowest_mel, highest_mel, BANDS + 1))
    return np.hanning(size + 2)[1:-1], np.unique(np.rint(hertz * size / sample_rate).astype(int))


def _moving_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Mean over ``width`` rows around each row, edges repeated: (n, m) → (n, m)."""
    padded = np.pad(values, ((width // 2, width - 1 - width // 2), (0, 0)), mode="edge")
    return (
        sum((padded[offset : offset + len(values)] for offset in range(1, width)), padded[: len(values)])
        / width
    )
