"""Computes the features of acoustic models by their kind."""

import numpy as np

from utils.features.log_spectra import log_features
from utils.features.settings import FeatureConfig
from utils.features.whisper import log_mel


def extract_features(samples: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """Features of one utterance.

    Args:
        samples: (samples,) floats in [-1, 1] at ``config.sample_rate``.
        config: the settings.

    Returns:
        (frames, bins) float32, finite for any finite samples; bins = ``feature_bins(config)``.

    Raises:
        ValueError: the samples are not one-dimensional, or the array is empty.
    """
    if samples.ndim != 1 or not len(samples):
        raise ValueError(f"expected mono samples, got an array of shape {samples.shape}")
    if config.kind == "whisper":
        return log_mel(samples, config.base_bins, config.normalise == "utterance")
    return log_features(samples, config)
