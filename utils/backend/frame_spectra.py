"""Cuts samples into frames and computes their power spectra inside a model, for front ends that can stream.

Everything consists of products with constant matrices, slices and reshapes, which every model converter
(LiteRT, ONNX) supports. The discrete Fourier transform takes two steps, which keeps the constants small:
0.12 MB for 1,024 points; one product with the full basis would need 2.6 MB.
"""

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable(package="utils")
class Frames(keras.layers.Layer):
    """Whole windows of a signal: (B, S) → (B, T, window), T = 1 + (before + S - window) // hop.

    Attributes:
        window: samples in a frame.
        hop: samples between the starts of two frames, at most ``window``.
        before: zeros that precede the signal.
        streaming_window: window and hop, for the streaming conversion.
        streaming_padding: the name of the setting of the zeros, which are the first state of a stream.
    """

    streaming_padding = "before"

    def __init__(self, window: int, hop: int, before: int = 0, **kwargs):
        super().__init__(**kwargs)
        if not 1 <= hop <= window:
            raise ValueError(f"a hop of {hop} samples isn't between 1 and the window's {window}")
        self.window, self.hop, self.before = window, hop, before
        self.streaming_window = (window, hop)

    def call(self, samples):
        """Cut the samples into frames."""
        # The signal is cut into blocks of one hop; a frame is several whole blocks and a part of the next.
        frames = self.compute_output_shape(samples.shape)[1]
        whole, part = divmod(self.window, self.hop)
        used = (frames - 1) * self.hop + self.window - self.before
        samples = samples[:, :used]
        if part or self.before:
            samples = ops.pad(samples, ((0, 0), (self.before, -part % self.hop)))
        blocks = ops.reshape(samples, (-1, frames - 1 + whole + (part > 0), self.hop))
        parts = [blocks[:, i : i + frames] for i in range(whole)]
        if part:
            parts.append(blocks[:, whole : whole + frames, :part])
        return ops.concatenate(parts, axis=-1)  # (B, T, window)

    def compute_output_shape(self, input_shape):
        """(B, T, window); ValueError if the number of samples is unknown or below one window."""
        batch, samples = input_shape
        if samples is None or self.before + samples < self.window:
            raise ValueError(f"'{self.name}' needs {self.window} samples, and the input has {samples}")
        return batch, 1 + (self.before + samples - self.window) // self.hop, self.window


class PowerSpectrum:
    """|DFT|² of windowed frames, in an order of frequencies of its own, to which it also brings filters.

    The discrete Fourier transform of n = rows × columns points has two steps (Cooley and Tukey 1965): a
    transform over the rows of a frame in the shape (rows, columns), a multiplication by n-th roots of unity
    (twiddle factors), and a transform over the columns. Frames are columns of a matrix, and constants are on
    the left of each product: converters to 8-bit weights leave such constants, and the large range of the
    energies, unchanged.

    Args:
        window: (samples of a frame,) factors of the samples.
        fft_size: n, a power of two, at least the samples of a frame.
    """

    def __init__(self, window: np.ndarray, fft_size: int):
        self._window, self._size = window.astype(np.float32), fft_size
        self._columns = 1 << (fft_size.bit_length() - 1) // 2
        self._rows = -(-len(window) // self._columns)  # rows with samples; all others are zero
        self._padding = self._rows * self._columns - len(window)
        bases = _two_step_bases(fft_size, self._rows, self._columns)
        self._over_rows, self._twiddle, self._over_columns = bases

    def __call__(self, frames):
        """Frames (B, T, samples) → power spectra (B, frequencies, T)."""
        count, half = frames.shape[1], len(self._over_rows) // 2
        frames = ops.pad(frames * self._window, ((0, 0), (0, 0), (0, self._padding)))
        x = ops.reshape(ops.transpose(frames, (0, 2, 1)), (-1, self._rows, self._columns * count))
        x = ops.matmul(self._over_rows, x)  # (B, 2 · half, columns · T): real parts, then imaginary ones
        x = ops.reshape(x, (-1, 2 * half, self._columns, count))
        real, imaginary = x[:, :half], x[:, half:]
        cosine, sine = self._twiddle
        rotated = [real * cosine - imaginary * sine, real * sine + imaginary * cosine]
        x = ops.matmul(self._over_columns, ops.concatenate(rotated, axis=2))  # (B, half, 2 · columns, T)
        power = ops.square(x[:, :, : self._columns]) + ops.square(x[:, :, self._columns :])
        return ops.reshape(power, (-1, half * self._columns, count))

    def filters(self, filters: np.ndarray) -> np.ndarray:
        """Filters for these spectra: (n / 2 + 1, filters) → (filters, frequencies) float32.

        Frequency f = f₁ + f₂ · n / columns has index (f₁, f₂); if f₁ is beyond the half, it mirrors the
        frequency n - f. Entries that mirror another one stay zero.
        """
        long = self._size // self._columns
        ordered = np.zeros((filters.shape[1], long // 2 + 1, self._columns), np.float32)
        for frequency, weights in enumerate(filters):
            lower = frequency if frequency % long <= long // 2 else self._size - frequency
            ordered[:, lower % long, lower // long] = weights
        return ordered.reshape(filters.shape[1], -1)


def _two_step_bases(size: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two transforms and the twiddle factors between them, as real numbers.

    Returns:
        over the rows (2 · half, rows), real parts above imaginary ones; the twiddle factors, cosine and sine
        (2, half, columns, 1); over the columns (2 · columns, 2 · columns), likewise; all float32.
        half = size / columns / 2 + 1: of a real frame, the other frequencies are mirror images.
    """
    long = size // columns
    frequencies = np.arange(long // 2 + 1)[:, None]
    over_rows = np.exp(-2j * np.pi / long * frequencies * np.arange(rows))
    twiddle = np.exp(-2j * np.pi / size * frequencies * np.arange(columns))[..., None]
    square = np.exp(-2j * np.pi / columns * np.arange(columns)[:, None] * np.arange(columns))
    over_columns = np.block([[square.real, -square.imag], [square.imag, square.real]])
    return (
        np.concatenate([over_rows.real, over_rows.imag]).astype(np.float32),
        np.stack([twiddle.real, twiddle.imag]).astype(np.float32),
        over_columns.astype(np.float32),
    )
