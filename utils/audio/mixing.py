"""Mixes the channels of a recording to one: their mean, or the loudest where they cancel each other out."""

import numpy as np

_LEAST_POWER = 0.5  # of the mean, relative to that of independent channels; in opposite phase it is near 0


def mix(samples: np.ndarray) -> np.ndarray:
    """The mean of the channels of (samples, channels) float32, as (samples,) float32.

    A microphone whose wires are swapped gives a channel in opposite phase, and the mean would be silence.
    Where it has less than half the power of a mean of independent channels, the loudest channel is taken.
    """
    if samples.shape[1] == 1:
        return np.ascontiguousarray(samples[:, 0])
    mixed = samples.mean(axis=1)
    energies = [float(channel @ channel) for channel in samples.T]
    if float(mixed @ mixed) * len(energies) ** 2 < _LEAST_POWER * sum(energies):
        return np.ascontiguousarray(samples[:, np.argmax(energies)])
    return mixed
