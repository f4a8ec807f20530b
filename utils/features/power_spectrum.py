"""Power spectra of the frames of a recording, block by block, with pre-emphasis."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_BLOCK_FRAMES = 128  # computed together: limits the memory for long recordings, fits into the cache


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples, and what is done to them in each block.

    Attributes:
        samples: (samples,) floats, at least one.
        scale: factor.
        emphasis: pre-emphasis, the fraction of the preceding sample that is subtracted.
        before: the sample before the first.
    """

    samples: np.ndarray
    scale: float
    emphasis: float
    before: float


def power_blocks(
    sound: Sound, frames: int, hop: int, window: np.ndarray, fft_size: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """|FFT|² of windowed frames.

    Args:
        sound: the recording; after its end there is silence.
        frames: number of frames.
        hop: samples from one frame to the next.
        window: (samples of a frame,) float64.
        fft_size: at least the samples of a frame.

    Yields:
        the rows of a block of frames, and their power spectra (block, fft_size / 2 + 1) float32, whose memory
        the next block uses again.
    """
    # Fresh memory takes longer than the FFT. So all blocks use the same, and no array is as long as the
    # recording.
    block, length = min(frames, _BLOCK_FRAMES), len(window)
    scaled, subtracted = np.zeros(
        (2, 1 + (block - 1) * hop + length)
    )  # the sample before, and those of the frames
    framed = sliding_window_view(scaled[1:], length)[::hop]  # (block, samples)
    padded, spectrum = np.zeros((block, fft_size)), np.empty((block, fft_size // 2 + 1), np.complex128)
    single = np.empty(spectrum.shape, np.complex64)
    power, squares = np.empty((2, *spectrum.shape), np.float32)
    for start in range(0, frames, block):
        rows = slice(start, min(start + block, frames))
        here = slice(rows.stop - start)
        known = sound.samples[start * hop : (rows.stop - 1) * hop + length]
        end = 1 + len(known)
        scaled[0] = (sound.samples[start * hop - 1] if start else sound.before) * sound.scale
        np.multiply(known, sound.scale, out=scaled[1:end], dtype=np.float64)
        scaled[end:] = 0.0
        np.multiply(scaled[:-1], sound.emphasis, out=subtracted[1:])
        scaled[1:end] -= subtracted[1:end]
        np.multiply(framed[here], window, out=padded[here, :length])
        np.copyto(single[here], np.fft.rfft(padded[here], out=spectrum[here]), casting="same_kind")
        np.square(single.real[here], out=power[here])
        np.square(single.imag[here], out=squares[here])
        power[here] += squares[here]
        yield rows, power[here]
