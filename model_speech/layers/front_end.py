"""Keras layers that compute the features of streams (`utils.features.stream`) inside a model.

A model with these layers takes samples and needs no code for features; every model converter supports them
(see `utils.backend.frame_spectra`). They compute in single precision.
"""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from utils.audio.reading import INT16_SCALE
from utils.backend.frame_spectra import Frames, PowerSpectrum
from utils.errors import require
from utils.features.log_spectra import (
    PREEMPHASIS,
    ROUNDING_ENERGY,
    SMALLEST,
    frame_window,
    running_normalisation,
)
from utils.features.running_normalisation import ACTIVE_RANGE
from utils.features.settings import RUNNING, FeatureConfig
from utils.features.spectra import mel_filters

_NEVER = -1e9  # nepers: the level of a frame that doesn't count


def front_end(samples, config: FeatureConfig):
    """Compute features of samples with layers that can stream.

    Args:
        samples: (B, S) float32 in [-1, 1] at ``config.sample_rate``; S is fixed and at least one frame.
        config: log mel energies, normalised by the frames so far or not at all.

    Returns:
        (B, T, F) float32: the T whole frames.

    Raises:
        ConfigError: the features are of another kind, or need the whole utterance.
    """
    require(
        config.kind == "filter_bank" and config.normalise != "utterance",
        f"features of kind '{config.kind}', normalised by '{config.normalise}', can't be part of a model",
        hint="log mel energies by running mean: features.kind=filter_bank, features.normalise=running_ltass",
    )
    # One sample more than a frame: pre-emphasis needs the sample before it.
    frames = Frames(config.frame_samples + 1, config.hop_samples, before=1, name="frames", dtype="float32")
    x = LogFilterBank(config, name="log_filter_bank", dtype="float32")(frames(samples))
    if config.normalise == RUNNING:
        x = SubtractRunningMean(config, name="subtract_running_mean", dtype="float32")(x)
    return x


class _OfFeatures(keras.layers.Layer):
    """Base class of the layers with feature settings, also as the dictionary of ``dataclasses.asdict``."""

    def __init__(self, features: FeatureConfig | dict[str, Any], **kwargs):
        super().__init__(**kwargs)
        self.features = FeatureConfig(**features) if isinstance(features, dict) else features

    def get_config(self) -> dict[str, Any]:
        """The settings of the features."""
        return {**super().get_config(), "features": dataclasses.asdict(self.features)}


@keras.saving.register_keras_serializable(package="model_speech")
class LogFilterBank(_OfFeatures):
    """Log mel energies: frames with the sample before each (B, T, 1 + samples) → (B, T, F)."""

    frame_wise = True

    def build(self, shape):
        """Compute the constants."""
        config = self.features
        self._power = PowerSpectrum(INT16_SCALE * frame_window(config), config.fft_size)
        filters = mel_filters(config.base_bins, config.fft_size, config.sample_rate)
        self._filters = self._power.filters(filters.toarray())
        self._floor = ROUNDING_ENERGY if config.normalise == RUNNING else SMALLEST

    def call(self, frames):
        """Log energies of each frame."""
        power = self._power(frames[..., 1:] - PREEMPHASIS * frames[..., :-1])
        energies = ops.maximum(ops.matmul(self._filters, power), self._floor)  # (B, F, T)
        return ops.transpose(ops.log(energies), (0, 2, 1))

    def compute_output_shape(self, shape):
        """(B, T, F)."""
        return (*shape[:-1], self.features.base_bins)


@keras.saving.register_keras_serializable(package="model_speech")
class SubtractRunningMean(_OfFeatures):
    """`RunningNormalisation` of `utils.features`: log energies (B, T, F) → (B, T, F).

    Attributes:
        state_size: values of the states, which are kept as differences from their initial values: the log
            energy of the recent loudest frame, with its decrease up to now, and the weighted sums.
    """

    def __init__(self, features: FeatureConfig | dict[str, Any], **kwargs):
        super().__init__(features, **kwargs)
        self._start = running_normalisation(self.features)
        self.state_size = [1, len(self._start.sums)]

    def call(self, frames):
        """Normalise recordings from their start."""
        return self.streaming_chunk(frames, [0.0, 0.0])[0]

    def streaming_chunk(self, frames: Any, states: list[Any], valid: Any = None) -> tuple[Any, list[Any]]:
        """All frames of a chunk at once, and the states after it (see :mod:`streaming.conversion.rules`)."""
        start, count = self._start, frames.shape[1]
        initial = start.sums.astype(np.float32)[None]
        loudest, before = states[0] + float(start.loudest), states[1] + initial  # (B, 1), (B, F + 3)
        so_far = np.tri(count, dtype=np.float32)  # (T, T): the frames up to each frame
        # Frames before the recording have no position, and aren't active.
        counts = ops.ones((1, count)) if valid is None else ops.cast(valid, "float32")
        position = ops.matmul(so_far, counts[..., None])[..., 0] - 1.0  # (1, T)
        level = ops.log(ops.sum(ops.exp(frames), axis=-1)) + float(start.fading) * position  # (B, T)
        level = ops.where(counts > 0.5, level, _NEVER)
        so_far_levels = level[:, None] + _NEVER * (1 - so_far)  # (B, T, T)
        highest = ops.maximum(ops.max(so_far_levels, axis=-1), loudest)  # (B, T)
        active = ops.cast(level >= highest - ACTIVE_RANGE, "float32")
        number = ops.matmul(so_far, active[..., None])  # (B, T, 1): active frames so far
        since = number - ops.transpose(number, (0, 2, 1))  # (B, T, T): active frames after each frame
        log_keep = float(np.log(start.keep))
        weights = ops.exp(log_keep * since) * active[:, None] * so_far
        mean = ops.mean(frames, axis=-1, keepdims=True)
        one = ops.ones_like(mean)
        added = ops.concatenate([mean, frames - mean, one, one], axis=-1)  # (B, T, F + 3)
        sums = ops.matmul(weights, added) + ops.exp(log_keep * number) * before[:, None]
        means = sums[..., :1] / sums[..., -2:-1] + sums[..., 1:-2] / sums[..., -1:]
        faded = highest[:, -1:] - float(start.fading) * (position[:, -1:] + 1.0)
        return frames - means, [faded - float(start.loudest), sums[:, -1] - initial]

    def compute_output_spec(self, frames):
        """The same shape."""
        return keras.KerasTensor(frames.shape, dtype="float32")
