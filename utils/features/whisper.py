"""Log-mel features of Whisper: samples at 16 kHz in, (frames, bins) float32 out, 100 frames a second.

Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022, arXiv:2212.04356). Unlike
the published recognisers, which pad every recording to 30 s, the features have the length of the recording.
"""

from functools import lru_cache

import numpy as np
import scipy.sparse

from utils.audio.levels import peak_without_clicks
from utils.features.spectra import Sound, power_blocks

_SAMPLE_RATE, _FRAME_MS, _HOP_MS = 16_000, 25, 10
FRAME_SAMPLES, HOP_SAMPLES = _SAMPLE_RATE * _FRAME_MS // 1000, _SAMPLE_RATE * _HOP_MS // 1000  # 400, 160
_SMALLEST = np.float32(1e-10)  # of an energy
_USUAL_PEAK = 1.0  # log10 of the highest energy of speech whose samples reach half of the full scale (median)
_LARGEST_GAIN = 5.0  # log10: recordings that are more than 50 dB quieter are silence
_RANGE = np.float32(8.0)  # log10: values further below the highest of the recording are raised
_LINEAR_HZ, _LINEAR_STEP = 1000.0, 200.0 / 3  # Slaney's mel scale: linear up to 1 kHz …
_LOG_STEP = np.log(6.4) / 27  # … and logarithmic above


def frame_count(samples: int) -> int:
    """Number of frames of a recording: the frame that is centred at its end is left out."""
    return max(1, samples // HOP_SAMPLES)


def log_mel(samples: np.ndarray, bins: int, same_peak: bool = False) -> np.ndarray:
    """Features of a recording, scaled logarithms of mel energies.

    The frames are centred, with the signal reflected at both ends. Logarithms are limited to 8 below the
    highest of the recording (80 dB), then scaled by (x + 4) / 4.

    Args:
        samples: (samples,) floats in [-1, 1] at 16 kHz.
        bins: number of mel filters.
        same_peak: shift the features so that the highest value is that of ordinary speech: a quiet recording
            then has the features of a loud one. Clicks don't count.

    Returns:
        (frames, bins) float32, finite for any finite samples.
    """
    edge = FRAME_SAMPLES // 2
    # Reflection needs more samples than it repeats.
    longer = np.pad(samples, (0, max(0, edge + 1 - len(samples))))
    padded = np.pad(longer, edge, mode="reflect")
    energies = np.empty((frame_count(len(samples)), bins), np.float32)
    sound = Sound(padded, scale=1.0, emphasis=0.0, before=0.0)
    blocks = power_blocks(sound, len(energies), HOP_SAMPLES, _periodic_hann(), FRAME_SAMPLES)
    for rows, power in blocks:
        energies[rows] = power @ mel_filters(bins)  # (block, fft / 2 + 1) @ (fft / 2 + 1, bins)
    logs = np.log10(np.maximum(energies, _SMALLEST, out=energies), out=energies)
    peak = _peak(logs) if same_peak else logs.max()
    np.maximum(logs, peak - _RANGE, out=logs)
    shift = min(_USUAL_PEAK - peak, _LARGEST_GAIN) if same_peak else 0.0
    return (logs + np.float32(4 + shift)) / np.float32(4)


def _peak(logs: np.ndarray) -> np.float32:
    """The highest of the logarithms (frames, bins) in frames that are no clicks."""
    highest = logs.max(axis=1)
    energies = 10.0 ** highest.astype(np.float64)
    level = peak_without_clicks(energies, _FRAME_MS, _HOP_MS)
    return highest[energies <= level].max()


@lru_cache(maxsize=2)
def mel_filters(bins: int) -> scipy.sparse.csr_array:
    """Triangular filters on Slaney's mel scale, each of the same area: (fft / 2 + 1, bins) float32."""
    frequencies = np.linspace(0, _SAMPLE_RATE / 2, FRAME_SAMPLES // 2 + 1)
    corners = _hertz(np.linspace(0, _mel(_SAMPLE_RATE / 2), bins + 2))  # (bins + 2,)
    slopes = (frequencies[:, None] - corners) / np.diff(corners, append=np.inf)  # rising from each corner
    falling = 1 - slopes[:, 1:-1]
    triangles = np.maximum(0, np.minimum(slopes[:, :-2], falling))  # (fft / 2 + 1, bins)
    return scipy.sparse.csr_array(triangles * 2 / (corners[2:] - corners[:-2]), dtype=np.float32)


def _mel(hertz: float) -> float:
    """Slaney's scale, as in the Auditory Toolbox (1998)."""
    if hertz < _LINEAR_HZ:
        return hertz / _LINEAR_STEP
    return _LINEAR_HZ / _LINEAR_STEP + np.log(hertz / _LINEAR_HZ) / _LOG_STEP


def _hertz(mel: np.ndarray) -> np.ndarray:
    border = _LINEAR_HZ / _LINEAR_STEP
    return np.where(mel < border, mel * _LINEAR_STEP, _LINEAR_HZ * np.exp(_LOG_STEP * (mel - border)))


@lru_cache(maxsize=1)
def _periodic_hann() -> np.ndarray:
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME_SAMPLES) / FRAME_SAMPLES)
