"""Keras layer for sub-spectral normalisation: batch normalisation of each band of features by itself.

Chang et al., "SubSpectral Normalization for Neural Audio Data Processing" (2021, arXiv:2103.13620).
"""

import keras
from keras import ops

from utils.backend.devices import is_replicated
from utils.errors import ConfigError


@keras.saving.register_keras_serializable(package="model_keyword")
class SubSpectralNorm(keras.layers.Layer):
    """Batch normalisation with statistics, factor and offset for each channel of each sub-band.

    In inference each frame is normalised independently of the others.

    Args:
        bands: S, the number of sub-bands, of equal size.
        momentum: weight of the old value when a moving statistic is updated.
        epsilon: added to the variance.

    Call arguments:
        x: (B, T, F, C), F a multiple of ``bands`` → the same shape.
    """

    frame_wise = True

    def __init__(self, bands: int, momentum: float = 0.97, epsilon: float = 1e-3, **kwargs):
        super().__init__(**kwargs)
        self.bands, self.momentum, self.epsilon = bands, momentum, epsilon

    def build(self, input_shape):
        """Create the weights, (S, C) each.

        Raises:
            ConfigError: the number of features is not a multiple of the number of bands.
        """
        features, channels = input_shape[2:]
        if features % self.bands:
            raise ConfigError(
                f"layer {self.name}: {features} features can't be {self.bands} sub-bands of one size",
                hint=f"a multiple of {self.bands} features, here and after each stride",
            )
        self.band_features = features // self.bands
        shape = (self.bands, channels)
        self.gamma = self.add_weight(shape, "ones", name="gamma")
        self.beta = self.add_weight(shape, "zeros", name="beta")
        moving = {"trainable": False, "autocast": False}
        self.moving_mean = self.add_weight(shape, "zeros", name="moving_mean", **moving)
        self.moving_variance = self.add_weight(shape, "ones", name="moving_variance", **moving)

    def call(self, x, training=False):
        """Normalise; in training by the statistics of the batch."""
        mean, variance = self.moving_mean, self.moving_variance
        if training and self.trainable:
            mean, variance = self._batch_statistics(x)
        factor = ops.cast(self.gamma, "float32") * ops.rsqrt(variance + self.epsilon)
        offset = ops.cast(self.beta, "float32") - mean * factor  # (S, C)
        return x * self._per_feature(factor, x.dtype) + self._per_feature(offset, x.dtype)

    def multiply_accumulates(self, positions: int) -> int:
        """None: scaling and shifting are not counted (:mod:`utils.backend.model_cost`)."""
        return 0

    def _batch_statistics(self, x):
        """Mean and variance (S, C) over batch, frames and features; updates the moving statistics."""
        by_band = ops.reshape(x, (-1, self.bands, self.band_features, x.shape[-1]))  # (B · T, S, F / S, C)
        mean, variance = ops.moments(ops.cast(by_band, "float32"), axes=(0, 2), synchronized=is_replicated())
        for moving, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(self.momentum * moving + (1 - self.momentum) * ops.stop_gradient(new))
        return mean, variance

    def _per_feature(self, values, dtype):
        """Repeat the values of a band for each of its features: (S, C) → (F, C)."""
        return ops.cast(ops.repeat(values, self.band_features, axis=0), dtype)
