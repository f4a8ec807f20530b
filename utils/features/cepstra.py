"""Mel-frequency cepstral coefficients (MFCC) with deltas: energies of mel filters in, coefficients out."""

import numpy as np
import scipy.fft

_LIFTER = 22  # cepstral liftering, as in python_speech_features
_DELTA_REACH = 2  # frames on each side that a delta is computed from


def cepstra_with_deltas(energies: np.ndarray, totals: np.ndarray, coefficients: int) -> np.ndarray:
    """``python_speech_features.mfcc`` with first and second deltas.

    Args:
        energies: (frames, filters) of the mel filters, above 0.
        totals: (frames,) energy of each frame, above 0; its logarithm replaces the first coefficient.
        coefficients: number of cepstral coefficients.

    Returns:
        (frames, 3 × coefficients) float64.
    """
    # In double precision: a coefficient is a sum of 26 logarithms, and deltas are small differences.
    logs = np.log(energies, dtype=np.float64)
    cepstra = scipy.fft.dct(logs, type=2, norm="ortho", axis=1)[:, :coefficients]
    cepstra *= 1 + _LIFTER / 2 * np.sin(np.pi * np.arange(coefficients) / _LIFTER)
    cepstra[:, 0] = np.log(totals)
    first = _deltas(cepstra)
    return np.concatenate([cepstra, first, _deltas(first)], axis=1)


def _deltas(features: np.ndarray) -> np.ndarray:
    """``python_speech_features.delta``: slope over ±2 frames, edges repeated; same shape."""
    frames, reach = len(features), _DELTA_REACH
    padded = np.pad(features, ((reach, reach), (0, 0)), mode="edge")
    steps = range(1, reach + 1)
    slope = sum(n * (padded[reach + n :][:frames] - padded[reach - n :][:frames]) for n in steps)
    return slope / (2 * sum(n * n for n in steps))
