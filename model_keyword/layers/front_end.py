"""Keras layers that compute the MFCC or log mel features of utils/features/keyword.py inside a model.

A model with these layers takes samples and needs no code for features; every model converter supports them
(see `utils.backend.frame_spectra`). The constants follow from the settings and are not weights: a model for
``raw`` has as many parameters as the same model for ``mfcc``.
"""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from utils.backend.frame_spectra import Frames, PowerSpectrum
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
    """
    x = Frames(config.window_samples, config.stride_samples, name="frames", dtype=_DTYPE)(samples)
    return MelCepstrum(config, name="mel_cepstrum", dtype=_DTYPE)(x)


def settings_inside(config: KeywordFeatureConfig) -> KeywordFeatureConfig:
    """The settings with which a model computes the same features itself.

    Raises:
        ConfigError: the kind is ``micro``, which uses integer arithmetic and is not available as layers.
    """
    require(
        config.kind != "micro",
        "features.kind micro works in integers: it can't be part of a model",
        hint="compute it outside, or train with features.kind=mfcc or raw",
    )
    return dataclasses.replace(config, kind="raw")


@keras.saving.register_keras_serializable(package="model_keyword")
class MelCepstrum(keras.layers.Layer):
    """MFCC or log mel energies of each frame: (B, T, window) → (B, T, F).

    Args:
        features: the settings, also as the dictionary of ``dataclasses.asdict``.
    """

    frame_wise = True

    def __init__(self, features: KeywordFeatureConfig | dict[str, Any], **kwargs):
        super().__init__(**kwargs)
        if isinstance(features, dict):
            features = KeywordFeatureConfig(**features)
        self.features = features

    def build(self, input_shape):
        """Compute the constants."""
        features = self.features
        if input_shape[-1] != features.window_samples:
            expected = features.window_samples
            raise ValueError(f"'{self.name}' is for frames of {expected} samples, not {input_shape[-1]}")
        self._power = PowerSpectrum(analysis_window(features.window_samples), features.fft_size)
        self._filters = self._power.filters(mel_filters(features))
        self._cosines = cosine_basis(features.mel_bins, features.coefficients).T.astype(np.float32)

    def call(self, frames):
        """Features of each frame."""
        x = ops.log(ops.matmul(self._filters, self._power(frames)) + ENERGY_FLOOR)  # (B, mel_bins, T)
        if self.features.coefficients:
            x = ops.matmul(self._cosines, x)
        return ops.transpose(x, (0, 2, 1))  # (B, T, F)

    def compute_output_shape(self, input_shape):
        """(B, T, F)."""
        return (*input_shape[:-1], feature_values(self.features))

    def get_config(self) -> dict[str, Any]:
        """The settings of the features."""
        return {**super().get_config(), "features": dataclasses.asdict(self.features)}
