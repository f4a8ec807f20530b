"""Finds the stretches of speech in a recording, block by block in constant memory (NumPy only).

A frame is speech if its level is well above the noise, on average over some twenty bands. The noise of a band
is its lowest level within some seconds before and after (Martin, "Noise Power Spectral Density Estimation
Based on Optimal Smoothing and Minimum Statistics", IEEE Trans. Speech and Audio Processing 9(5), 2001: the
minimum is searched in sub-windows). A noise that begins or changes is therefore taken for speech for some
seconds at most. Speech without a pause does not become noise, because each band is silent now and then.

Doubtful frames count as speech: speech that is dropped here is lost, while noise only costs time.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

FRAME_SECONDS = 0.02  # length of a frame; frames do not overlap
SMOOTHED_FRAMES = 5  # the level of a band is the mean power over 0.1 s
BANDS = 20  # at most; equally wide on the mel scale
LOWEST_HERTZ, HIGHEST_HERTZ = 150.0, 7000.0  # below is hum, above is hardly any speech
SUB_WINDOW_FRAMES = 25  # 0.5 s
REACH_SUB_WINDOWS = 8  # the minimum is taken over 4 s before and after
CHUNK_SUB_WINDOWS = 20  # 10 s are scored together

# The noise of a band is assumed to be at most this far below the loudest level around it: fainter sound is
# not a voice, and beside digital silence every rustle would count as speech.
RANGE_DB = 50.0
FAINTEST_DB = -90.0  # below full scale, in a band: the noise of rounding to 16 bits
SPEECH_DB = 5.0  # above the noise, on average over the bands
CERTAIN_DB = 6.0  # a stretch must reach this level somewhere
LARGEST_DB = 20.0  # the most that one band counts in the average

PAUSE_FRAMES = 25  # a stretch ends after 0.5 s without speech
MARGIN_FRAMES = 12  # 0.24 s are kept before and after, because consonants are faint
QUIET_FRAMES = 10  # a stretch that is too long is cut in the middle of its quietest 0.2 s


@dataclass(frozen=True)
class Stretch:
    """A part of a recording: the index of its first sample, and its samples."""

    start: int
    samples: np.ndarray


def speech_stretches(
    blocks: Iterable[np.ndarray], sample_rate: int, longest: float = 20.0
) -> Iterator[Stretch]:
    """Find the stretches of speech in a recording while it is read.

    About 25 s of samples are in memory, or ``longest`` plus 10 s if that is more. Speech without a pause is
    cut at its quietest point, in the second half of the longest stretch.

    Args:
        blocks: (samples,) floats in [-1, 1], of any length.
        sample_rate: Hz.
        longest: maximum seconds of a stretch; at least 1.

    Yields:
        the stretches in order; they don't overlap.
    """
    size = _frame_samples(sample_rate)
    search = _Search(size, longest=int(longest / FRAME_SECONDS))
    for samples, levels, scores in _scored(blocks, sample_rate):
        search.append(samples, levels.sum(axis=1))
        yield from search.advance(scores)
    yield from search.finish()


def whole_or_stretches(
    blocks: Iterable[np.ndarray], sample_rate: int, longest: float = 20.0
) -> Iterator[Stretch]:
    """A recording of at most ``longest`` seconds as one stretch, a longer one by :func:`speech_stretches`."""
    blocks, first, length = iter(blocks), [], 0
    for block in blocks:
        first.append(block)
        length += len(block)
        if length > longest * sample_rate:
            yield from speech_stretches(itertools.chain(first, blocks), sample_rate, longest)
            return
    if length:
        yield Stretch(0, np.concatenate(first))


def speech_scores(levels: np.ndarray) -> np.ndarray:
    """How far each frame is above the noise around it.

    Args:
        levels: (frames, bands) mean power; a full-scale signal has about 1.

    Returns:
        (frames,) decibels, 0 to ``LARGEST_DB``.
    """
    if not len(levels):
        return np.zeros(0)
    floor = 10.0 ** (FAINTEST_DB / 10.0)
    smoothed = 10.0 * np.log10(_moving_mean(levels, SMOOTHED_FRAMES) + floor)  # (F, bands)
    windows = -(-len(smoothed) // SUB_WINDOW_FRAMES)
    padded = np.pad(smoothed, ((0, windows * SUB_WINDOW_FRAMES - len(smoothed)), (0, 0)), mode="edge")
    by_window = padded.reshape(windows, SUB_WINDOW_FRAMES, -1)  # (W, 25, bands)
    lowest = _around(by_window.min(axis=1), np.minimum)  # (W, bands)
    loudest = _around(by_window.mean(axis=2).max(axis=1, keepdims=True), np.maximum)  # (W, 1)
    noise = np.maximum(lowest, loudest - RANGE_DB).repeat(SUB_WINDOW_FRAMES, axis=0)[: len(smoothed)]
    return np.clip(smoothed - noise, 0.0, LARGEST_DB).mean(axis=1)


def band_levels(samples: np.ndarray, sample_rate: int) -> np.ndarray:
    """Mean power of each band in consecutive whole frames of (samples,): (frames, bands) float64."""
    size = _frame_samples(sample_rate)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    window = np.hanning(size + 2)[1:-1]
    spectrum = np.fft.rfft(frames * window, axis=1)
    power = np.square(spectrum.real) + np.square(spectrum.imag)  # (frames, bins)
    bands = np.add.reduceat(power, _band_edges(sample_rate, size), axis=1)[:, :-1]
    return bands * (2 / (size * np.square(window).sum()))


def quietest_frame(power: np.ndarray) -> int:
    """The frame in the middle of the quietest 0.2 s in the second half of (frames,) power."""
    mean = _moving_mean(power[:, None], QUIET_FRAMES)[:, 0]
    half = len(power) // 2
    return half + int(mean[half : len(power) - QUIET_FRAMES // 2].argmin())


class _Search:
    """The frames in memory, and the current stretch. All frame numbers count from the recording's start.

    Args:
        size: samples per frame.
        longest: maximum frames of a stretch.
    """

    def __init__(self, size: int, longest: int):
        self._size, self._longest = size, longest
        self._samples, self._power = np.zeros(0, np.float32), np.zeros(0)
        self._origin = 0  # the first frame in memory
        self._next = 0  # the next frame to look at
        self._free = 0  # the first frame after the last stretch
        self._first: int | None = None  # the first frame of the current stretch
        self._last = 0  # the last frame that was speech
        self._certain = False

    def append(self, samples: np.ndarray, power: np.ndarray) -> None:
        """Add samples and their (frames,) power; drop frames that no stretch can need any more."""
        needed = self._next - MARGIN_FRAMES if self._first is None else self._first
        dropped = max(needed - self._origin, 0)
        self._samples = np.concatenate([self._samples[dropped * self._size :], samples])
        self._power = np.concatenate([self._power[dropped:], power])
        self._origin += dropped

    def advance(self, scores: np.ndarray) -> Iterator[Stretch]:
        """Go through the frames that were added last, given their (frames,) scores."""
        for score in scores.tolist():
            frame = self._next
            self._next += 1
            if score > SPEECH_DB:
                if self._first is None:
                    self._first, self._certain = max(frame - MARGIN_FRAMES, self._free), False
                self._last = frame
                self._certain |= score > CERTAIN_DB
            elif self._first is not None and frame - self._last >= PAUSE_FRAMES:
                yield from self._end()
            if self._first is not None and frame + 1 - self._first >= self._longest:
                self._certain = True  # a doubtful sound of this length counts as speech
                yield self._stretch(self._quietest())
                self._first = self._free

    def finish(self) -> Iterator[Stretch]:
        """The stretch that lasts until the end of the recording, if there is one."""
        if self._first is not None:
            yield from self._end()

    def _end(self) -> Iterator[Stretch]:
        # After a cut in a pause, the last speech may be that of the stretch before: then there is none.
        stretch = self._stretch(max(self._last + 1 + MARGIN_FRAMES, self._first))
        if self._certain and len(stretch.samples):
            yield stretch
        self._first = None

    def _stretch(self, end: int) -> Stretch:
        """The samples from the first frame up to frame ``end``, where the next stretch may begin."""
        start, self._free = self._first, end
        origin = self._origin * self._size
        return Stretch(
            start * self._size, self._samples[start * self._size - origin : end * self._size - origin]
        )

    def _quietest(self) -> int:
        """The frame in the middle of the quietest 0.2 s in the second half of the stretch."""
        start = self._first - self._origin
        return self._first + quietest_frame(self._power[start : start + self._longest])


def _scored(
    blocks: Iterable[np.ndarray], sample_rate: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(samples,), (frames, bands) levels and (frames,) scores of each chunk, as if scored all at once."""
    # One sub-window more than the minimum needs: levels at the far edge are smoothed over too few frames.
    context = (REACH_SUB_WINDOWS + 1) * SUB_WINDOW_FRAMES
    size = CHUNK_SUB_WINDOWS * SUB_WINDOW_FRAMES * _frame_samples(sample_rate)
    chunks = ((samples, band_levels(samples, sample_rate)) for samples in _in_chunks(blocks, size))
    current = next(chunks, None)
    before = current[1][:0] if current else None
    while current:
        following = next(chunks, None)
        samples, levels = current
        after = following[1][:context] if following else levels[:0]
        scores = speech_scores(np.concatenate([before, levels, after]))
        yield samples, levels, scores[len(before) : len(before) + len(levels)]
        before = np.concatenate([before, levels])[-context:]
        current = following


def _in_chunks(blocks: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The same samples in arrays of ``size``; the last one may be shorter."""
    pending, length = [], 0
    for block in blocks:
        pending.append(block)
        length += len(block)
        if length >= size:
            whole = np.concatenate(pending)
            end = length // size * size
            yield from whole[:end].reshape(-1, size)
            pending, length = [whole[end:]], length - end
    if length:
        yield np.concatenate(pending)


def _frame_samples(sample_rate: int) -> int:
    return int(sample_rate * FRAME_SECONDS)


def _band_edges(sample_rate: int, size: int) -> np.ndarray:
    """First FFT bin of each band, and the one after the last band; equal widths in mel, no band is empty."""
    highest = min(HIGHEST_HERTZ, 0.45 * sample_rate)
    lowest_mel, highest_mel = np.log1p(np.array([LOWEST_HERTZ, highest]) / 700.0)
    hertz = 700.0 * np.expm1(np.linspace(lowest_mel, highest_mel, BANDS + 1))
    return np.unique(np.rint(hertz * size / sample_rate).astype(int))


def _moving_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Mean over ``width`` rows around each row, edges repeated: (n, m) → (n, m)."""
    padded = np.pad(values, ((width // 2, width - 1 - width // 2), (0, 0)), mode="edge")
    total = np.cumsum(np.concatenate([np.zeros_like(padded[:1]), padded]), axis=0)
    return np.maximum(total[width:] - total[:-width], 0.0) / width


def _around(values: np.ndarray, extreme: np.ufunc) -> np.ndarray:
    """Minimum or maximum over each sub-window and its neighbours: (windows, n) → (windows, n)."""
    reach = REACH_SUB_WINDOWS
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
    return extreme.reduce(sliding_window_view(padded, 2 * reach + 1, axis=0), axis=-1)
