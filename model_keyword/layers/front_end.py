"""Samples (B, S) → features (B, T, F) inside a model: layers that make what utils/features/keyword.py makes.

Whoever runs such a model feeds it samples and needs no code for features. All is products with constant
matrices, slices and reshapes: a converter finds no operation that it lacks, and a discrete Fourier transform
in two steps keeps the constants small: 0.12 MB for the usual settings, where one product with the whole
basis would need 2.6 MB. The constants belong to the settings, not to what is learnt: they aren't
weights, and a model for ``raw`` counts as many parameters as the same model for ``mfcc``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from utils.errors import ConfigError
from utils.features.keyword import (
    ENERGY_FLOOR,
    KeywordFeatureConfig,
    analysis_window,
    cosine_basis,
    feature_values,
    mel_filters,
)

# Under mixed precision too: half precision has too few digits for the energies, from 1e-6 to 1e5.
_DTYPE = "float32"


def front_end(samples, config: KeywordFeatureConfig):
    """Features of samples, by layers that stream.

    Args:
        samples: (B, S) float32 in [-1, 1] at ``config.sample_rate``; S is known and at least a window.
        config: settings of kind ``raw`` (or ``mfcc``, which gives the same).

    Returns:
        (B, T, F) float32, T = ``feature_frames(S, config)``.

    Raises:
        ConfigError: the kind is ``micro``, which works in integers and can't be layers of a model.
    """
    if config.kind == "micro":
        what = "features.kind micro works in integers: it can't be part of a model"
        raise ConfigError(what, hint="compute it outside, or choose features.kind=raw")
    x = Frames(config.window_samples, config.stride_samples, name="frames", dtype=_DTYPE)(samples)
    return MelCepstrum(config, name="mel_cepstrum", dtype=_DTYPE)(x)


@keras.saving.register_keras_serializable(package="model_keyword")
class Frames(keras.layers.Layer):
    """Whole windows of a signal: (B, S) → (B, T, window), T = 1 + (S - window) // hop.

    Attributes:
        window: samples a frame.
        hop: samples from one frame's start to the next one's, at most ``window``.
        streaming_window: both, for the conversion to a stream.
    """

    def __init__(self, window: int, hop: int, **kwargs):
        super().__init__(**kwargs)
        if not 1 <= hop <= window:
            raise ValueError(f"a hop of {hop} samples isn't between 1 and the window's {window}")
        self.window, self.hop = window, hop
        self.streaming_window = (window, hop)

    def call(self, samples):
        """Cut the samples into frames."""
        # The signal is cut into blocks of one hop; a frame is some of them side by side and a part of one.
        frames = self.compute_output_shape(samples.shape)[1]
        whole, part = divmod(self.window, self.hop)
        used = (frames - 1) * self.hop + self.window
        samples = samples[:, :used]
        if part:
            samples = ops.pad(samples, ((0, 0), (0, self.hop - part)))
        blocks = ops.reshape(samples, (-1, frames - 1 + whole + (part > 0), self.hop))
        beside = [blocks[:, i : i + frames] for i in range(whole)]
        if part:
            beside.append(blocks[:, whole : whole + frames, :part])
        return ops.concatenate(beside, axis=-1)  # (B, T, window)

    def compute_output_shape(self, input_shape):
        """(B, T, window); a ValueError where the number of samples is unknown or below one window."""
        batch, samples = input_shape
        if samples is None or samples < self.window:
            raise ValueError(f"'{self.name}' needs {self.window} samples, and the input has {samples}")
        return batch, 1 + (samples - self.window) // self.hop, self.window

    def get_config(self) -> dict[str, Any]:
        """Window and hop."""
        return {**super().get_config(), "window": self.window, "hop": self.hop}


@keras.saving.register_keras_serializable(package="model_keyword")
class MelCepstrum(keras.layers.Layer):
    """MFCC of each frame, or the logarithms of its mel filters' energies: (B, T, window) → (B, T, F).

    The discrete Fourier transform of n = rows × columns points is taken in two steps (Cooley and Tukey 1965):
    over the rows of a frame laid out as (rows, columns), a turn by n-th roots of unity, over the columns.
    Frames lie side by side as columns, and the constants stand on the left of each product: there a
    converter that stores weights in 8 bits leaves them, and the energies' many magnitudes, as they are.

    Args:
        features: the settings, or what ``dataclasses.asdict`` makes of them.
    """

    frame_wise = True

    def __init__(self, features: KeywordFeatureConfig | dict[str, Any], **kwargs):
        super().__init__(**kwargs)
        if isinstance(features, dict):
            features = KeywordFeatureConfig(**features)
        self.features = features
        self._columns = 1 << (features.fft_size.bit_length() - 1) // 2
        self._rows = -(-features.window_samples // self._columns)  # that hold samples; all others are zero
        self._padding = self._rows * self._columns - features.window_samples

    def build(self, input_shape):
        """Make the constants."""
        features = self.features
        if input_shape[-1] != features.window_samples:
            wanted = features.window_samples
            raise ValueError(f"'{self.name}' is for frames of {wanted} samples, not {input_shape[-1]}")
        self._window = analysis_window(features.window_samples).astype(np.float32)
        bases = _two_step_bases(features.fft_size, self._rows, self._columns)
        self._over_rows, self._turn, self._over_columns = bases
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
        cosine, sine = self._turn
        turned = [real * cosine - imaginary * sine, real * sine + imaginary * cosine]
        x = ops.matmul(self._over_columns, ops.concatenate(turned, axis=2))  # (B, half, 2 · columns, T)
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
    """The two transforms and the turn between them, as real numbers.

    Returns:
        over the rows (2 · half, rows), real parts above imaginary ones; the turn (2, half, columns, 1),
        cosine and sine; over the columns (2 · columns, 2 · columns), likewise; all float32.
        half = size / columns / 2 + 1: a frame is real, its other frequencies are mirror images.
    """
    long = size // columns
    frequencies = np.arange(long // 2 + 1)[:, None]
    over_rows = np.exp(-2j * np.pi / long * frequencies * np.arange(rows))
    turn = np.exp(-2j * np.pi / size * frequencies * np.arange(columns))[..., None]
    square = np.exp(-2j * np.pi / columns * np.arange(columns)[:, None] * np.arange(columns))
    over_columns = np.block([[square.real, -square.imag], [square.imag, square.real]])
    bases = np.concatenate([over_rows.real, over_rows.imag]), np.stack([turn.real, turn.imag]), over_columns
    return tuple(basis.astype(np.float32) for basis in bases)


def _filters_for_two_steps(features: KeywordFeatureConfig, columns: int) -> np.ndarray:
    """Mel filters for powers in the order of the two-step transform: (mel_bins, half · columns) float32.

    Frequency f = f₁ + f₂ · size / columns lies at (f₁, f₂); one whose f₁ is beyond the half is the mirror
    image of size - f. Places that are a mirror image of another one keep zeros.
    """
    long = features.fft_size // columns
    placed = np.zeros((features.mel_bins, long // 2 + 1, columns), np.float32)
    for frequency, weights in enumerate(mel_filters(features)):
        lower = frequency if frequency % long <= long // 2 else features.fft_size - frequency
        placed[:, lower % long, lower // long] = weights
    return placed.reshape(features.mel_bins, -1)
