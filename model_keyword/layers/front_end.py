"""Keras layers that compute the MFCC or log mel features of utils/features/keyword.py inside a model.

A model with these layers takes samples and needs no code for features. They consist of products with constant
matrices, slices and reshapes, which every model converter (LiteRT, ONNX) supports. The discrete Fourier
transform takes two steps, which keeps the constants small: 0.12 MB for the default settings; one product with
the full basis would need 2.6 MB. The constants follow from the settings and are not weights: a model for
``raw`` has as many parameters as the same model for ``mfcc``.
"""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from utils.errors import require
from utils.features.keyword import (
    ENERGY_FLOOR,
    KeywordFeatureConfig,
    analysis_window,
    cosine_basis,
    feature_values,
    mel_filters,
)

# Also under mixed precision: half precision cannot represent energies from 1e-6 to 1e5.
_DTYPE = "float32"


def front_end(samples, config: KeywordFeatureConfig):
    """Compute features of samples with layers that can stream.

    Args:
        samples: (B, S) float32 in [-1, 1] at ``config.sample_rate``; S is fixed and at least one window.
        config: settings of kind ``raw`` (or ``mfcc``, with the same result).

    Returns:
        (B, T, F) float32, T = ``feature_frames(S, config)``.

    Raises:
        ConfigError: the kind is ``micro``, which uses integer arithmetic and is not available as layers.
    """
    require(
        config.kind != "micro",
        "features.kind micro works in integers: it can't be part of a model",
        hint="compute it outside, or choose features.kind=raw",
    )
    x = Frames(config.window_samples, config.stride_samples, name="frames", dtype=_DTYPE)(samples)
    return MelCepstrum(config, name="mel_cepstrum", dtype=_DTYPE)(x)


@keras.saving.register_keras_serializable(package="model_keyword")
class Frames(keras.layers.Layer):
    """Whole windows of a signal: (B, S) → (B, T, window), T = 1 + (S - window) // hop.

    Attributes:
        window: samples in a frame.
        hop: samples between the starts of two frames, at most ``window``.
        streaming_window: both, for the streaming conversion.
    """

    def __init__(self, window: int, hop: int, **kwargs):
        super().__init__(**kwargs)
        if not 1 <= hop <= window:
            raise ValueError(f"a hop of {hop} samples isn't between 1 and the window's {window}")
        self.window, self.hop = window, hop
        self.streaming_window = (window, hop)

    def call(self, samples):
        """Cut the samples into frames."""
        # The signal is cut into blocks of one hop; a frame is several whole blocks and a part of the next.
        frames = self.compute_output_shape(samples.shape)[1]
        whole, part = divmod(self.window, self.hop)
        used = (frames - 1) * self.hop + self.window
        samples = samples[:, :used]
        if part:
            samples = ops.pad(samples, ((0, 0), (0, self.hop - part)))
        blocks = ops.reshape(samples, (-1, frames - 1 + whole + (part > 0), self.hop))
        parts = [blocks[:, i : i + frames] for i in range(whole)]
        if part:
            parts.append(blocks[:, whole : whole + frames, :part])
        return ops.concatenate(parts, axis=-1)  # (B, T, window)

    def compute_output_shape(self, input_shape):
        """(B, T, window); ValueError if the number of samples is unknown or below one window."""
        batch, samples = input_shape
        if samples is None or samples < self.window:
            raise ValueError(f"'{self.name}' needs {self.window} samples, and the input has {samples}")
        return batch, 1 + (samples - self.window) // self.hop, self.window


@keras.saving.register_keras_serializable(package="model_keyword")
class MelCepstrum(keras.layers.Layer):
    """MFCC or log mel energies of each frame: (B, T, window) → (B, T, F).

    The discrete Fourier transform of n = rows × columns points has two steps (Cooley and Tukey 1965): a
    transform over the rows of a frame in the shape (rows, columns), a multiplication by n-th roots of unity
    (twiddle factors), and a transform over the columns. Frames are columns of a matrix, and constants are on
    the left of each product: converters to 8-bit weights leave such constants, and the large range of the
    energies, unchanged.

    Args:
        features: the settings, also as the dictionary of ``dataclasses.asdict``.
    """

    frame_wise = True

    def __init__(self, features: KeywordFeatureConfig | dict[str, Any], **kwargs):
        super().__init__(**kwargs)
        if isinstance(features, dict):
            features = KeywordFeatureConfig(**features)
        self.features = features
        self._columns = 1 << (features.fft_size.bit_length() - 1) // 2
        self._rows = -(-features.window_samples // self._columns)  # rows with samples; all others are zero
        self._padding = self._rows * self._columns - features.window_samples

    def build(self, input_shape):
        """Compute the constants."""
        features = self.features
        if input_shape[-1] != features.window_samples:
            expected = features.window_samples
            raise ValueError(f"'{self.name}' is for frames of {expected} samples, not {input_shape[-1]}")
        self._window = analysis_window(features.window_samples).astype(np.float32)
        bases = _two_step_bases(features.fft_size, self._rows, self._columns)
        self._over_rows, self._twiddle, self._over_columns = bases
        self._filters = _filters_for_two_steps(features, self._columns)
        self._cosines = cosine_basis(features.mel_bins, features.coefficients).T.astype(np.float32)

    def call(self, frames):
        """Features of each frame."""
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
        power = ops.reshape(power, (-1, half * self._columns, count))
        x = ops.log(ops.matmul(self._filters, power) + ENERGY_FLOOR)  # (B, mel_bins, T)
        if self.features.coefficients:
            x = ops.matmul(self._cosines, x)
        return ops.transpose(x, (0, 2, 1))  # (B, T, F)

    def compute_output_shape(self, input_shape):
        """(B, T, F)."""
        return (*input_shape[:-1], feature_values(self.features))

    def get_config(self) -> dict[str, Any]:
        """The settings of the features."""
        return {**super().get_config(), "features": dataclasses.asdict(self.features)}


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


def _filters_for_two_steps(features: KeywordFeatureConfig, columns: int) -> np.ndarray:
    """Mel filters for powers in the order of the two-step transform: (mel_bins, half · columns) float32.

    Frequency f = f₁ + f₂ · size / columns has index (f₁, f₂); if f₁ is beyond the half, it mirrors the
    frequency size - f. Entries that mirror another one stay zero.
    """
    long = features.fft_size // columns
    filters = np.zeros((features.mel_bins, long // 2 + 1, columns), np.float32)
    for frequency, weights in enumerate(mel_filters(features)):
        lower = frequency if frequency % long <= long // 2 else features.fft_size - frequency
        filters[:, lower % long, lower // long] = weights
    return filters.reshape(features.mel_bins, -1)
