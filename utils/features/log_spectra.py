"""Computes log spectrograms, log mel spectrograms and MFCC with deltas.

Like ``python_speech_features`` and other published systems, whose settings are the defaults, they work on
samples at 16-bit scale (±32768). The Fourier transform is computed in double precision, because in single
precision a bin far below the peak of its frame would be rounding error. What follows adds up powers and takes
logarithms, for which single precision is enough, and faster; but coefficients and deltas of MFCC are small
differences of logarithms, which are therefore computed in double precision.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from utils.audio.levels import peak_without_clicks
from utils.audio.reading import INT16_SCALE
from utils.features.running_normalisation import RunningNormalisation, average_speech
from utils.features.settings import DEFAULT_WINDOW, MFCC_FILTERS, RUNNING, FeatureConfig, frame_count
from utils.features.spectra import Sound, cepstra_with_deltas, mel_filters, power_blocks

PREEMPHASIS = 0.97  # as in python_speech_features
SMALLEST = float(np.finfo(np.float64).eps)  # replaces an energy of zero (in single precision) in a logarithm

# The lowest value of normalised features is 80 dB below the peak of the utterance (without clicks): digital
# silence is log(0), and the noise of a recording is rarely lower (0.4 % of the values of read 16-bit speech).
_FLOOR = 1e-8
# The peak of a stream is unknown: the floor is the noise of rounding to 16 bits, in a wide mel filter.
ROUNDING_ENERGY = 1.0
_ACTIVE_ENERGY = 1e-3  # 30 dB below the loudest frame
_SMALLEST_DEVIATION = 1e-3  # an utterance with a lower deviation is silent: its features become zero


def log_features(samples: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """Features of one utterance, of the kinds ``spectrogram``, ``filter_bank`` and ``mfcc``.

    Arguments and result are those of :func:`utils.features.speech.extract_features`.
    """
    sound = sound_of(samples, config)
    if config.kind == "filter_bank":
        features, energies = log_filter_bank(sound, config)
    elif config.kind == "mfcc":
        features, energies = _mfcc_with_deltas(sound, config)
    else:
        features, energies = log_spectrogram(sound, config)
    if config.normalise == "utterance":
        features = normalise_utterance(features, energies, config)
    elif config.normalise == RUNNING:
        features = running_normalisation(config)(features)
    return features.astype(np.float32, copy=False)


def running_normalisation(config: FeatureConfig) -> RunningNormalisation:
    """At the start of a stream; ``config.normalise`` is ``RUNNING``."""
    filters = mel_filters(config.base_bins, config.fft_size, config.sample_rate)
    levels = average_speech(filters, config.sample_rate, frame_window(config))
    return RunningNormalisation(levels, config.hop_seconds)


def normalise_utterance(features: np.ndarray, energies: np.ndarray, config: FeatureConfig) -> np.ndarray:
    """Subtract the mean of each bin and divide by one deviation for all bins.

    Mean and deviation are those of the active frames, which are at most 30 dB below the loudest frame. One
    second of silence before an utterance then changes its filter bank features by 0.02 deviations
    (spectrogram: 0.1), measured on read speech; with all frames it would be 0.5 to 0.8. Clicks, which would
    be the only active frames of a quiet recording, are left out. The mean of each bin removes the channel. A
    deviation for each bin would amplify bins without sound (band-limited audio, filters without an FFT bin).
    MFCC have one deviation for the coefficients and one for each kind of deltas.

    Args:
        features: (frames, bins) float.
        energies: (frames,) float, of each frame.
        config: the settings.

    Returns:
        (frames, bins) of the same type.
    """
    level = peak_without_clicks(energies, config.frame_ms, config.hop_ms)
    active = np.flatnonzero((energies >= _ACTIVE_ENERGY * level) & (energies <= level))
    mean = features.take(active, axis=0).mean(axis=0, dtype=np.float64)
    normalised = features - mean.astype(features.dtype)
    for part in range(0, features.shape[1], config.base_bins):
        columns = normalised[:, part : part + config.base_bins]
        deviation = np.sqrt(np.square(columns.take(active, axis=0)).mean())
        columns /= np.inf if deviation < _SMALLEST_DEVIATION else deviation
    return normalised


def sound_of(samples: np.ndarray, config: FeatureConfig, before: float = 0.0) -> Sound:
    """Samples (samples,) in [-1, 1], to be read at 16-bit scale, with pre-emphasis except for a spectrogram.

    ``before`` is the sample before the first.
    """
    return Sound(samples, INT16_SCALE, 0.0 if config.kind == "spectrogram" else PREEMPHASIS, before)


def log_spectrogram(sound: Sound, config: FeatureConfig) -> tuple[np.ndarray, np.ndarray]:
    """log(|FFT| + 1) of windowed frames, the lowest bins (frames, bins), and their energy (frames,)."""
    frames = frame_count(len(sound.samples), config)
    spectrogram, totals = np.empty((frames, config.base_bins), np.float32), np.empty(frames, np.float32)
    for rows, power in _power_blocks(sound, config):
        lowest = power[:, : config.base_bins]
        totals[rows] = lowest.sum(axis=1)
        np.log1p(np.sqrt(lowest), out=spectrogram[rows])
    return spectrogram, totals


def log_filter_bank(sound: Sound, config: FeatureConfig) -> tuple[np.ndarray, np.ndarray]:
    """``python_speech_features.logfbank``, (frames, bins), and the energy of each frame (frames,)."""
    filters = mel_filters(config.base_bins, config.fft_size, config.sample_rate)
    energies = np.empty((frame_count(len(sound.samples), config), config.base_bins), np.float32)
    for rows, power in _power_blocks(sound, config):
        energies[rows] = power @ filters  # (block, fft / 2 + 1) @ (fft / 2 + 1, filters)
    energies = _raised(energies, _floor(energies, config))
    totals = energies.sum(axis=1)
    return np.log(energies, out=energies), totals


def _mfcc_with_deltas(sound: Sound, config: FeatureConfig) -> tuple[np.ndarray, np.ndarray]:
    """``python_speech_features.mfcc`` with first and second deltas, (frames, 3 × bins), and the energy."""
    filters = mel_filters(MFCC_FILTERS, config.fft_size, config.sample_rate)
    frames = frame_count(len(sound.samples), config)
    energies, totals = np.empty((frames, MFCC_FILTERS), np.float32), np.empty(frames, np.float32)
    for rows, power in _power_blocks(sound, config):
        energies[rows], totals[rows] = power @ filters, power.sum(axis=1) / config.fft_size
    floor = _floor(energies, config, totals)
    energies, totals = _raised(energies, floor), _raised(totals, floor)
    return cepstra_with_deltas(energies, totals, config.base_bins), totals


def _floor(energies: np.ndarray, config: FeatureConfig, totals: np.ndarray | None = None) -> float:
    """The lowest energy of a filter in (frames, bins); ``totals``: energies of frames, else the sums."""
    if config.normalise == "utterance":
        totals = energies.sum(axis=1) if totals is None else totals
        level = peak_without_clicks(totals, config.frame_ms, config.hop_ms)
        return _FLOOR * energies.max(axis=1)[totals <= level].max()
    return ROUNDING_ENERGY if config.normalise == RUNNING else 0.0


def _raised(energies: np.ndarray, floor: float) -> np.ndarray:
    """Energies that are at least the floor, and above zero."""
    energies = np.maximum(energies, np.float32(floor))
    energies[energies == 0] = SMALLEST
    return energies


def _power_blocks(sound: Sound, config: FeatureConfig) -> Iterator[tuple[slice, np.ndarray]]:
    """Power spectra of blocks of frames: (rows, (block, fft / 2 + 1) float32, for this step only)."""
    frames = frame_count(len(sound.samples), config)
    return power_blocks(sound, frames, config.hop_samples, frame_window(config), config.fft_size)


def frame_window(config: FeatureConfig) -> np.ndarray:
    """The factors of the samples of a frame: (samples,) float64."""
    hamming = (config.window or DEFAULT_WINDOW[config.kind]) == "hamming"
    return (_hamming if hamming else np.ones)(config.frame_samples)


@lru_cache(maxsize=8)
def _hamming(samples: int) -> np.ndarray:
    window = np.hamming(samples)
    window.setflags(write=False)
    return window
