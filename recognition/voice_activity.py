"""Blocks of a recording's samples in, its stretches of speech out, while it is read: flat memory. NumPy only.

A frame is speech if its level is well above the noise, on average over some twenty bands. The noise of a band
is the lowest level that it had within some seconds around (Martin, "Noise Power Spectral Density Estimation
Based on Optimal Smoothing and Minimum Statistics", IEEE Trans. Speech and Audio Processing 9(5), 2001: the
minimum is searched in sub-windows): so a noise may begin, end or change without being taken for speech for
longer than that, and speech without a pause doesn't become noise, since each band falls silent now and then.

In doubt it is speech: what is cut off here is lost for good, while a noise costs only time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

FRAME_SECONDS = 0.02
SMOOTHED_FRAMES = 5  # a band's level is the mean power of 0.1 s
BANDS = 20
LOWEST_HERTZ, HIGHEST_HERTZ = 150.0, 7000.0  # hum below, hardly any speech above
SUB_WINDOW_FRAMES = 25  # 0.5 s
REACH_SUB_WINDOWS = 8  # the noise is searched 4 s before and after
CHUNK_SUB_WINDOWS = 20  # decided at once: 10 s

# A band's noise is taken to be at least this far below the loudest level within reach: what is fainter is no
# speaker's voice, and digital silence would make every whisper of the recorder stand out.
RANGE_DB = 50.0
FAINTEST_DB = -90.0  # of full scale, in a band: rounding to 16 bits
SPEECH_DB = 5.0  # above the noise, on average over the bands
CERTAIN_DB = 6.0  # reached somewhere in a stretch, else it is none
LARGEST_DB = 20.0  # what one band can add to that average

PAUSE_FRAMES = 25  # 0.5 s without speech end a stretch
MARGIN_FRAMES = 12  # 0.24 s are kept before and after: consonants are faint
QUIET_FRAMES = 10  # a stretch that gets too long is cut in the middle of the quietest 0.2 s


@dataclass(frozen=True)
class Stretch:
    """A part of a recording: its first sample's number, and its samples."""

    start: int
    samples: np.ndarray


def speech_stretches(
    blocks: Iterable[np.ndarray], sample_rate: int, longest: float = 20.0
) -> Iterator[Stretch]:
    """Find the speech in a recording that is read along, and cut it where nobody speaks.

    Held in memory are some 25 s, or ``longest`` and 10 s if that is more. Speech without a pause is cut where
    it is quietest, in the second half of what it may last.

    Args:
        blocks: (samples,) floats of any lengths, in [-1, 1].
        sample_rate: Hz.
        longest: seconds a stretch may last; at least 1.

    Yields:
        the stretches in their order; they don't overlap.
    """
    size = _frame_samples(sample_rate)
    state = _Search(size, most=int(longest / FRAME_SECONDS))
    for samples, levels, scores in _scored(blocks, sample_rate):
        state.hold(samples, levels.sum(axis=1))
        yield from state.look(scores)
    yield from state.finish()


def whole_or_stretches(
    blocks: Iterable[np.ndarray], sample_rate: int, longest: float = 20.0
) -> Iterator[Stretch]:
    """A recording of at most ``longest`` seconds as it is; of a longer one see :func:`speech_stretches`."""
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
    """How far each frame stands out from the noise around it.

    Args:
        levels: (frames, bands) mean power, of a full-scale signal about 1.

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
    """Mean power in each band of the whole frames in ``samples``, side by side: (frames, bands) float64."""
    size = _frame_samples(sample_rate)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    window = np.hanning(size + 2)[1:-1]
    spectrum = np.fft.rfft(frames * window, axis=1)
    power = np.square(spectrum.real) + np.square(spectrum.imag)  # (frames, bins)
    bands = np.add.reduceat(power, _band_edges(sample_rate, size), axis=1)[:, :-1]
    return bands * (2 / (size * np.square(window).sum()))


class _Search:
    """The frames so far: what is held of them, and the stretch that has begun.

    Args:
        size: samples a frame.
        most: frames a stretch may have.
    """

    def __init__(self, size: int, most: int):
        self._size, self._most = size, most
        self._samples, self._power = np.zeros(0, np.float32), np.zeros(0)
        self._origin = 0  # number of the first frame that is held
        self._next = 0  # of the next frame to look at
        self._free = 0  # of the first frame that belongs to no stretch yet
        self._first: int | None = None  # of the stretch that has begun
        self._last = 0  # of the last frame that was speech
        self._certain = False

    def hold(self, samples: np.ndarray, power: np.ndarray) -> None:
        """Take samples and (frames,) power; forget what no stretch can need any more."""
        needed = self._next - MARGIN_FRAMES if self._first is None else self._first
        gone = max(needed - self._origin, 0)
        self._samples = np.concatenate([self._samples[gone * self._size :], samples])
        self._power = np.concatenate([self._power[gone:], power])
        self._origin += gone

    def look(self, scores: np.ndarray) -> Iterator[Stretch]:
        """Go through the frames that were taken last, by their scores."""
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
            if self._first is not None and frame + 1 - self._first >= self._most:
                self._certain = True  # so long a sound between noise and speech: in doubt it is speech
                yield self._stretch(self._quietest())
                self._first = self._free

    def finish(self) -> Iterator[Stretch]:
        """The stretch that lasts to the recording's end, if there is one."""
        if self._first is not None:
            yield from self._end()

    def _end(self) -> Iterator[Stretch]:
        stretch = self._stretch(self._last + 1 + MARGIN_FRAMES)
        if self._certain and len(stretch.samples):
            yield stretch
        self._first = None

    def _stretch(self, end: int) -> Stretch:
        """The samples from the first frame up to ``end``, which is free again."""
        start, self._free = self._first, end
        origin = self._origin * self._size
        return Stretch(
            start * self._size, self._samples[start * self._size - origin : end * self._size - origin]
        )

    def _quietest(self) -> int:
        """The frame in the second half of the stretch around which it is quietest."""
        held = self._first - self._origin
        power = _moving_mean(self._power[held : held + self._most, None], QUIET_FRAMES)[:, 0]
        half = self._most // 2
        return self._first + half + int(power[half : self._most - QUIET_FRAMES // 2].argmin())


def _scored(
    blocks: Iterable[np.ndarray], sample_rate: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(samples,), (frames, bands) levels and (frames,) scores, chunk by chunk, as if scored all at once."""
    # One sub-window more than is searched: at its far edge levels are smoothed over too few frames.
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
    """The same samples in arrays of ``size``, the last one shorter."""
    held, length = [], 0
    for block in blocks:
        held.append(block)
        length += len(block)
        if length >= size:
            whole = np.concatenate(held)
            end = length // size * size
            yield from whole[:end].reshape(-1, size)
            held, length = [whole[end:]], length - end
    if length:
        yield np.concatenate(held)


def _frame_samples(sample_rate: int) -> int:
    return int(sample_rate * FRAME_SECONDS)


def _band_edges(sample_rate: int, size: int) -> np.ndarray:
    """First FFT bin of each band and the first after the last, evenly spaced in mel, no band empty."""
    highest = min(HIGHEST_HERTZ, 0.45 * sample_rate)
    lowest_mel, highest_mel = np.log1p(np.array([LOWEST_HERTZ, highest]) / 700.0)
    hertz = 700.0 * np.expm1(np.linspace(lowest_mel, highest_mel, BANDS + 1))
    return np.unique(np.rint(hertz * size / sample_rate).astype(int))


def _moving_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Mean over ``width`` rows around each row (n, m), the edges repeated: (n, m)."""
    padded = np.pad(values, ((width // 2, width - 1 - width // 2), (0, 0)), mode="edge")
    total = np.cumsum(np.concatenate([np.zeros_like(padded[:1]), padded]), axis=0)
    return np.maximum(total[width:] - total[:-width], 0.0) / width


def _around(values: np.ndarray, extreme: np.ufunc) -> np.ndarray:
    """The extreme over each sub-window and those within reach: (windows, n) → (windows, n)."""
    reach = REACH_SUB_WINDOWS
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
    return extreme.reduce(sliding_window_view(padded, 2 * reach + 1, axis=0), axis=-1)
