"""A batch for the tests of the acoustic models."""

import numpy as np


def padded_batch(bins: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three utterances of unequal lengths in one batch, padded with NaN, so that use of it is noticed."""
    rng = np.random.default_rng(seed)
    lengths = np.array([45, 30, 13], np.int32)
    features = rng.normal(size=(3, 45, bins)).astype(np.float32)
    features[np.arange(45) >= lengths[:, None]] = np.nan
    return features, lengths
